"""Posterior of log-linear noise by chains of the noise alone, with the mean integrated out.

Given the noise, the coefficients of the mean are normal. Without them the posterior of the noise
has no funnel, and a few hundred trajectories of HMC mix well. Nothing is shared with the samplers
of the package: a fit gives the prior, the centring of the columns, and the metric by its draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.diagnostics import summarize

_HEAVY = 1e4  # precision, over the median, from which a row is added to the others one by one
_CHAINS, _BURNIN, _STEP = 4, 60, 0.3


class Noise:
    """Marginal posterior of the coefficients of a log variance.

    Parameters
    ----------
    model : SGLDLinearRegression
        Fitted to the rows, with ``noise_model="log_linear"`` and a normal prior.
    X, y : ndarray
    """

    def __init__(self, model: Any, X: np.ndarray, y: np.ndarray) -> None:
        posterior = model.result_.plan.posterior
        self.fitted = getattr(posterior, "inner", None) or posterior
        one = np.ones((len(y), 1))
        self.design = np.hstack([X - self.fitted.x_mean, one])
        self.in_noise = np.hstack([X - self.fitted.slopes.mean, one])
        self.y, self.d = y, self.design.shape[1]
        units = np.vstack([np.eye(2 * self.d), -np.eye(2 * self.d)])
        fall = self._log_prior(np.zeros((1, 2 * self.d))) - self._log_prior(units)
        self.precision = fall.reshape(2, -1).sum(axis=0)[: self.d]

    def _log_prior(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(self.fitted.log_prior(theta))

    def _prior_of(self, alpha: np.ndarray) -> tuple[float, np.ndarray]:
        h = 1e-4 * np.eye(self.d)
        at = np.vstack([alpha, alpha + h, alpha - h])
        value = self._log_prior(np.hstack([np.zeros((len(at), self.d)), at]))
        ahead, back = value[1:].reshape(2, -1)
        return float(value[0]), (ahead - back) / 2e-4

    def at(self, alpha: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Log density and its gradient; mean and covariance of the coefficients of the mean."""
        v = self.in_noise @ alpha
        heavy = -v > np.log(_HEAVY) - np.median(v)
        x, p = self.design[~heavy], np.exp(-v[~heavy])
        scaled = x.T * p
        root = np.linalg.cholesky(scaled @ x + np.diag(self.precision))
        inverse = np.linalg.inv(root)
        cov = inverse.T @ inverse
        moment = scaled @ self.y[~heavy]
        mean = cov @ moment
        value = -0.5 * v[~heavy].sum() - np.log(np.diag(root)).sum()
        value -= 0.5 * (p @ np.square(self.y[~heavy]) - moment @ mean)
        square = np.empty(len(v))  # expected square of a residual, in variances
        if heavy.any():
            x_heavy, variance = self.design[heavy], np.exp(v[heavy])
            in_x = cov @ x_heavy.T
            apart = np.diag(variance) + x_heavy @ in_x
            precision, off = np.linalg.inv(apart), self.y[heavy] - x_heavy @ mean
            pull = precision @ off
            value -= 0.5 * (np.linalg.slogdet(apart)[1] + off @ pull)
            square[heavy] = variance * np.square(pull) + 1.0 - variance * np.diag(precision)
            mean = mean + in_x @ pull
            cov = cov - in_x @ precision @ in_x.T
        spread = np.einsum("ij,ij->i", x @ cov, x)
        square[~heavy] = p * (np.square(self.y[~heavy] - x @ mean) + spread)
        prior, slope = self._prior_of(alpha)
        return value + prior, self.in_noise.T @ (0.5 * square - 0.5) + slope, mean, cov


def chains_of_the_noise(
    model: Any, X: np.ndarray, y: np.ndarray, n_draws: int = 400, seed: int = 0
) -> Any:
    """Summary of draws of the posterior of a fitted model, as those of ``result_.summary()``."""
    noise, rng = Noise(model, X, y), np.random.default_rng(seed)
    draws = model.result_.values.reshape(-1, 2 * noise.d)
    own = noise.fitted.reported.theta(draws)[:, noise.d :]
    center, root = own.mean(axis=0), np.linalg.cholesky(np.cov(own.T))
    kept = np.empty((_CHAINS, n_draws, 2 * noise.d))
    for chain in kept:
        z = rng.standard_normal(noise.d)
        at = noise.at(center + root @ z)
        for number in range(-_BURNIN, n_draws):
            momentum, step = rng.standard_normal(noise.d), _STEP * rng.uniform(0.7, 1.3)
            end, p, there = z, momentum, at
            for _ in range(rng.integers(4, 8)):
                p = p + 0.5 * step * (root.T @ there[1])
                end = end + step * p
                there = noise.at(center + root @ end)
                p = p + 0.5 * step * (root.T @ there[1])
            change = there[0] - at[0] - 0.5 * (p @ p - momentum @ momentum)
            if np.log(rng.random()) < change:
                z, at = end, there
            if number >= 0:
                mean, cov = at[2:]
                chain[number, : noise.d] = rng.multivariate_normal(mean, cov, method="eigh")
                chain[number, noise.d :] = center + root @ z
    values = noise.fitted.reported.values(kept.reshape(-1, 2 * noise.d))
    return summarize(values.reshape(kept.shape), model.result_.names)
