"""Every registered sampler on the same targets, against moments that no sampler computed."""

from functools import cache

import numpy as np
import pytest

from skbayes_sgld.posterior import Bernoulli, FixedGaussian, GLMPosterior, Laplace, Normal
from skbayes_sgld.sampling import SAMPLERS, Curvature, find_mode
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import make_run

N_CHAINS, N_STEPS = 64, 400


class CorrelatedGaussian:
    """A normal distribution of two parameters with correlation 0.9, as a user would write it."""

    n_samples, n_params, param_names = 1, 2, ["a", "b"]
    mean = np.array([1.0, -2.0])
    covariance = np.array([[4.0, 0.9], [0.9, 0.25]])

    def log_density(self, theta):
        return -0.5 * np.einsum("cp,pq,cq->c", *self._parts(theta))

    def grad(self, theta):
        away, precision, _ = self._parts(theta)
        return -away @ precision

    def _parts(self, theta):
        away = theta - self.mean
        return away, np.linalg.inv(self.covariance), away

    def value_and_grad(self, theta):
        return self.log_density(theta), self.grad(theta)


def glm(likelihood, prior, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 2)) @ np.array([[1.0, 0.7], [0.0, 0.5]])
    eta = X @ [0.6, -0.4]
    y = eta + rng.standard_normal(40)
    if isinstance(likelihood, Bernoulli):
        y = (y > 0).astype(float)
    return GLMPosterior(X, y, likelihood, prior, fit_intercept=False)


@cache
def target(name):
    """A posterior, its mode, and its mean and covariance, by a grid but for the first."""
    if name == "gaussian":
        exact = CorrelatedGaussian()
        root = np.linalg.cholesky(exact.covariance)
        mode = Mode(exact.mean, Dense(root))
        return exact, mode, exact.mean, exact.covariance
    posterior = (
        glm(Bernoulli(), Normal(scale=2.0), 0)
        if name == "logistic"
        else glm(FixedGaussian(1.0), Laplace(scale=0.1), 1)
    )
    mode = find_mode(posterior, posterior.start())
    axes = [
        m + 10.0 * s * np.linspace(-1, 1, 301)
        for m, s in zip(mode.theta, mode.metric.marginal_sd, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    value = np.concatenate([posterior.log_density(part) for part in np.array_split(grid, 50)])
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    mean = weight @ grid
    away = grid - mean
    return posterior, mode, mean, (away * weight[:, None]).T @ away


# relative error that a sampler's moments may have beside its known one on a normal target
ROUGH = {"psgld": 0.04, "sgnht": 0.05, "sgld": 0.02, "sghmc": 0.02}


def draw(sampler, posterior, mode, temperature=1.0):
    step, time = sampler.pace(np.ones(2))
    if not sampler.adjusted:
        step, time = sampler.pace(np.ones(2), min(0.5 * step, 0.1))
    run = make_run(
        posterior,
        sampler=sampler,
        preconditioner=Curvature(),
        step_size=step,
        temperature=temperature,
        mode=mode,
    )
    start = (
        mode.theta + np.random.default_rng(0).standard_normal((N_CHAINS, 2)) @ mode.metric.root.T
    )
    thin = max(1, round(time / 4))
    return run, run_chains(run, start, n_draws=N_STEPS, n_burnin=300, thin=thin, seed=3).draws


@pytest.mark.parametrize(
    "name",
    ["logistic", "laplace"],  # the normal distribution is test_registry.py's
)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_sampler_has_the_moments_of_its_target(sampler, name):
    posterior, mode, mean, covariance = target(name)
    sampler = SAMPLERS[sampler]()
    run, draws = draw(sampler, posterior, mode)
    key = {v: k for k, v in SAMPLERS.items()}[type(sampler)]
    rough = ROUGH.get(key, 0.0)
    known = abs(sampler.gaussian_inflation(run.step_size) - 1.0)
    sd = np.sqrt(np.diagonal(covariance))
    for values, expected, bias in [
        (draws, mean, rough * sd),
        ((draws - mean) ** 2, sd**2, (known + 2 * rough) * sd**2),
        ((draws[..., :1] - mean[0]) * (draws[..., 1:] - mean[1]), covariance[0, 1], None),
    ]:
        if bias is None:
            bias = (known + 2 * rough) * sd.prod()
        by_chain = values.mean(axis=1)
        standard_error = by_chain.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
        assert np.all(np.abs(by_chain.mean(axis=0) - expected) < 4 * standard_error + bias)
        # the test can tell a quarter of an sd, or of a variance
        assert np.all(4 * standard_error + bias < 0.25 * sd.max() ** (1 if values is draws else 2))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_sampler_samples_the_tempered_distribution(sampler):
    posterior, mode, _, covariance = target("gaussian")
    sampler = SAMPLERS[sampler]()
    _, draws = draw(sampler, posterior, mode, temperature=0.25)
    variance = draws.var(axis=(0, 1))
    np.testing.assert_allclose(variance, 0.25 * np.diagonal(covariance), rtol=0.15)


def test_thermostat_and_friction_have_the_variance_that_their_recursion_implies():
    posterior, mode, _, covariance = target("gaussian")
    for name, step, friction in [("sghmc", 0.8, 0.5), ("sgnht", 0.05, 0.25)]:
        sampler = SAMPLERS[name](friction=friction)
        run = make_run(
            posterior, sampler=sampler, preconditioner=Curvature(), step_size=step, mode=mode
        )
        start = np.tile(mode.theta, (200, 1))
        draws = run_chains(run, start, n_draws=3000, n_burnin=200, seed=1).draws
        ratio = draws.var(axis=(0, 1)) / np.diagonal(covariance)
        expected = sampler.gaussian_inflation(step)
        assert abs(expected - 1.0) > 0.08
        np.testing.assert_allclose(ratio, expected, rtol=0.03)


def test_full_friction_is_the_euler_step():
    posterior, mode, *_ = target("logistic")
    draws = []
    for sampler in (SAMPLERS["sghmc"](friction=1.0), SAMPLERS["sgld"](integrator="euler")):
        run = make_run(
            posterior, sampler=sampler, preconditioner=Curvature(), step_size=0.3, mode=mode
        )
        start = np.tile(mode.theta, (3, 1))
        draws.append(run_chains(run, start, n_draws=50, seed=1).draws)
    np.testing.assert_allclose(*draws, rtol=1e-9)
