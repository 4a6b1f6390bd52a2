"""Sufficient statistics of the normal linear model: its gradient for all rows in O(d^2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import matmul_rows, row_parts, sum_in_threads
from skbayes_sgld.posterior.sparse_table import SparseTable

Array = NDArray[Any]

_TYPICAL = 1000  # rows whose mean is the origin of the sums
_LOSS = 10.0  # share of a sum of squares that may be due to the origin
_CONDITIONED = 1e-9  # reciprocal condition from which a Cholesky factor solves as exactly
_SHARED_NUMBERS = 2**20  # in X, from which its sums cost more than what a fit does besides
_CLOSE = 1e-4  # share of the sums of squares below which that of the residuals loses digits

Shared = dict[tuple[Any, ...], tuple[Array, Array]]
_shared: ContextVar[Shared | None] = ContextVar("sums of products that targets share", default=None)


@contextmanager
def shared_columns() -> Iterator[None]:
    """Context of fits of several targets, in which the columns they share are summed once.

    The rows and weights of the fits must be the same. An X that is copied is not shared.
    """
    token = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(token)


class GaussianStatistics:
    """Residual sum of squares as a function of the coefficients, without the rows.

    With delta = beta - reference and b the intercept at the mean of X,
    ``RSS = rss - 2 delta' c + delta' S delta + W (b - y_mean)^2``. The reference is the least
    squares solution: in an expansion around it nothing cancels when the fit is close.

    One pass over the rows sums products of deviations from a typical row; a second one is made
    where these would lose digits, as the means are far from it or the fit is close.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    centred : bool
        Whether to subtract the means of X and y, as the model has an intercept.
    """

    def __init__(self, X: Array, y: Array, weight: Array | None, centred: bool) -> None:
        d = X.shape[1]
        data = table_of(X, y, weight)
        origin = data.typical_row() if centred else np.zeros(d + 1)
        products = data.products(origin)
        mean = products[-1, :-1] / products[-1, -1]
        spread = np.diagonal(products)[:-1] - mean * products[-1, :-1]
        if centred and np.any(np.diagonal(products)[:-1] > _LOSS * spread):
            origin = origin + mean
            products = data.products(origin)
            mean = products[-1, :-1] / products[-1, -1]
        self.total_weight = float(products[-1, -1])
        about = products[:-1, :-1]
        if centred:
            about = about - np.outer(products[-1, :-1], mean)
        else:
            mean = np.zeros(d + 1)
        self.x_mean, self.y_mean = (origin + mean)[:d], float((origin + mean)[d])
        self.gram, moment = np.ascontiguousarray(about[:d, :d]), about[:d, d]
        scale = np.sqrt(np.where(np.diagonal(self.gram) > 0, np.diagonal(self.gram), 1.0))
        unit = _solve(self.gram / scale[:, None] / scale, moment / scale)
        self.reference = unit / scale
        self.cross = moment - self.gram @ self.reference
        self.rss = float(about[d, d] - self.reference @ (moment + self.cross))
        if self.rss < _CLOSE * max(float(about[d, d]), float(unit @ unit)):
            center = np.append(self.x_mean, self.y_mean)
            residuals = data.residual_products(center, self.reference)
            self.cross, self.rss = residuals[:-1], float(residuals[-1])

    def residual_sum(self, coef: Array, level: Array) -> tuple[Array, Array, Array]:
        """Residual sum of squares, and minus half its gradient.

        Parameters
        ----------
        coef : ndarray of shape (C, d)
        level : ndarray of shape (C,)
            Intercept at the mean of X.

        Returns
        -------
        rss : ndarray of shape (C,)
        in_coef : ndarray of shape (C, d)
        in_level : ndarray of shape (C,)
        """
        delta = coef - self.reference
        in_coef = self.cross - matmul_rows(delta, self.gram)
        offset = self.y_mean - level
        in_level = self.total_weight * offset
        rss = self.rss - np.einsum("cd,cd->c", delta, in_coef + self.cross) + in_level * offset
        return rss, in_coef, in_level

    def value_and_grad(
        self,
        coef: Array,
        level: Array,
        variance: Array | float,
        log_variance: Array | float,
        at_mean: bool,
    ) -> tuple[Array, Array, Array, Array]:
        """Log likelihood and its gradient.

        Parameters
        ----------
        coef : ndarray of shape (C, d)
        level : ndarray of shape (C,)
            Intercept; zero in a model without one.
        variance, log_variance : ndarray of shape (C,) or float
            Variance of the noise, and its logarithm.
        at_mean : bool
            Whether ``level`` is the intercept at the mean of X rather than at X = 0.

        Returns
        -------
        value : ndarray of shape (C,)
        in_coef : ndarray of shape (C, d)
        in_level : ndarray of shape (C,)
        in_log_variance : ndarray of shape (C,)
        """
        if not at_mean:
            level = level + np.einsum("cd,d->c", coef, self.x_mean)
        rss, in_coef, in_level = self.residual_sum(coef, level)
        if not at_mean:
            in_coef = in_coef + in_level[:, None] * self.x_mean
        value = -0.5 * (self.total_weight * (np.log(2 * np.pi) + log_variance) + rss / variance)
        in_log_variance = 0.5 * (rss / variance - self.total_weight)
        scale = np.reshape(variance, (-1, 1))
        return value, in_coef / scale, in_level / scale[:, 0], in_log_variance

    def of_theta(
        self,
        theta: Array,
        variance: Array | float,
        gamma: Array | None,
        has_level: bool,
        at_mean: bool,
    ) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient in ``theta (C, P)``.

        ``gamma`` is the last column of theta, the log variance, or None where it is known;
        ``has_level`` is whether there is an intercept, and the rest as in :meth:`value_and_grad`.
        """
        d = len(self.x_mean)
        value, in_coef, in_level, in_gamma = self.value_and_grad(
            theta[:, :d],
            theta[:, d] if has_level else np.zeros(len(theta)),
            variance,
            np.log(variance) if gamma is None else gamma,
            at_mean,
        )
        grad = np.empty_like(theta)
        grad[:, :d] = in_coef
        if has_level:
            grad[:, d] = in_level
        if gamma is not None:
            grad[:, -1] = in_gamma
        return value, grad

    def curvature_of_theta(
        self,
        theta: Array,
        variance: Array | float,
        gamma: Array | None,
        has_level: bool,
        at_mean: bool,
    ) -> Array:
        """Minus the Hessian of the log likelihood ``(P, P)``, a mean over ``theta (C, P)``."""
        n_linear = len(self.x_mean) + has_level
        of_linear = np.mean(1.0 / variance) * self.curvature(n_linear, at_mean)
        if gamma is None:
            return of_linear
        H = np.empty((n_linear + 1, n_linear + 1))
        H[:-1, :-1] = of_linear
        _, grad = self.of_theta(theta, variance, gamma, has_level, at_mean)
        H[-1] = H[:, -1] = grad.mean(axis=0)
        H[-1, -1] += 0.5 * self.total_weight
        return H

    def curvature(self, n_linear: int, at_mean: bool) -> Array:
        """Half the second derivative of RSS in coefficients and intercept ``(n_linear, n_linear)``.

        Parameters
        ----------
        n_linear : int
            Number of coefficients, plus 1 in a model with an intercept.
        at_mean : bool
            Whether the intercept is that at the mean of X rather than at X = 0.
        """
        d = len(self.x_mean)
        H = np.zeros((n_linear, n_linear))
        H[:d, :d] = self.gram
        if n_linear > d:
            mean = np.append(np.zeros(d) if at_mean else self.x_mean, 1.0)
            H += self.total_weight * np.outer(mean, mean)
        return H


