"""A learned prior scale: quadrature for linear models, densities for importance sampling.

No code of the package is used.
"""

from __future__ import annotations

import numpy as np
from scipy import special

_POINTS = 160


def linear_quadrature(X, y, scale, shape, rate, variance=None):
    """Moments of (coefficients, intercept, noise variance unless known, tau).

    Given tau and the noise the coefficients are normal; both are integrated out on a grid. The
    intercept is flat, the noise variance inverse gamma, tau half-Cauchy.
    """
    n, d = X.shape
    A = np.column_stack([X * scale, np.ones(n)])
    S, r, square = A.T @ A, A.T @ y, y @ y
    log_tau = np.linspace(-9, 6, _POINTS)
    middle = np.log(np.var(y))
    gamma = np.linspace(middle - 6, middle + 3, _POINTS) if variance is None else np.log([variance])
    t, g = (part.ravel() for part in np.meshgrid(log_tau, gamma, indexing="ij"))
    P = S * np.exp(-g)[:, None, None]
    at = np.arange(d)
    P[:, at, at] += np.exp(-2 * t)[:, None]
    covariance = np.linalg.inv(P)
    mean = np.einsum("gij,j->gi", covariance, r) * np.exp(-g)[:, None]
    value = -0.5 * n * g - 0.5 * np.exp(-g) * square - d * t - 0.5 * np.linalg.slogdet(P)[1]
    value += 0.5 * np.einsum("gi,i->g", mean, r) * np.exp(-g)
    value += t - np.log1p(np.exp(2 * t))
    if variance is None:
        value -= shape * g + rate * np.exp(-g)
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    unit = np.append(np.broadcast_to(scale, d), 1.0)
    means, variances = mean * unit, np.einsum("gii->gi", covariance) * unit**2
    known = [np.exp(g)] * (variance is None) + [np.exp(t)]
    m = np.r_[weight @ means, [weight @ k for k in known]]
    second = np.r_[
        weight @ (variances + (means - m[: d + 1]) ** 2),
        [weight @ (k - c) ** 2 for k, c in zip(known, m[d + 1 :], strict=True)],
    ]
    return m, np.sqrt(second)


class LearnedScale:
    """Log density of (z, intercept, log tau) of a logistic model.

    The coefficients are ``z scale tau``: z does not shrink with tau, where one proposal would have
    to fit narrow and wide coefficients.
    """

    def __init__(self, X, y, scale):
        self.X, self.y, self.scale = X, y, scale
        self.P = X.shape[1] + 2

    def values(self, theta):
        """Coefficients, intercept and log tau."""
        return np.hstack([theta[:, :-2] * self.scale * np.exp(theta[:, -1:]), theta[:, -2:]])

    def __call__(self, theta):
        values = self.values(theta)
        eta = values[:, :-2] @ self.X.T + values[:, -2:-1]
        value = (self.y * eta - np.logaddexp(0, eta)).sum(1) - 0.5 * (theta[:, :-2] ** 2).sum(1)
        log_tau, d = theta[:, -1], self.P - 2
        return value + log_tau - 0.5 * np.exp(2 * log_tau) / (2.5**2 / d)  # tau is half-normal

    def start(self):
        """Small effects, the level of y, and tau = 1."""
        return np.r_[np.full(self.P - 2, 0.3), special.logit(self.y.mean()), 0.0]


def horseshoe_by_importance(X, y, unit, tau_unit, slab, df, shape, rate, n_draws=100_000, seed=0):
    """Means and sds under the regularised horseshoe, and what the weighted draws are worth.

    The hyperparameters are drawn from their prior and the noise from a t distribution; the
    coefficients, normal given both, are integrated out. The values are those of coefficients,
    intercept, and the logs of noise variance, tau, lambda and c.
    """
    rng, (n, d) = np.random.default_rng(seed), X.shape
    fit = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)[0]
    center = np.log(np.mean((y - X @ fit[:-1] - fit[-1]) ** 2))
    t = rng.standard_t(6, n_draws)
    gamma = center + 0.1 + 0.3 * t
    log_weight = 3.5 * np.log1p(t**2 / 6) - shape * gamma - rate * np.exp(-gamma)
    tau = tau_unit * np.exp(gamma / 2) * np.abs(rng.standard_cauchy(n_draws))
    local = np.abs(rng.standard_cauchy((n_draws, d)))
    square = df * slab**2 / 2 / rng.gamma(df / 2, size=n_draws)  # c^2
    product = (tau[:, None] * local) ** 2
    variance = unit**2 * square[:, None] * product / (square[:, None] + product)
    A = np.column_stack([X - X.mean(0), np.ones(n)])
    scaled = (A.T @ A) * np.exp(-gamma)[:, None, None]
    at = np.arange(d)
    scaled[:, at, at] += 1 / variance
    inverse = np.linalg.inv(scaled)
    centred = y - y.mean()
    mean = np.einsum("gij,j->gi", inverse, A.T @ centred) * np.exp(-gamma)[:, None]
    log_weight -= 0.5 * n * gamma + 0.5 * np.exp(-gamma) * (centred @ centred)
    log_weight += 0.5 * (mean @ (A.T @ centred)) * np.exp(-gamma)
    log_weight -= 0.5 * np.linalg.slogdet(scaled)[1] + 0.5 * np.log(variance).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    T = np.eye(d + 1)
    T[-1, :-1] = -X.mean(0)  # the intercept at X = 0
    means = mean @ T.T + np.append(np.zeros(d), y.mean())
    variances = (T @ inverse * T).sum(axis=2)
    hyper = np.column_stack([gamma, np.log(tau), np.log(local), 0.5 * np.log(square)])
    m = np.append(weight @ means, weight @ hyper)
    second = weight @ (variances + (means - m[: d + 1]) ** 2)
    sd = np.sqrt(np.append(second, weight @ (hyper - m[d + 1 :]) ** 2))
    return m, sd, 1 / np.sum(weight**2)
