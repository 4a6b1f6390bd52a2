r"""Sparse rows in the coordinates of a diagonal metric, for classifiers of thousands of columns.

With centre m and ``theta = m + r z``, r a number a parameter, the predictors are ``X m + A z`` with
``A = X diag(r)``, as sparse as X. Under independent normal priors of precisions lambda, and with
``d = lambda r^2``, the log posterior is, but for a constant,

.. math:: \log L(X m + A z) + (r s)^T z + \tfrac12 z^T (1 - d) z - \tfrac12 z^T z,

with s the gradient of the log prior at m. Few rows a column hardly narrow the posterior of any of
them, which is a prior's cut by a soft wall a row: the metric is nearly the prior's, and a leapfrog
step as long as the walls are soft. Positions and momenta are held in single precision, a column a
chain, where sparse products are fastest.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skbayes_sgld._linalg import in_threads
from skbayes_sgld.posterior.factor import prior_diagonal
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.sparse_design import SparseDesign
from skbayes_sgld.posterior.whitening import WhitenedPosterior

Array = NDArray[Any]

_PARTS = 4
_SLOWER = 14.0  # a multiplication of a sparse product than one of a dense one, 16 columns wide
_LEAST = 1e-6  # of the rows' curvature in the metric, at least
_PROBES, _ERROR = 2, 0.05  # of a log density or a gradient, relative to the root of n_params


class SparseModel(Protocol):
    """The members of a generalised linear model of sparse rows."""

    X: Any
    y: Array
    weight: Array | None
    n_samples: int
    n_params: int
    n_predictors: int
    likelihood: Likelihood

    @property
    def light_tailed(self) -> bool:
        """Whether the tails are no heavier than normal."""

    def design(self, rows: slice) -> Any:
        """Rows of the design."""

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal and factor of the curvature."""

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log density and gradient."""

    def log_prior(self, theta: Array) -> Array:
        """Log prior."""

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior."""


class SparseRows(WhitenedPosterior):
    """The posterior of z, for any number of positions.

    Parameters
    ----------
    posterior : GLMPosterior
        Of sparse rows, with one linear predictor and independent normal priors.
    center : ndarray of shape (P,)
        m.
    of_rows : ndarray of shape (P,)
        What the rows add to the prior's precisions in the metric, ``1 / r^2 - lambda``.
    """

    as_columns = True

    def __init__(self, posterior: SparseModel, center: Array, of_rows: Array) -> None:
        self.center, self._posterior, self._of_rows = center, posterior, of_rows
        P = posterior.n_params
        self.n_params, self.param_names = P, [f"z[{j}]" for j in range(P)]
        self.inverse = prior_diagonal(posterior, center) + of_rows
        self.root = 1.0 / np.sqrt(self.inverse)
        self.inverse_t = 1.0 / self.root
        self._rest = (of_rows / self.inverse).astype(np.float32)[:, None]
        design = posterior.design(slice(0, posterior.n_samples))
        kernel = posterior.likelihood.bind_rows(posterior.y, posterior.weight, np.float32)
        assert kernel is not None
        self._kernel = kernel
        signs = np.ones(posterior.n_samples) if kernel.signs is None else kernel.signs
        self._shift = signs * (design @ center)
        self._design = ScaledDesign(design, signs, self.root)
        self._slope = (self.root * posterior.grad_log_prior(center[None])[0])[:, None]
        self._level = float(posterior.log_prior(center[None])[0])
        self.softness = 1.0 / self._design.typical_norm
        self.work = _SLOWER * 2.0 * posterior.X.nnz

    def log_density(self, z: Array) -> Array:
        """Log density ``(C,)`` at ``z (C, P)``; only a product is rounded."""
        posterior = self._posterior
        u = self._design.predictors(self.held(z)).astype(float) + self._shift[:, None]
        signs = self._kernel.signs
        if signs is not None:
            u *= signs[:, None]
        rows = posterior.likelihood.log_density(np.ascontiguousarray(u.T)[:, None], posterior.y)
        if posterior.weight is not None:
            rows = rows * posterior.weight
        value = rows.sum(axis=1) + self._level + np.einsum("cp,p->c", z, self._slope[:, 0])
        known = (self._rest[:, 0] - 1.0).astype(float)
        return value + 0.5 * np.einsum("cp,cp,p->c", z, z, known)

    def force(self, place: Array) -> Array:
        """Gradient at positions ``(P, C)``."""
        v = self._design.predictors(place)
        v += self._shift.astype(np.float32)[:, None]
        score = np.ascontiguousarray(v.T)[:, None]
        with np.errstate(over="ignore"):
            self._kernel.score(score)
        score += self._kernel.pull.astype(np.float32)
        force = self._design.pulled(np.ascontiguousarray(score[:, 0].T))
        force += (self._rest - np.float32(1.0)) * place
        force += self._slope.astype(np.float32)
        return force

    def matched(self, draws: Array, temperature: float) -> SparseRows:
        """Rows about the mean of ``draws (S, P)`` of theta, in a metric that fits these.

        What the rows add is in proportion to their mean curvature, and such that the mean variance
        of the whitened draws is the temperature.
        """
        posterior, center = self._posterior, draws.mean(axis=0)
        own, variance = prior_diagonal(posterior, center), draws.var(axis=0, ddof=1)
        bends = posterior.curvature_factor(draws[-1])[0] - own
        share = (self.n_params * temperature - own @ variance) / (bends @ variance)
        return SparseRows(posterior, center, _positive(np.clip(share, _LEAST, 1.0) * bends))