class _Table:
    """The rows of X with y as a last column, which are read in blocks."""

    def __init__(self, X: Array, y: Array, weight: Array | None) -> None:
        self._X, self._y = X, y
        self._root = None if weight is None else np.sqrt(weight)

    def typical_row(self) -> Array:
        """Mean of some of the rows, from all parts of the table ``(d + 1,)``."""
        some = slice(None, None, max(1, len(self._y) // _TYPICAL))
        rows = np.ascontiguousarray(np.column_stack([self._X[some], self._y[some]]), np.float64)
        # a mean of equal numbers may differ from them in the last digit
        return np.where(np.ptp(rows, axis=0) == 0, rows[0], rows.mean(axis=0))

    def products(self, origin: Array) -> Array:
        """Sums of products of the columns less ``origin``, and of ones, ``(d + 2, d + 2)``.

        Those of the columns of X alone are taken from an earlier target's, where they are shared.
        """
        known = _shared.get()
        if known is None or self._X.size < _SHARED_NUMBERS:
            return self._sum(self._products, origin)
        view = self._X.__array_interface__
        key = (view["data"], view["strides"], self._X.shape, self._X.dtype, origin[:-1].tobytes())
        if key not in known:  # with X itself, whose memory is then not used for something else
            known[key] = self._X, self._sum(self._products, origin)
            return known[key][1]
        total = known[key][1].copy()
        total[-2] = total[:, -2] = self._sum(self._target_products, origin)
        return total

    def _sum(self, work: Callable[[Array, list[slice]], Array], origin: Array) -> Array:
        return sum_in_threads(partial(work, origin), self._parts(len(origin) + 1))

    def _target_products(self, origin: Array, blocks: list[slice]) -> Array:
        """Row of the products that belongs to y ``(d + 2,)``."""
        total = np.zeros(len(origin) + 1)
        buffer = np.empty((blocks[0].stop - blocks[0].start, len(total)))
        for rows in blocks:
            block = self._deviations(rows, origin, buffer)
            total += block[:, -2] @ block
        return total

    def _parts(self, width: int) -> list[list[slice]]:
        n_rows, n_columns = self._X.shape
        return row_parts(n_rows, n_columns, width, width * width)

    def _products(self, origin: Array, blocks: list[slice]) -> Array:
        total = np.zeros((len(origin) + 1, len(origin) + 1))
        buffer = np.empty((blocks[0].stop - blocks[0].start, len(total)))
        for rows in blocks:
            block = self._deviations(rows, origin, buffer)
            total += block.T @ block
        return total

    def _deviations(self, rows: slice, origin: Array, buffer: Array) -> Array:
        """Rows less ``origin``, with ones behind, times the roots of their weights."""
        block = buffer[: rows.stop - rows.start]
        np.subtract(self._X[rows], origin[:-1], out=block[:, :-2])
        np.subtract(self._y[rows], origin[-1], out=block[:, -2])
        block[:, -1] = 1.0
        if self._root is not None:
            block *= self._root[rows, None]
        return block

    def residual_products(self, center: Array, coef: Array) -> Array:
        """Sums of products of the residuals with the columns, and with themselves ``(d + 1,)``."""
        work = partial(self._residual_products, center, coef)
        return sum_in_threads(work, self._parts(len(center) + 1))

    def _residual_products(self, center: Array, coef: Array, blocks: list[slice]) -> Array:
        total = np.zeros(len(center))
        buffer = np.empty((blocks[0].stop - blocks[0].start, len(center) + 1))
        for rows in blocks:
            block = self._deviations(rows, center, buffer)
            residual = block[:, -2] - block[:, :-2] @ coef
            total[:-1] += residual @ block[:, :-2]
            total[-1] += residual @ residual
        return total


def _solve(gram: Array, moment: Array) -> Array:
    """Least squares solution, of least norm where the columns are collinear."""
    lower, fails = linalg.lapack.dpotrf(gram, lower=1)
    if not fails:
        norm = np.abs(gram).sum(axis=0).max()
        conditioned, _ = linalg.lapack.dpocon(lower, norm, uplo="L")
        if conditioned > _CONDITIONED:  # in a twentieth of the time
            return linalg.cho_solve((lower, True), moment)
    return linalg.lstsq(gram, moment, cond=1e-12)[0]


def table_of(X: Any, y: Array, weight: Array | None) -> Any:
    """Rows of X, dense or sparse, with y as a last column, as sums of products read them."""
    return SparseTable(X, y, weight) if issparse(X) else _Table(X, y, weight)
