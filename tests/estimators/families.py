"""Families with a parameter of their own: rows, a distribution of scipy's, and priors.

A new family adds a row to ``FAMILIES``, and has all tests of ``test_families.py``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDNegativeBinomialRegressor,
)
from skbayes_sgld.likelihoods import (
    BetaBinomial,
    Gamma,
    NegativeBinomial,
    NormalNoise,
    StudentTNoise,
)
from skbayes_sgld.priors import Exponential, GammaPrior, InverseGamma, Normal
from tests.references.closed_forms import laplace_fit


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return rng, rng.standard_normal((n, 2)) + [0.0, 1.0]


def heavy(n, seed=0, df=3.0):
    rng, X = rows(n, seed)
    return X, X @ [1.0, -0.5] + 2.0 + 0.7 * rng.standard_t(df, n), None


def positive(n, seed=0):
    rng, X = rows(n, seed)
    return X, np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.8) * rng.gamma(2.5, 0.4, n), None


def averages(n, seed=0):
    """Means of several normal observations, and of how many."""
    rng, X = rows(n, seed)
    size = rng.integers(1, 40, n).astype(float)
    return X, X @ [1.0, -0.5] + 2.0 + 1.5 * rng.standard_normal(n) / np.sqrt(size), size


def positive_averages(n, seed=0):
    rng, X = rows(n, seed)
    size = rng.integers(1, 40, n).astype(float)
    mean = np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.8)
    return X, mean * rng.gamma(0.8 * size) / (0.8 * size), size


def scattered_counts(n, seed=0):
    """Counts over exposures, of dispersion 0.6."""
    rng, X = rows(n, seed)
    exposure = rng.uniform(0.5, 4.0, n)
    rate = exposure * np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.8)
    return X, rng.poisson(rate * rng.gamma(1.0 / 0.6, 0.6, n)).astype(float), exposure


def scattered_totals(n, seed=0, correlation=0.15):
    """Successes among trials."""
    rng, X = rows(n, seed)
    trials, r = rng.integers(1, 30, n), (1.0 - correlation) / correlation
    p = special.expit(0.8 * X[:, 0] - 0.3 * X[:, 1] - 0.4)
    return X, rng.binomial(trials, rng.beta(p * r, (1.0 - p) * r)).astype(float), trials


def beta_binomial(eta, t, trials):
    p, r = special.expit(eta), np.exp(-t)
    return stats.betabinom(trials, p * r, (1.0 - p) * r)


def negative_binomial(eta, t, exposure):
    r = np.exp(-t)
    return stats.nbinom(r, r / (r + exposure * np.exp(eta)))


def log_exponential(t):
    """Exponential root of exp(t), of mean 0.8, with its Jacobian."""
    return -np.exp(0.5 * t) / 0.8 + 0.5 * t


def log_inverse_gamma(t):
    return stats.invgamma.logpdf(np.exp(t), 2.0, scale=1.5) + t


def log_gamma(t):
    """Gamma density of shape 2 and rate 0.1, with its Jacobian."""
    return stats.gamma.logpdf(np.exp(t), 2.0, scale=1.0 / 0.1) + t


@dataclass
class Family:
    """One family.

    ``make(n, seed)`` gives X, y and the argument by row; ``law(eta, *own, argument)`` the
    distribution; ``own`` are the arguments of the own parameters' priors, with their densities at
    the coordinates; ``report`` gives the parameters at these; ``names`` are those of draws.
    """

    model: Any
    likelihood: Any
    make: Any
    law: Any
    own: dict
    names: tuple
    argument: str = ""
    report: Any = np.exp
    settings: Any = None

    def estimator(self, **settings):
        return self.model(**(self.settings or {}), **{"random_state": 0} | settings)

    def given(self, row):
        """Keyword argument of methods."""
        return {self.argument: row} if self.argument else {}

    def log_density(self, data, weight=1.0):
        """Log posterior density ``(S,)`` under ``priors()`` at theta ``(S, P)``."""
        X, y, row = data

        def of(theta):
            own = [theta[:, 3 + k, None] for k in range(len(self.own))]
            law = self.law(theta[:, :2] @ X.T + theta[:, 2:3], *own, row)
            return (weight * log_mass(law, y)).sum(axis=1) + self.log_prior(theta)

        return of

    def log_prior(self, theta):
        """Log density ``(S,)`` of ``priors()``."""
        value = stats.norm.logpdf(theta[:, :3], 0.0, [1.0, 1.0, 2.0]).sum(axis=1)
        return value + sum(f(theta[:, 3 + k]) for k, (_, f) in enumerate(self.own.values()))

    def priors(self):
        own = {name: prior for name, (prior, _) in self.own.items()}
        return {"prior": Normal(1.0), "intercept_prior": Normal(2.0), **own}


def log_mass(law, y):
    """Log probabilities, or log densities."""
    return law.logpmf(y) if hasattr(law.dist, "logpmf") else law.logpdf(y)


EXPONENTIAL = Exponential(0.8), log_exponential
FAMILIES = {
    "beta_binomial": Family(
        SGLDBetaBinomialRegressor,
        BetaBinomial(),
        scattered_totals,
        beta_binomial,
        {"correlation_prior": EXPONENTIAL},
        ("correlation",),
        "n_trials",
        special.expit,
    ),
    "gamma": Family(
        SGLDGammaRegressor,
        Gamma(),
        positive,
        lambda eta, t, _: stats.gamma(np.exp(-t), scale=np.exp(eta + t)),
        {"dispersion_prior": EXPONENTIAL},
        ("dispersion",),
    ),
    "gamma_of_averages": Family(
        SGLDGammaRegressor,
        Gamma(),
        positive_averages,
        lambda eta, t, size: stats.gamma(size * np.exp(-t), scale=np.exp(eta + t) / size),
        {"dispersion_prior": EXPONENTIAL},
        ("dispersion",),
        "n_averaged",
    ),
    "normal_of_averages": Family(
        SGLDLinearRegression,
        NormalNoise(),
        averages,
        lambda eta, gamma, size: stats.norm(eta, np.exp(0.5 * gamma) / np.sqrt(size)),
        {"noise_prior": (InverseGamma(2.0, 1.5), log_inverse_gamma)},
        ("noise_variance",),
        "n_averaged",
    ),
    "negative_binomial": Family(
        SGLDNegativeBinomialRegressor,
        NegativeBinomial(),
        scattered_counts,
        negative_binomial,
        {"dispersion_prior": EXPONENTIAL},
        ("dispersion",),
        "exposure",
    ),
    "student_t": Family(
        SGLDLinearRegression,
        StudentTNoise(),
        heavy,
        lambda eta, gamma, t, _: stats.t(np.exp(t), eta, np.exp(0.5 * gamma)),
        {
            "noise_prior": (InverseGamma(2.0, 1.5), log_inverse_gamma),
            "degrees_of_freedom_prior": (GammaPrior(2.0, 10.0), log_gamma),
        },
        ("noise_variance", "degrees_of_freedom"),
        settings={"noise_distribution": "student_t"},
    ),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def coordinate(family, values):
    """Coordinates of reported values of an own parameter."""
    return special.logit(values) if family.report is special.expit else np.log(values)


def mode_by_scipy(log_density, n_params):
    """Mode by the simplex algorithm, from that of BFGS."""
    loss = lambda theta: -log_density(theta[None])[0]  # noqa: E731
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    begin = laplace_fit(log_density, n_params)[0]
    return optimize.minimize(loss, begin, method="Nelder-Mead", options=options).x
