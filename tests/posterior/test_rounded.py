"""Gradients in single precision: trajectories may follow them, and no more."""

from dataclasses import replace

import numpy as np
import pytest

from skbayes_sgld.inference.parameterizations.learned_scales import standardise
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior
from skbayes_sgld.posterior.parameterizations.conditional import NormalGivenScales
from skbayes_sgld.priors import HierarchicalNormal, Horseshoe, Normal
from skbayes_sgld.sampling import HMC, Curvature, Full
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.tuning.mode import newton_mode
from skbayes_sgld.sampling.tuning.precision import round_density, round_gradient
from tests.references.targets import logistic_posterior, make_run

ROWS = 2000


def rounded_dynamics(posterior):
    mode = newton_mode(posterior, posterior.start())
    run = make_run(posterior, sampler=HMC(), preconditioner=Curvature(), mode=mode)
    return run, mode, round_gradient(run.dynamics, mode, 0.01)


@pytest.fixture(scope="module")
def rounded():
    """A run, its mode, and its dynamics in single precision."""
    return rounded_dynamics(logistic_posterior(ROWS, 20, intercept_at_mean=True))


def test_rounded_trajectories_propose_what_the_exact_density_accepts(rounded):
    run, _, dynamics = rounded
    exact, followed = dynamics.density_of, dynamics.gradient.posterior
    assert exact is run.dynamics.gradient.posterior
    theta = 0.1 * np.random.default_rng(2).standard_normal((3, 21))
    densities = (p.bind_value_and_grad()(theta)[0] for p in (followed, exact))
    np.testing.assert_array_equal(*densities)
    assert not np.array_equal(followed.grad(theta), exact.grad(theta))


def test_columns_whose_coefficients_cancel_keep_their_precision():
    # sum and difference differ by 1e7 in size: single precision does not see the difference
    posterior = logistic_posterior(ROWS, 20)
    X = posterior.X.copy()
    X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    cancelling = GLMPosterior(X, posterior.y, Bernoulli(), Normal(1e7), intercept_at_mean=True)
    run, _, dynamics = rounded_dynamics(cancelling)
    assert dynamics is run.dynamics


def test_few_rows_and_columns_are_not_copied():
    posterior = logistic_posterior(12, 20)
    assert posterior.rounded() is posterior


def test_densities_are_rounded_where_they_agree(rounded):
    _, mode, dynamics = rounded
    both = round_density(dynamics, mode)
    theta = mode.theta + mode.metric.sqrt(np.random.default_rng(6).standard_normal((32, 21)))
    exact, near = (d.for_thread().value_and_gradient_at(theta)[0] for d in (dynamics, both))
    assert not np.array_equal(exact, near)
    assert np.ptp(near - exact) < 1e-3


def test_densities_of_large_weights_stay_exact():
    weight = np.full(ROWS, 1e6)
    posterior = logistic_posterior(ROWS, 20, intercept_at_mean=True, sample_weight=weight)
    run, mode, _ = rounded_dynamics(posterior)
    dynamics = round_gradient(run.dynamics, mode, np.inf)
    assert dynamics.rounded
    assert round_density(dynamics, mode) is dynamics


def with_one_scale():
    rng = np.random.default_rng(0)
    model = GLMPosterior(
        rng.standard_normal((120, 8)), np.arange(120.0) % 3, Categorical(3), Normal()
    )
    return HierarchicalPosterior(model, HierarchicalNormal())


def with_a_scale_each():
    """Horseshoe on eight columns, of which two are nearly the same, and on rows of one class."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    y = (X[:, 0] + rng.logistic(size=120) > 0.0).astype(float)
    model = GLMPosterior(X, y, Bernoulli(), Normal(), intercept_at_mean=True)
    return HierarchicalPosterior(model, Horseshoe(scale=1.0))


LEARNED = pytest.mark.parametrize("model", [with_one_scale, with_a_scale_each])


def followed(model):
    """Posterior in its coordinates, its mode, and dynamics in single precision."""
    posterior, mode = standardise(model())
    run = make_run(posterior, sampler=HMC(), preconditioner=Curvature(), mode=mode)
    return posterior, mode, replace(run, dynamics=round_gradient(run.dynamics, mode, 0.01))


@LEARNED
def test_gradients_of_learned_scales_are_rounded(model):
    posterior, _, run = followed(model)
    phi = np.random.default_rng(1).standard_normal((5, posterior.n_params))
    exact, near = posterior.grad(phi), run.dynamics.gradient.posterior.grad(phi)
    np.testing.assert_allclose(near, exact, atol=1e-4 * np.abs(exact).max())
    assert not np.array_equal(near, exact)


@LEARNED
def test_learned_scales_are_accepted_by_the_exact_density(model):
    posterior, _, run = followed(model)
    start = 0.5 * np.random.default_rng(2).standard_normal((16, posterior.n_params))
    state = run_chains(run, start, n_draws=5).state.sampler_state
    assert (state["theta"] != start).all(axis=1).mean() > 0.5
    exact, near = (
        p.log_density(state["theta"]) for p in (posterior, run.dynamics.gradient.posterior)
    )
    assert np.abs(state["value"] - exact).max() < 1e-11 < np.abs(near - exact).max()


@LEARNED
def test_ends_of_trajectories_take_one_pass(model, monkeypatch):
    posterior, _, run = followed(model)
    passes, expand = [], NormalGivenScales.expand
    monkeypatch.setattr(NormalGivenScales, "expand", lambda *at: passes.append(at) or expand(*at))
    phi = 0.5 * np.random.default_rng(2).standard_normal((4, posterior.n_params))
    value, grad = run.dynamics.value_and_gradient_at(phi)
    assert len(passes) == 1
    np.testing.assert_allclose(value, posterior.log_density(phi), rtol=1e-13)
    np.testing.assert_allclose(grad, posterior.grad(phi), atol=1e-12)


def test_scales_over_eight_orders_of_magnitude_keep_their_energies():
    posterior, _, run = followed(with_a_scale_each)
    rng, at, sampler = np.random.default_rng(3), posterior.coordinates, run.sampler
    L, P = len(at.origin), posterior.n_params
    eta = np.tile(posterior.inner.start()[L:], (64, 1))
    local = ["local_scale" in name for name in posterior.inner.param_names[L:]]
    eta[:, local] = np.log(10.0) * rng.uniform(-4.0, 4.0, (64, sum(local)))
    start = np.hstack([rng.standard_normal((64, L)), at.scale_map.inverse(eta)])
    normals = rng.standard_normal((1, 64, P + sampler.extra_normals))
    ratios = []
    for density in (None, posterior):
        dynamics = run.dynamics
        if density is not None:
            dynamics = replace(dynamics, gradient=Full().bind(density, None), rounded=False)
        state = sampler.init(start) | sampler.evaluate(start, dynamics)
        noise = sampler.prepare(normals, start, np.array([0.2]), dynamics)[0]
        ratios.append(sampler.propose(state, 0.2, noise, dynamics)[1])
    near, exact = ratios
    assert np.abs(near - exact).max() < 0.01
    assert not np.array_equal(near, exact)


def test_sums_of_a_linear_model_are_not_rounded():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 8)), rng.standard_normal(120)
    model = GLMPosterior(X, y, NormalNoise(), Normal(), intercept_at_mean=True)
    posterior, _ = standardise(HierarchicalPosterior(model, Horseshoe(scale=1.0)))
    assert posterior.rounded() is posterior
