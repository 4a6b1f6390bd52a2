"""Importance sampling of a normal regression with unequal noise; no code of the package is used."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from .references import Reference, from_draws

_DF = 8.0  # of the proposal, whose tails are heavier than the posterior's


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


def importance_sampling(target, n_draws=200_000, seed=0):
    """Reference by a multivariate t distribution around the mode."""

    def negative(theta):
        return -float(target(theta[None])[0])

    start = target.start()
    found = optimize.minimize(negative, start, method="BFGS", options={"gtol": 1e-4}).x
    H = _hessian(target, found)
    root = np.linalg.inv(np.linalg.cholesky(H)).T * 1.1
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((n_draws, target.P))
    shrink = np.sqrt(rng.chisquare(_DF, n_draws) / _DF)
    t = normal / shrink[:, None]
    theta = found + t @ root.T
    log_weight = np.concatenate([target(part) for part in np.array_split(theta, 20)])
    log_weight += 0.5 * (_DF + target.P) * np.log1p((t**2).sum(1) / _DF)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    effective = 1.0 / np.sum(weight**2)
    problems = (
        [] if effective > 0.2 * n_draws else [f"importance sampling: {effective:.0f} draws' worth"]
    )
    worth = f"{effective:,.0f} draws"
    return Reference("importance sampling", worth, *from_draws(theta, weight), problems=problems)


def _hessian(target, theta):
    """Minus the Hessian by central differences, each step in the parameter's own unit."""
    P = target.P
    step = np.full(P, 1e-4)
    for _ in range(2):  # the second time in units of the sds that the first has found
        moves = np.eye(P) * step
        H = np.empty((P, P))
        for j in range(P):
            four = np.concatenate(
                [theta + s * moves[j] + r * moves for s, r in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            )
            a, b, c, e = target(four).reshape(4, P)
            H[j] = -(a - b - c + e) / (4 * step[j] * step)
        H = 0.5 * (H + H.T)
        step = 0.05 / np.sqrt(np.abs(np.diag(H)))
    return H
