r"""Rows of a generalised linear model in the coordinates of a metric: no product with the metric.

With centre m and a metric ``R R^T = H^{-1}``, ``H = X^T W X + Lambda``, W a weight a row and Lambda
the precision of a normal prior, ``theta = m + R z``. The predictors are ``u = X m + A z`` with
``A = X R``, and since ``R^T Lambda R = I - A^T W A`` the log posterior is, but for a constant,

.. math:: \log L(X m + A z) + (R^T s)^T z + \tfrac12 \sum_i W_i (A z)_i^2 - \tfrac12 z^T z,

with s the gradient of the log prior at m: neither it nor its gradient takes a product with a matrix
of parameters by parameters. A step of leapfrog reads A once, in single precision.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import (
    equal_slices,
    in_threads,
    matmul_rows,
    one_blas_thread,
    sum_in_threads,
)
from skbayes_sgld.posterior.among_rows import AmongRows, RowBlock
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.rounded_hessian import rounded_gram
from skbayes_sgld.posterior.whitening import WhitenedPosterior

Array = NDArray[Any]

# Positions of a product, whose rounding then does not depend on how many there are: a product of
# 64 takes 1.5 times as long as one of 32, and that 1.3 times as long as one of 16
_GROUP = 64
_BLOCK = 1024  # rows
_PART_NUMBERS = 2**20  # numbers of A from which threads share a pass
_LEAST = 1e-3  # weight of a row, of the mean weight: the metric stays positive definite
_SHARES = 0.01, 1.0  # of the mean curvatures, in the weights that match draws
_PROBES = 4
_FEW_ROWS = 1.5  # a parameter: a product with all pairs of them is the cheaper one
_ERROR = 0.02  # of a log density, or of a gradient: an acceptance ratio changes by as little


class _LinearModel(Protocol):
    """The members of a generalised linear model that are whitened."""

    X: Array
    n_samples: int
    n_params: int
    y: Array
    weight: Array | None
    n_predictors: int
    likelihood: Likelihood

    @property
    def light_tailed(self) -> bool: ...
    def design(self, rows: slice) -> Array: ...
    def _weighted_curvature(self, theta: Array, rows: slice) -> Array: ...
    def value_and_grad(self, theta: Array) -> tuple[Array, Array]: ...
    def log_prior(self, theta: Array) -> Array: ...
    def grad_log_prior(self, theta: Array) -> Array: ...
    def add_prior_curvature(self, H: Array, theta: Array) -> None: ...


class WhitenedRows(WhitenedPosterior):
    """The posterior of z, for any number of positions.

    Parameters
    ----------
    posterior : GLMPosterior
        With one linear predictor and a normal prior.
    center : ndarray of shape (P,)
        m.
    weights : ndarray of shape (n,)
        W, positive.

    Raises
    ------
    numpy.linalg.LinAlgError
        When H is not positive definite.
    """

    n_together = n_fewest = group = _GROUP

    def __init__(self, posterior: _LinearModel, center: Array, weights: Array) -> None:
        self.center, self._posterior = center, posterior
        n, P = posterior.n_samples, posterior.n_params
        self.n_params, self.param_names = P, [f"z[{j}]" for j in range(P)]
        n_parts = 1 if n * P < _PART_NUMBERS else 2 if n * P < 4 * _PART_NUMBERS else 4
        parts = equal_slices(n, n_parts)
        weights = np.maximum(weights, _LEAST * weights.mean())
        with one_blas_thread():
            H = rounded_gram(posterior, weights)
            posterior.add_prior_curvature(H, center)
            lower = linalg.cholesky(H, lower=True, check_finite=False)
            inverse, _ = linalg.lapack.dtrtri(lower, lower=1)
            self.inverse, self.root, self.inverse_t = H, np.ascontiguousarray(inverse.T), lower
            build = partial(_whiten, posterior, center, weights, self.root.astype(np.float32))
            self._parts = in_threads(build, parts)
        squares = [np.einsum("bp,bp->b", b.seen, b.seen) for part in self._parts for b in part]
        self.softness = float(1.0 / np.sqrt(np.median(np.concatenate(squares))))
        self._few_rows = n <= _FEW_ROWS * P
        self.work = float(n * n if self._few_rows else 2 * n * P)
        self._slope = self.root.T @ posterior.grad_log_prior(center[None])[0]
        self._level = float(posterior.log_prior(center[None])[0])

    @cached_property
    def _among_rows(self) -> AmongRows:
        return AmongRows(self._parts, self._slope)

    def travel(self, z: Array, momentum: Array, maps: Array, n_steps: int) -> tuple[Array, Array]:
        """Ends of trajectories, followed by the rows' predictors where these are few."""
        if not self._few_rows:
            return super().travel(z, momentum, maps, n_steps)
        place, moving = _grouped(z), _grouped(momentum)
        filled = np.zeros((place[..., 0].size, *maps.shape[1:]))
        filled[: len(z)] = maps
        by_group = np.moveaxis(filled.reshape(*place.shape[:2], 3, 2, 3), (0, 1), (3, 4))
        with np.errstate(over="ignore"):
            ends = self._among_rows.travel(place, moving, by_group, n_steps)
        z, momentum = (end.reshape(-1, self.n_params)[: len(z)] for end in ends)
        return z, momentum

    def force(self, place: Array) -> Array:
        """Gradient at positions ``(C, P)``."""
        left = _grouped(place)
        with np.errstate(over="ignore"):
            sums = sum_in_threads(partial(_force, left), self._parts)
        force: Array = sums.reshape(-1, place.shape[1])[: len(place)]
        force += self._slope.astype(np.float32)
        force -= place
        return force

    def log_density(self, z: Array) -> Array:
        """Log density ``(C,)`` at ``z (C, P)``; only a product is rounded."""
        left = _grouped(z)
        with np.errstate(over="ignore"):
            sums = sum_in_threads(partial(_value, self._posterior, left), self._parts)
        value = sums[: len(z)] + self._level
        # einsum, unlike matmul, rounds a chain alike whatever the number of chains
        value += np.einsum("cp,p->c", z, self._slope) - 0.5 * np.einsum("cp,cp->c", z, z)
        return value

    def locate(self, z: Array) -> Array:
        """``center + root z`` for each row of ``z (C, P)``."""
        parts = [self.root[part].T for part in equal_slices(self.n_params, len(self._parts))]
        return self.center + np.hstack(in_threads(partial(matmul_rows, z, group=_GROUP), parts))

    def matched(self, draws: Array, temperature: float) -> WhitenedRows:
        """Rows about the mean of ``draws (S, P)`` of theta, in a metric that fits these.

        The weights are in proportion to the rows' mean curvatures, and such that the mean variance
        of the whitened draws is the temperature. The mean curvatures themselves make a metric that
        is too narrow: their inverse is no wider than the covariance, and much narrower where the
        rows bound their predictors as walls do.

        A row that is mostly certain has its curvature from the few draws that are near its wall.
        The mean is over a smooth density of its predictor, of normal kernels that leave its
        variance as it is (Jones 1991): few draws are then worth as much as many.
        """
        posterior, center = self._posterior, draws.mean(axis=0)
        weights, variance = np.empty((2, posterior.n_samples))
        # share of the variance (Silverman 1986, eq. 3.28)
        smoothing = min((4.0 / (3.0 * len(draws))) ** 0.4, 1.0)
        with one_blas_thread():
            for start in range(0, posterior.n_samples, _BLOCK):
                rows = slice(start, min(start + _BLOCK, posterior.n_samples))
                design = posterior.design(rows)
                moved = (draws - center) @ design.T
                variance[rows] = moved.var(axis=0)
                u = design @ center + np.sqrt(1.0 - smoothing) * moved
                spread = smoothing * variance[rows]
                _, bend = posterior.likelihood.averaged(u, spread, posterior.y[rows])
                weights[rows] = bend.mean(axis=0)
        if posterior.weight is not None:
            weights *= posterior.weight
        slope = posterior.grad_log_prior(np.vstack([center, draws]))
        of_prior = -np.einsum("sp,sp->", slope[1:] - slope[0], draws - center) / len(draws)
        of_rows = self.n_params * temperature - of_prior
        share = float(np.clip(of_rows / (weights @ variance), *_SHARES))
        return WhitenedRows(posterior, center, share * weights)


