r"""Sparse rows whose predictors have independent noise, which is integrated out of the likelihood.

Under independent normal priors the predictors of n rows are ``u = m + A z``, z standard normal, and
have the covariance ``K = A A^T``. If the rows are linearly independent, ``K - D`` is positive
definite for some diagonal D, and u is the sum of v, of covariance ``K - D``, and of independent
noise of variance D, which can be integrated out row by row: the logistic function becomes as wide
as the noise, and leapfrog steps as long (a collapsed likelihood; Liu 1994). The noise is several
times as wide as the logistic distribution, so their sum is nearly normal: the likelihood of v is
approximated by a product of normal distribution functions.

With ``v = (K - D) a`` and the mass ``(K - D)^{-1}``, the prior rotates a and its momentum in the
same way as v. A kick by the gradient g of the log likelihood adds g to the momentum of a, and
``(K - D) g``, a product with the rows and their transpose, to that of v. What has been integrated
out is drawn at the end: u given v and y, and z given u, by one linear system in K.

Up to 6,000 rows :mod:`~skbayes_sgld.wide_rows.predictors` holds K as a matrix, whose functions make
longer steps.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import log_ndtr, ndtr, ndtri

from skbayes_sgld._random import probe_generator
from skbayes_sgld._sparse import scale_columns
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.sparse_design import SparseDesign
from skbayes_sgld.posterior.whitening import CollapsedPosterior
from skbayes_sgld.wide_rows.own_noise import LOGISTIC, inverse_mills, may_collapse

# number of first trajectories, their length, and their step relative to the softness
_FREE, _FREE_PATH, _FREE_STEP = 8, 1.25, 0.16
_ERROR, _PROBES = 3e-3, 16  # relative error of the series; number of vectors that test it


class CollapsedRows(CollapsedPosterior):
    """Posterior of sparse rows in the prior's coordinates, with the rows' own noise split off.

    The position of a chain is its dual ``(C, n + 1)``: a, and last the intercept in its own unit. A
    pair ``(2, C, n + 1)`` holds duals and their values, v and the intercept.

    Parameters
    ----------
    posterior : GLMPosterior
        It has sparse rows without weights, a logistic likelihood and independent normal priors.
    theta : ndarray of shape (P,)
        Any parameters; the intercept is measured from its value there.

    Raises
    ------
    ValueError, ArpackNoConvergence
        If the rows are not independent enough, or too short.
    """

    n_fewest = 8

    def __init__(self, posterior: GLMPosterior, theta: Array) -> None:
        P, n = posterior.n_params, posterior.n_samples
        self.n_rows, self.n_params = n, P
        own, pull = posterior.prior_diagonal(theta), posterior.grad_log_prior(theta[None])[0]
        flat = own <= 0.0  # the intercept's
        self.inverse = np.where(flat, 1.0, own)
        self.center = theta + np.where(flat, 0.0, pull / self.inverse)
        d, design = posterior.n_features, posterior.design_rows(slice(0, posterior.n_samples))
        at_center = design.apply(self.center[None, None], design)[0, 0].astype(np.float32)
        unit = 1.0 / np.sqrt(self.inverse[:d])
        # Rows minus their mean add up to 0; without that they have a direction in common, which
        # would be the steepest by far. Minus a share of their mean they are independent, with
        # another intercept
        mean = design.x_mean * unit
        steepness = np.sqrt(np.sum(1.0 / design.lengths(unit))) * np.linalg.norm(mean)
        share = 1.0 / max(1.0, steepness)
        columns, rest = scale_columns(design.X, unit), (1.0 - share) * mean
        scaled = SparseDesign(columns, rest, False)
        self._design = SparseDesign(columns.astype(np.float32), rest, False)
        self._norms = np.sqrt(scaled.lengths(np.ones(d))).astype(np.float32)
        self._signs = (2.0 * posterior.y - 1.0).astype(np.float32)
        self._unit, self._offset = self._signs / self._norms, self._signs * at_center
        gram = LinearOperator((n, n), lambda x: self._gram(x.reshape(1, n))[0], dtype=np.float32)
        probes = probe_generator().standard_normal((_PROBES, n), dtype=np.float32)
        # at most ten restarts of 40 products; the computed eigenvalues are inside the spectrum
        options = {"which": "BE", "ncv": min(n, 40), "maxiter": 10, "tol": 0.01}
        eigenvalues = eigsh(gram, 2, v0=probes[0], **options)[0]
        low, high = self._bounds = 0.9 * float(eigenvalues[0]), 1.05 * float(eigenvalues[-1])
        self._own = 0.5 * low  # variance of the independent noise
        # it does not pay with an eigenvalue below 0.02, or noise below 4 logits in some row
        if low < 0.02 or np.sqrt(self._own) * self._norms.min() < 4.0:
            raise ValueError("the rows are too dependent on each other, or too short")
        self._root_terms = _terms(lambda x: 1.0 / np.sqrt(x - self._own), low, high, _ERROR)
        self._inverse_terms = _terms(lambda x: 1.0 / x, low, high, _ERROR)
        # eigsh may miss eigenvalues of 0, such as those of duplicate rows. In their directions the
        # series are wrong, and one of 16 normal vectors has a component there that is not small
        error = self._gram(self._solved(probes)) - probes
        if np.any(
            self._sums(np.square(error)) > np.square(1.5 * _ERROR) * self._sums(np.square(probes))
        ):
            raise ValueError("the rows are dependent on each other")
        self._noise = np.float32(np.sqrt(self._own)) * self._norms
        self._total = np.sqrt(np.square(self._noise) + np.float32(LOGISTIC))
        # under a flat prior the intercept's unit comes from the rows: beside the coefficients, a
        # row leaves it a curvature of 0.015 over that of its noise
        row_precision = 0.015 * float(np.sum(1.0 / np.square(self._total), dtype=float))
        self.inverse = np.where(flat, row_precision, self.inverse)
        self.inverse_t = np.sqrt(self.inverse)
        self.root = 1.0 / self.inverse_t
        self._level = np.float32(self.root[-1] * (d < P))  # unit of the intercept, if there is one
        self._slope = (share * mean * self.inverse_t[-1]).astype(np.float32)
        self.softness = float(np.sqrt(self._own))
        # in products with 16 columns a sparse multiplication takes 9 times as long as a dense one
        self.work = 9.0 * 2.0 * self._design.X.nnz

    def work_of(self, n_steps: int) -> float:
        """Cost of a trajectory, its momentum and the draw at its end, in multiplications."""
        return self.work * (n_steps + len(self._root_terms) + len(self._inverse_terms))

    # ---- products -----------------------------------------------------------------------------

    def _predictors(self, z: Array) -> Array:
        """``A z (C, n)`` for z ``(C, d)``, without the intercept; rows have signs and length 1."""
        return self._unit * self._design.apply(z[:, None], self._design)[:, 0]

    def _back(self, x: Array) -> Array:
        """``A^T x (C, d)``."""
        return self._design.adjoint((self._unit * x)[:, None], self._design)[:, 0]

    def _gram(self, x: Array) -> Array:
        """``K x``, for x ``(C, n)``."""
        return self._predictors(self._back(x))

    def _pair(self, dual: Array) -> Array:
        """Duals and their values, ``(K - D) a`` and the intercept."""
        pair = np.stack([dual, dual])
        pair[1, :, :-1] = self._gram(dual[:, :-1]) - np.float32(self._own) * dual[:, :-1]
        return pair

    def _solved(self, x: Array) -> Array:
        """``K^{-1} x``, for x ``(C, n)``."""
        return self._polynomial(self._inverse_terms, x)

    def _momenta(self, normals: Array) -> Array:
        """Normals ``(C, n)`` of covariance ``(K - D)^{-1}``, from standard normals."""
        return self._polynomial(self._root_terms, normals)

    def _polynomial(self, terms: list[float], x: Array) -> Array:
        """Chebyshev series in K, applied to ``x (C, n)``."""
        low, high = self._bounds

        def product(x: Array) -> Array:  # with K, scaled such that its spectrum is in [-1, 1]
            return (2.0 * self._gram(x) - (high + low) * x) / (high - low)

        before, now = x, product(x)
        total = terms[0] * before + terms[1] * now
        for term in terms[2:]:
            before, now = now, 2.0 * product(now) - before
            total += term * now
        return total

    # ---- likelihood of the values --------------------------------------------------------------

    def _logits(self, value: Array) -> Array:
        """Signed predictors ``(C, n)`` in units of the sd of both noises together."""
        logits = self._norms * value[:, :-1] + self._signs * (self._level * value[:, -1:])
        return (logits + self._offset) / self._total

    def _force(self, value: Array) -> Array:
        """Gradient of the log likelihood in the values ``(C, n + 1)``."""
        mills = inverse_mills(self._logits(value))
        mills /= self._total
        in_level = self._level * self._sums(self._signs * mills)
        return np.column_stack([self._norms * mills, in_level.astype(np.float32)])

    # ---- moves --------------------------------------------------------------------------------

    def first(self, generators: list[np.random.Generator]) -> Array:
        """Ends of trajectories from the prior's mean that are never rejected.

        Leapfrog steps raise the energy systematically there, and a chain that rejects would not
        leave.
        """
        n_steps = ceil(_FREE_PATH / _FREE_STEP / self.softness)
        dual = np.zeros((len(generators), self.n_rows + 1))
        step = np.full(len(dual), _FREE_PATH / n_steps)
        for _ in range(_FREE):
            dual, _ = self.move(dual, step, n_steps, generators)
        return dual

    def move(
        self, dual: Array, step: Array, n_steps: int, generators: list[np.random.Generator]
    ) -> tuple[Array, Array]:
        """Ends ``(C, n + 1)`` of trajectories from duals, and their gains in log density ``(C,)``.

        The prior rotates position and momentum by half a step at the beginning and the end, and by
        a whole step between two kicks.
        """
        normals = self._normals(generators, self.n_rows + 1)
        normals[:, :-1] = self._momenta(normals[:, :-1])
        normals[:, -1] *= self._level > 0
        place, momentum = self._pair(dual.astype(np.float32)), self._pair(normals)
        energy, step = self._energy(place, momentum), step[:, None].astype(np.float32)
        for number in range(n_steps + 1):
            angle = step * np.float32(0.5 if number in (0, n_steps) else 1.0)
            cos, sin = np.cos(angle), np.sin(angle)
            place, momentum = cos * place + sin * momentum, cos * momentum - sin * place
            if number < n_steps:
                force = self._force(place[1])
                force[:, -1] += place[1, :, -1]  # a flat prior does not rotate the intercept
                momentum += self._pair(step * force)
        return place[0], energy - self._energy(place, momentum)

    def _energy(self, place: Array, momentum: Array) -> Array:
        """Minus the log density ``(C,)`` of pairs of a position and a momentum."""
        quadratic = self._sums(place[0, :, :-1] * place[1, :, :-1]) + self._sums(
            momentum[0] * momentum[1]
        )
        return 0.5 * quadratic - self._sums(log_ndtr(self._logits(place[1])))

    def leave(self, dual: Array, generators: list[np.random.Generator]) -> Array:
        """Whitened positions z ``(C, P)``, drawn given duals: first u given v and y, then z."""
        n, d = self.n_rows, self._design.shape[1]
        value = self._pair(dual.astype(np.float32))[1]
        normals = self._normals(generators, 2 * n + d)
        x = self._logits(value).astype(float)
        # both noises together, given the label
        both = -ndtri(ndtr(normals[:, :n].astype(float)) * ndtr(x))
        both = np.where(np.isfinite(both), both, -x).astype(np.float32)
        other = self._noise * np.float32(np.sqrt(LOGISTIC)) * normals[:, n : 2 * n]
        noise = (np.square(self._noise) * both + other) / self._total
        z = normals[:, 2 * n :]
        residual = value[:, :-1] + noise / self._norms - self._predictors(z)
        z = (z + self._back(self._solved(residual))).astype(float)
        level = value[:, -1] + self._sums(self._slope * z)
        return np.column_stack([z, level]) if self._level > 0 else z


def collapsed_rows(posterior: GLMPosterior, theta: Array) -> CollapsedRows | None:
    """Rows with independent noise integrated out; None if that is impossible or useless."""
    is_plain = type(posterior.likelihood) is Bernoulli and posterior.offset is None
    few = posterior.weight is None and 2 < posterior.n_samples <= posterior.n_params
    if not (is_plain and few and may_collapse(posterior)):
        return None
    try:
        return CollapsedRows(posterior, theta)
    except (ValueError, ArpackNoConvergence, np.linalg.LinAlgError):
        return None


def _terms(function: Any, low: float, high: float, error: float) -> list[float]:
    """Chebyshev coefficients on an interval, as many as this relative error needs."""
    x = np.linspace(low, high, 1001)
    for degree in range(2, 200):
        series = Chebyshev.interpolate(function, degree, [low, high])
        if np.abs(series(x) / function(x) - 1.0).max() < error:
            break
    return series.coef.tolist()
