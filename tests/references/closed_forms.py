"""Reference posteriors that share no code with the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from arviz_stats.base import array_stats
from scipy import optimize, special, stats

from .references import from_draws


@dataclass
class Moments:
    """Mean and sd of each parameter, and how many independent draws they are worth."""

    mean: np.ndarray
    sd: np.ndarray
    ess: float = np.inf


def normal_inverse_gamma(
    X,
    y,
    *,
    shape,
    rate,
    scale=1.0,
    V=None,
    location=0.0,
    intercept=(0.0, np.inf),
    fit_intercept=True,
):
    """Posterior of (beta, intercept, sigma^2), beta | sigma^2 ~ N(location, sigma^2 V).

    V is scale^2 I where it is None. The intercept has this mean and this variance over sigma^2; an
    infinite one is the flat prior, which takes half a degree of freedom. sigma^2 ~ IG(shape, rate).
    Closed form: (beta, intercept) is multivariate t, sigma^2 inverse gamma.
    """
    n, d = X.shape
    A = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    prior, at = np.zeros((A.shape[1], A.shape[1])), np.zeros(A.shape[1])
    prior[:d, :d] = np.eye(d) / scale**2 if V is None else np.linalg.inv(V)
    at[:d] = location
    if fit_intercept:
        at[d], prior[d, d] = intercept[0], 1.0 / intercept[1]
    precision = A.T @ A + prior
    mean = np.linalg.solve(precision, A.T @ y + prior @ at)
    a = shape + (n - (fit_intercept and np.isinf(intercept[1]))) / 2
    b = rate + 0.5 * (np.sum((y - A @ mean) ** 2) + (at - mean) @ prior @ (at - mean))
    sd = np.sqrt(np.diag(np.linalg.inv(precision)) * b / (a - 1))
    variance = stats.invgamma(a, scale=b)
    return Moments(np.r_[mean, variance.mean()], np.r_[sd, variance.std()])


def logistic_log_density(X, y, scale):
    """Log posterior (one theta a row) of (beta, intercept), beta ~ N(0, scale^2)."""
    sign = 2.0 * y - 1.0

    def log_density(theta):
        margin = sign * (theta[:, :-1] @ X.T + theta[:, -1:])
        # log(1 + exp(-margin)), in three quarters of the time of np.logaddexp
        loss = np.log(1.0 + np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)
        return -loss.sum(1) - 0.5 * (theta[:, :-1] ** 2).sum(1) / scale**2

    return log_density


def laplace_fit(log_density, n_params=None, start=None):
    """Mode, and the inverse of minus the Hessian there, by central differences."""

    def loss(theta):
        return -log_density(theta[None])[0]

    start = np.zeros(n_params) if start is None else start
    for _ in range(2):  # BFGS ends early; begun again, it goes on
        start = optimize.minimize(loss, start, method="BFGS").x
    unit = np.eye(len(start))
    step = np.full(len(start), 1e-3)
    for _ in range(2):  # the second time by steps of the sds that the first has found
        moves = unit * step
        pairs = [
            start + s * a + t * b for a in moves for b in moves for s in (1, -1) for t in (1, -1)
        ]
        value = log_density(np.array(pairs)).reshape(len(start), len(start), 4)
        H = -(value @ [1.0, -1.0, -1.0, 1.0]) / (4.0 * np.outer(step, step))
        step = 0.05 / np.sqrt(np.abs(np.diagonal(H)))
    return start, np.linalg.inv(H)


def weighted_draws(log_density, mode, covariance, n_draws=200_000, df=8, seed=0):
    """Draws ``(S, P)`` of a multivariate t, and the weights that make them draws of a density."""
    rng, P = np.random.default_rng(seed), len(mode)
    u = rng.chisquare(df, n_draws) / df
    z = rng.standard_normal((n_draws, P)) / np.sqrt(u)[:, None]
    theta = mode + z @ np.linalg.cholesky(covariance).T
    blocks = np.array_split(theta, max(1, n_draws // 5000))
    log_weight = np.concatenate([log_density(block) for block in blocks])
    return theta, special.softmax(log_weight + (df + P) / 2 * np.log1p((z**2).sum(1) / df))


def adapted_draws(log_density, mean, covariance, n_draws=50_000):
    """``weighted_draws`` whose t has the mean and covariance that two rounds of draws have found.

    A posterior of few rows is skewed: draws of a t at its mode may be worth a hundredth of them.
    """
    for seed in range(2):
        theta, weight = weighted_draws(log_density, mean, covariance, n_draws, seed=seed)
        mean = weight @ theta
        covariance = (theta - mean).T @ ((theta - mean) * weight[:, None])
    return weighted_draws(log_density, mean, covariance, n_draws, seed=2)


def z_scores(chains, theta, weight):
    """Differences of chains ``(C, T, P)`` from weighted draws, in standard errors ``(4, P)``.

    The rows are the mean, the mean square about it, and the shares below the 5 % and the 95 %
    quantile of the weighted draws. The standard error has the Monte Carlo errors of both.
    """
    mean, _, (low, high), _ = from_draws(theta, weight)

    def features(x):
        return np.stack([x, (x - mean) ** 2, x < low, x < high], axis=-2).astype(float)

    here, there = features(chains), features(theta)
    expected = np.tensordot(weight, there, 1)
    error = np.sqrt(np.tensordot(weight**2, (there - expected) ** 2, 1))
    own = array_stats.mcse(here, chain_axis=0, draw_axis=1, method="mean")
    return (here.mean(axis=(0, 1)) - expected) / np.hypot(own, error)


def importance_sampling(*proposal, transform=lambda theta: theta, **settings):
    """Moments of ``transform(theta)`` by ``weighted_draws``."""
    theta, weight = weighted_draws(*proposal, **settings)
    values = transform(theta)
    mean = weight @ values
    return Moments(mean, np.sqrt(weight @ (values - mean) ** 2), 1.0 / (weight**2).sum())