class ScaledDesign:
    """Signed rows of a sparse design times a number a parameter, in single precision."""

    def __init__(self, design: SparseDesign, signs: Array, root: Array) -> None:
        X, self._d = design.rows, design.rows.shape[1]
        each = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        scaled = X.data * root[X.indices] * signs[each]
        A = sparse.csr_array((scaled.astype(np.float32), X.indices, X.indptr), shape=X.shape)
        squares = np.bincount(each, np.square(scaled), X.shape[0])
        self.typical_norm = float(np.sqrt(max(np.median(squares), 1e-300)))
        self._signs = signs.astype(np.float32)
        self._level = np.float32(root[self._d]) if len(root) > self._d else None
        center = design.center
        self._center = None if center is None else (center * root[: self._d]).astype(np.float32)
        # a product of one sparse row, unlike others, rounds a chain alike whatever their number
        self._mean = None if self._center is None else sparse.csr_array(self._center[None])
        self._total = sparse.csr_array(self._signs[None])
        self._rows, self._columns = _parts(A), _parts(sparse.csr_array(A.T.tocsr()))

    def predictors(self, z: Array) -> Array:
        """Signed predictors ``(n, C)`` at ``z (P, C)``, less those at the centre."""
        coef = z[: self._d]
        u = np.concatenate(in_threads(partial(_product, coef), self._rows))
        if self._level is not None:
            level = self._level * z[self._d]
            if self._mean is not None:
                level = level - (self._mean @ coef)[0]
            u += self._signs[:, None] * level
        return u

    def pulled(self, score: Array) -> Array:
        """Signed scores ``(n, C)`` times the rows ``(P, C)``."""
        parts = in_threads(partial(_product, score), self._columns)
        if self._level is None:
            return np.concatenate(parts)
        total = (self._total @ score)[0]
        force = np.concatenate([*parts, self._level * total[None]])
        if self._center is not None:
            force[: self._d] -= self._center[:, None] * total
        return force


def sparse_rows(posterior: SparseModel, center: Array) -> SparseRows | None:
    """Sparse rows in the metric of the curvature's diagonal; None where the model is another one.

    Its form is checked: a likelihood without a kernel, or a prior that is not independent, has
    another density.
    """
    if not posterior.light_tailed or posterior.n_predictors > 1:
        return None
    if posterior.likelihood.bind_rows(np.empty(0), None, np.float32) is None:
        return None
    bends = posterior.curvature_factor(center)[0] - prior_diagonal(posterior, center)
    rows = SparseRows(posterior, center, _positive(bends))
    z = np.random.default_rng(0).standard_normal((_PROBES, posterior.n_params))
    exact, slope = posterior.value_and_grad(rows.locate(z))
    value, grad = rows.value_and_grad(z)
    error = np.abs(value - exact).max(), np.abs(grad - slope * rows.root).max()
    return rows if max(error) < _ERROR * np.sqrt(posterior.n_params) else None


def _positive(bends: Array) -> Array:
    """Curvatures of the rows, which rounding or a column of zeros may leave without any."""
    return np.maximum(bends, _LEAST * max(bends.max(), 1.0))


def _product(z: Array, part: Any) -> Array:
    return part @ z


def _parts(A: Any) -> list[Any]:
    """Rows of A in parts of about as many numbers."""
    inner = np.searchsorted(A.indptr, np.linspace(0, A.nnz, _PARTS + 1)[1:-1])
    edges = [0, *inner.tolist(), A.shape[0]]
    return [A[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a]
