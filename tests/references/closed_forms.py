"""Reference posteriors that share no code with the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats


@dataclass
class Moments:
    """Mean and sd of each parameter, and how many independent draws they are worth."""

    mean: np.ndarray
    sd: np.ndarray
    ess: float = np.inf


def normal_inverse_gamma(X, y, *, scale, shape, rate, fit_intercept=True):
    """Posterior of (beta, intercept, sigma^2), beta | sigma^2 ~ N(0, sigma^2 scale^2 I).

    The intercept is flat, sigma^2 ~ IG(shape, rate). Closed form: (beta, intercept) is
    multivariate t, sigma^2 inverse gamma.
    """
    n, d = X.shape
    A = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    prior_precision = np.r_[np.full(d, scale**-2.0), np.zeros(A.shape[1] - d)]
    precision = A.T @ A + np.diag(prior_precision)
    mean = np.linalg.solve(precision, A.T @ y)
    residual = y - A @ mean
    a = shape + (n - fit_intercept) / 2
    b = rate + 0.5 * (residual @ residual + prior_precision @ mean**2)
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


def laplace_fit(log_density, n_params):
    """Mode and the inverse of a finite-difference Hessian there."""
    found = optimize.minimize(lambda t: -log_density(t[None])[0], np.zeros(n_params), method="BFGS")
    mode = optimize.minimize(lambda t: -log_density(t[None])[0], found.x, method="BFGS").x
    h = 1e-3
    unit = h * np.eye(n_params)
    pairs = [mode + s * a + t * b for a in unit for b in unit for s in (1, -1) for t in (1, -1)]
    value = log_density(np.array(pairs)).reshape(n_params, n_params, 2, 2)
    hessian = (value[..., 0, 0] - value[..., 0, 1] - value[..., 1, 0] + value[..., 1, 1]) / (
        4 * h * h
    )
    return mode, np.linalg.inv(-hessian)


def importance_sampling(
    log_density, mode, covariance, n_draws=200_000, df=8, seed=0, transform=lambda theta: theta
):
    """Moments of transform(theta) by importance sampling from a multivariate t."""
    rng = np.random.default_rng(seed)
    P = len(mode)
    root = np.linalg.cholesky(covariance)
    z = rng.standard_normal((n_draws, P))
    u = rng.chisquare(df, n_draws) / df
    theta = mode + (z / np.sqrt(u)[:, None]) @ root.T
    log_proposal = -0.5 * (df + P) * np.log1p((z**2).sum(1) / u / df)
    blocks = np.array_split(np.arange(n_draws), max(1, n_draws // 5000))
    log_weight = np.concatenate([log_density(theta[b]) for b in blocks]) - log_proposal
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    values = transform(theta)
    mean = w @ values
    return Moments(mean, np.sqrt(w @ (values - mean) ** 2), 1.0 / (w**2).sum())


def metropolis(log_density, mode, covariance, n_steps=6000, n_chains=64, seed=0):
    """Moments by a random-walk Metropolis run with the Laplace covariance."""
    rng = np.random.default_rng(seed)
    P = len(mode)
    root = np.linalg.cholesky(covariance) * 2.38 / np.sqrt(P)
    theta = mode + rng.standard_normal((n_chains, P)) @ root.T
    value = log_density(theta)
    total, square, kept = np.zeros((n_chains, P)), np.zeros((n_chains, P)), 0
    for step in range(n_steps):
        proposal = theta + rng.standard_normal((n_chains, P)) @ root.T
        new = log_density(proposal)
        accept = np.log(rng.random(n_chains)) < new - value
        theta = np.where(accept[:, None], proposal, theta)
        value = np.where(accept, new, value)
        if step >= n_steps // 10:
            total, square, kept = total + theta, square + theta**2, kept + 1
    mean = total.mean(0) / kept
    sd = np.sqrt(square.mean(0) / kept - mean**2)
    # the chains are independent: their means tell how much the run is worth
    ess = n_chains * np.min(sd**2 / (total / kept).var(0, ddof=1))
    return Moments(mean, sd, ess)
