"""Sufficient statistics of the normal linear model: its gradient for all rows in O(d^2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skbayes_sgld._linalg import column_means, matmul_rows, row_blocks

Array = NDArray[Any]


class GaussianStatistics:
    """Residual sum of squares as a function of the coefficients, without the rows.

    With delta = beta - reference and b the intercept at the mean of X,
    ``RSS = rss - 2 delta' c + delta' S delta + W (b - y_mean)^2``. The reference is the least
    squares solution: in an expansion around it nothing cancels when the fit is close.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    centred : bool
        Whether to subtract the means of X and y, as the model has an intercept.
    """

    def __init__(self, X: Array, y: Array, weight: Array | None, centred: bool) -> None:
        n_rows, d = X.shape
        w = np.ones(n_rows) if weight is None else weight
        self.total_weight = float(w.sum())
        self.x_mean = column_means(X, weight) if centred else np.zeros(d)
        self.y_mean = float(np.average(y, weights=w)) if centred else 0.0
        self.gram = np.zeros((d, d))
        moment = np.zeros(d)
        for rows, Xc in row_blocks(X, self.x_mean):
            Xw = Xc if weight is None else Xc * weight[rows, None]
            self.gram += Xw.T @ Xc
            moment += Xw.T @ (y[rows] - self.y_mean)
        scale = np.sqrt(np.where(np.diagonal(self.gram) > 0, np.diagonal(self.gram), 1.0))
        unit = linalg.lstsq(self.gram / scale[:, None] / scale, moment / scale, cond=1e-12)[0]
        self.reference = unit / scale
        self.cross = np.zeros(d)
        self.rss = 0.0
        for rows, Xc in row_blocks(X, self.x_mean):
            residual = y[rows] - self.y_mean - Xc @ self.reference
            self.cross += Xc.T @ (w[rows] * residual)
            self.rss += float(w[rows] @ np.square(residual))

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
