"""Density of a normal regression with unequal noise; no code of the package is used."""

from __future__ import annotations

import numpy as np


class UnequalNoise:
    """Log density of (coefficients, intercept, slopes of log sigma, its level at X = 0).

    Coefficients are N(0, scale^2), in units of the noise at the mean of the columns where
    ``conjugate``; the slopes are N(0, slope_scale^2); the variance at that mean is inverse gamma;
    the intercept is flat.
    """

    def __init__(self, X, y, weight, columns, scale, slope_scale, shape, rate, conjugate=False):
        self.X, self.y, self.w, self.Z = X, y, weight, X[:, columns]
        self.scale, self.slope_scale = scale, slope_scale
        self.shape, self.rate, self.conjugate = shape, rate, conjugate
        self.d, self.m = X.shape[1], len(columns)
        self.P = self.d + self.m + 2
        self.z_mean = weight @ self.Z / weight.sum()

    def __call__(self, theta):
        d = self.d
        beta, level = theta[:, :d], theta[:, d]
        alpha, at_zero = theta[:, d + 1 : -1], theta[:, -1]
        log_sigma = at_zero[:, None] + alpha @ self.Z.T
        residual = self.y - beta @ self.X.T - level[:, None]
        value = (-log_sigma - 0.5 * residual**2 * np.exp(-2 * log_sigma)) @ self.w
        middle = at_zero + alpha @ self.z_mean  # log sigma at the mean of the columns
        unit = middle if self.conjugate else np.zeros_like(middle)
        value -= d * unit + 0.5 * ((beta / self.scale) ** 2).sum(1) * np.exp(-2 * unit)
        value -= 0.5 * ((alpha / self.slope_scale) ** 2).sum(1)
        return value - 2 * self.shape * middle - self.rate * np.exp(-2 * middle)

    def start(self):
        """Least squares, and the noise of its residuals."""
        A = np.column_stack([self.X, np.ones(len(self.y))])
        fit = np.linalg.lstsq(A * np.sqrt(self.w)[:, None], self.y * np.sqrt(self.w), rcond=None)[0]
        return np.r_[fit, np.zeros(self.m), np.log(np.std(self.y - A @ fit))]