def whiten_rows(posterior: _LinearModel, center: Array, weights: Array) -> WhitenedRows | None:
    """Rows in the metric of the weights; None where rounding shows, or a likelihood has no kernel.

    It shows on nearly collinear columns, whose coefficients cancel.
    """
    if posterior.likelihood.bind_rows(np.empty(0), None, np.float32) is None:
        return None
    if not posterior.light_tailed or posterior.n_predictors > 1 or issparse(posterior.X):
        return None
    try:
        rows = WhitenedRows(posterior, center, weights)
    except np.linalg.LinAlgError:
        return None
    z = np.random.default_rng(0).standard_normal((_PROBES, posterior.n_params))
    exact, slope = posterior.value_and_grad(center + z @ rows.root.T)
    value, grad = rows.value_and_grad(z)
    error = np.abs(value - exact).max(), np.linalg.norm(grad - slope @ rows.root, axis=1).max()
    return rows if max(error) < _ERROR else None


def _whiten(
    posterior: _LinearModel, center: Array, weights: Array, root: Array, part: slice
) -> list[RowBlock]:
    """Blocks of signed rows times the root."""
    blocks = []
    for start in range(part.start, part.stop, _BLOCK):
        rows = slice(start, min(start + _BLOCK, part.stop))
        y, w = posterior.y[rows], None if posterior.weight is None else posterior.weight[rows]
        kernel = posterior.likelihood.bind_rows(y, w, np.float32)
        assert kernel is not None
        design = posterior.design(rows)
        if kernel.signs is not None:
            design *= kernel.signs[:, None]
        seen = design.astype(np.float32) @ root
        blocks.append(RowBlock(rows, seen, design @ center, weights[rows], kernel))
    return blocks


def _grouped(z: Array) -> Array:
    """Positions in groups ``(n_groups, _GROUP, P)`` in single precision, the last filled up."""
    n_groups = -(-len(z) // _GROUP)
    left = np.zeros((n_groups * _GROUP, z.shape[1]), np.float32)
    left[: len(z)] = z
    return left.reshape(n_groups, _GROUP, -1)


def _force(left: Array, blocks: list[RowBlock]) -> Array:
    """Sum over the rows of ``(score + W A z) A``."""
    total = np.zeros(left.shape)
    for block in blocks:
        total += np.matmul(block.pull(np.matmul(left, block.seen.T)), block.seen)
    return total


def _value(posterior: _LinearModel, left: Array, blocks: list[RowBlock]) -> Array:
    """Sum over the rows of log likelihood and ``W (A z)^2 / 2``."""
    value = np.zeros(left.shape[0] * left.shape[1])
    for rows, seen, shift, weight, kernel in blocks:
        moved = np.matmul(left, seen.T).astype(float)
        u = (moved + shift).reshape(-1, 1, len(seen))
        if kernel.signs is not None:
            u *= kernel.signs
        log_density = posterior.likelihood.log_density(u, posterior.y[rows])
        if posterior.weight is not None:
            log_density = log_density * posterior.weight[rows]
        square = np.einsum("gcb,gcb,b->gc", moved, moved, weight).ravel()
        value += log_density.sum(axis=1) + 0.5 * square
    return value
