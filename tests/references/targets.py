"""Targets whose distributions are known, and what it takes to run chains on them."""

from __future__ import annotations

import numpy as np

from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.priors import InverseGamma, Normal
from skbayes_sgld.sampling import (
    SGLD,
    Constant,
    Curvature,
    Full,
    Identity,
    Independence,
    Minibatch,
)
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.tuning.mode import TOLERANCE, newton_mode


class Density(BasePosterior):
    """A posterior without rows, given by functions of theta ``(C, P)``."""

    def __init__(self, log_density, grad, n_params):
        self._log_density, self._grad, self.n_params = log_density, grad, n_params
        self.param_names = [f"theta[{j}]" for j in range(n_params)]

    def log_density(self, theta):
        return self._log_density(theta)

    def grad(self, theta):
        return self._grad(theta)


class NormalMean:
    """The mean of normal rows of known variance under a flat prior: a user's own posterior.

    The posterior is N(mean(y), variance / n), and the noise of a minibatch does not depend on
    theta, so the distribution of the discretised chain is known exactly.
    """

    param_names = ["mean"]
    n_params = 1

    def __init__(self, n_samples=50, variance=2.0, seed=0):
        self.n_samples, self.variance = n_samples, variance
        self.y = np.random.default_rng(seed).normal(1.0, np.sqrt(variance), n_samples)
        self.precision = n_samples / variance
        self.row_variance = self.y.var() / variance**2  # of one row's gradient

    def _rows(self, theta, idx):
        return np.broadcast_to(self.y, (len(theta), self.n_samples)) if idx is None else self.y[idx]

    def log_likelihood(self, theta, idx=None):
        return -0.5 * (self._rows(theta, idx) - theta) ** 2 / self.variance

    def grad_log_likelihood(self, theta, idx=None):
        return (self._rows(theta, idx) - theta).sum(1, keepdims=True) / self.variance

    def log_prior(self, theta):
        return np.zeros(len(theta))

    def grad_log_prior(self, theta):
        return np.zeros_like(theta)


class CorrelatedNormal:
    """A normal distribution of given precision, as the likelihood of one row."""

    n_samples = 1

    def __init__(self, mean, precision):
        self.mean, self.precision, self.n_params = mean, precision, len(mean)
        self.param_names = [f"x{j}" for j in range(len(mean))]

    def log_likelihood(self, theta, idx=None):
        z = theta - self.mean
        return -0.5 * np.einsum("cp,pq,cq->c", z, self.precision, z)[:, None]

    def grad_log_likelihood(self, theta, idx=None):
        return (self.mean - theta) @ self.precision

    def log_prior(self, theta):
        return np.zeros(len(theta))

    def grad_log_prior(self, theta):
        return np.zeros_like(theta)


def posterior_of(likelihood, n_rows=40, n_columns=2, prior=None, **options):
    """A linear model, or one of classes, whose y follows the first column."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    y = X[:, 0] + rng.logistic(size=n_rows)
    if not likelihood.quadratic:
        n_classes = max(likelihood.n_predictors, 2)
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)).astype(float)
    noise = InverseGamma(1.0, 1.0) if likelihood.infers_noise else None
    return GLMPosterior(X, y, likelihood, prior or Normal(1.0), noise, **options)


def logistic_posterior(*args, **options):
    """A logistic regression whose labels follow the first column."""
    return posterior_of(Bernoulli(), *args, **options)


def bound(posterior):
    """One of the package's posteriors as it is, or a user's own."""
    if isinstance(posterior, BasePosterior):
        return posterior
    from skbayes_sgld.own_models import as_posterior

    return as_posterior(posterior)


def mode_of(posterior, start=None):
    """The mode by Newton's method, as near as numbers can tell."""
    posterior = bound(posterior)
    start = posterior.start() if start is None else np.asarray(start, dtype=float)
    return newton_mode(posterior, start, near=TOLERANCE)


def make_run(
    posterior,
    *,
    sampler=None,
    gradient=None,
    batch_size=None,
    step_size=0.1,
    temperature=1.0,
    preconditioner=None,
    schedule=None,
    clip=None,
    mode=None,
):
    """A run of the plain recursion, or of what is asked for."""
    gradient = gradient or (Full() if batch_size is None else Minibatch())
    center, curvature = (None, None) if mode is None else (mode.theta, mode.metric)
    dynamics = Dynamics(
        gradient.bind(bound(posterior), center),
        (preconditioner or Identity()).bind(posterior.n_params, curvature),
        clip,
        temperature,
        center=center if isinstance(sampler, Independence) else None,
    )
    return Run(
        sampler or SGLD("euler"),
        dynamics,
        schedule or Constant(),
        step_size,
        posterior.n_samples,
        batch_size,
        getattr(gradient, "replacement", True),
    )


def run_at_mode(posterior, mode=None, **settings):
    """A run in the metric of the curvature at the mode, and the mode."""
    mode = mode or mode_of(posterior)
    return make_run(posterior, preconditioner=Curvature(), mode=mode, **settings), mode


def stationary_draws(run, posterior, n_draws=4000, n_chains=50, n_burnin=200, seed=1):
    """Draws of chains that have forgotten where they began."""
    start = np.tile(posterior.y.mean(), (n_chains, 1))
    return run_chains(run, start, n_draws=n_draws, n_burnin=n_burnin, seed=seed).draws


def assert_moments(draws, mean, sd, rough=0.0):
    """Means and sds of all draws are those given, within four Monte Carlo standard errors.

    ``rough`` is added to what an sd may be off by, relative to it.
    """
    table, values = draws.summary(), draws.values.reshape(-1, draws.values.shape[-1])
    error = 4.0 / np.sqrt(np.minimum(table["ess_bulk"], table["ess_tail"]))
    assert np.all(np.abs(values.mean(axis=0) - mean) < error * sd)
    assert np.all(np.abs(values.std(axis=0) / sd - 1.0) < error + rough)


def z_of_variance(draws, expected, rho):
    """Distance of the variance of an AR(1) chain from the expected one, in standard errors."""
    variance = np.mean((draws - draws.mean()) ** 2)
    standard_error = expected * np.sqrt(2 * (1 + rho**2) / (1 - rho**2) / draws.size)
    return (variance - expected) / standard_error
