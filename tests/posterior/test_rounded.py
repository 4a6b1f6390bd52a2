"""Gradients in single precision: trajectories may follow them, and no more."""

import numpy as np
import pytest

from skbayes_sgld.inference.parameterizations.learned_scales import standardise
from skbayes_sgld.likelihoods import Bernoulli, Categorical
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior
from skbayes_sgld.priors import HierarchicalNormal, Normal
from skbayes_sgld.sampling import HMC, Curvature
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


def with_learned_scale(n_classes, n_features):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, n_features)), np.arange(120.0) % n_classes
    model = GLMPosterior(X, y, Categorical(n_classes), Normal())
    return standardise(HierarchicalPosterior(model, HierarchicalNormal()))


def test_large_products_of_a_learned_scale_are_rounded():
    posterior, mode = with_learned_scale(6, 24)
    rounded = posterior.rounded()
    phi = np.random.default_rng(1).standard_normal((5, posterior.n_params))
    exact = posterior.grad(phi)
    near = rounded.bind_grad()(phi.astype(np.float32))
    np.testing.assert_allclose(near, exact, atol=1e-4 * np.abs(exact).max())
    assert not np.array_equal(rounded.grad(phi), exact)
    run = make_run(posterior, sampler=HMC(), preconditioner=Curvature(), mode=mode)
    dynamics = round_gradient(run.dynamics, mode, 0.01)
    assert dynamics.rounded and dynamics.posterior is posterior


def test_small_products_of_a_learned_scale_stay_exact():
    posterior, _ = with_learned_scale(3, 24)
    assert posterior.rounded() is posterior
