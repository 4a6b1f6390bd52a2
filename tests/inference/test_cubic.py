"""Few columns and many rows a column: independent proposals on a cubic polynomial."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.likelihoods import Bernoulli, Poisson
from skbayes_sgld.posterior.cubic import CubicPosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.priors import Laplace, Normal
from skbayes_sgld.sampling.samplers import Independence
from tests.inference.test_nearly_normal import binary, exact_moments, standardised
from tests.marks import slow


def counts(seed=0, n=5000, d=10):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, rng.poisson(np.exp(X @ rng.standard_normal(d) / 4.0))


def levels(seed=0, n=9000):
    """One-hot columns of two factors, one of them skewed, beside two numbers."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(5, n), rng.choice(4, n, p=[0.6, 0.25, 0.1, 0.05])]
    hot = [np.eye(k)[code][:, 1:] for k, code in zip((5, 4), codes, strict=True)]
    X = np.column_stack([*hot, rng.standard_normal((n, 2))])
    return X, (rng.random(n) < expit(X @ rng.standard_normal(9) - 0.5)).astype(int)


def outlying(seed=0):
    X, y = binary(n=6000, d=8, seed=(1, 3, 5, 9)[seed])  # others are left to SGLD or HMC
    X[0] *= 400.0
    X[1:4] *= 30.0
    return X, y


CASES = {
    "logistic": (SGLDLogisticRegression, lambda seed=0: binary(n=8000, d=20, seed=seed)),
    "1,200 rows": (SGLDLogisticRegression, lambda seed=0: binary(n=1200, d=7, seed=seed)),
    "levels": (SGLDLogisticRegression, levels),
    "raw units and copies": (
        SGLDLogisticRegression,
        lambda seed=0: binary("raw", 5000, 12, 0.5, seed),
    ),
    "outlying rows": (SGLDLogisticRegression, outlying),
    "Poisson": (SGLDPoissonRegressor, counts),
}


def is_cubic(plan):
    return "cubic polynomial" in plan.choices["gradient"].why


@pytest.mark.parametrize("seed", [0, slow(1), slow(2), slow(3)])
@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_moments_of_the_posterior(case, seed):
    estimator, make = CASES[case]
    X, y = make(seed=seed)
    model = estimator(random_state=seed).fit(X, y)
    result = model.result_
    assert is_cubic(result.plan) and isinstance(result.plan.run.sampler, Independence)
    assert not result.problems and result.bias[0] < 0.01
    binary = isinstance(model, SGLDLogisticRegression)
    rows, draws, precision = standardised(model, X)
    n_exact = 8000 if case == "outlying rows" else 2000  # its weights differ more
    exact, variance, error = exact_moments(binary, rows, y, draws, precision, n_exact)
    assert error < 0.01
    z = (draws.mean(axis=0) - exact) / np.sqrt(variance)
    assert np.abs(z).max() < 4.5 * np.hypot(1.0 / np.sqrt(len(draws)), error)
    off = np.sqrt(draws.var(axis=0) / variance) - 1.0
    assert np.abs(off).max() < 4.5 * np.hypot(0.9 / np.sqrt(len(draws)), error)


@pytest.mark.parametrize("likelihood, make", [(Bernoulli(), binary), (Poisson(), counts)])
def test_the_polynomial_is_that_of_the_rows(likelihood, make):
    X, y = make(n=2500, d=5)
    posterior = GLMPosterior(X, y.astype(float), likelihood, Normal(scale=1.0))
    mode = make_plan(posterior, Settings.of(SGLDLogisticRegression()), 0).mode
    cubic = CubicPosterior(posterior, mode.theta, mode.metric.sqrt(np.eye(6)))
    theta = mode.theta + mode.metric.sqrt(np.random.default_rng(0).normal(size=(200, 6)))
    off = posterior.log_density(theta) - cubic.log_density(theta)
    normal = posterior.log_density(theta) + 0.5 * np.square(
        mode.metric.whiten(theta - mode.theta)
    ).sum(axis=1)
    assert off.std() < 0.25 * normal.std()  # of the terms beyond a normal distribution


@pytest.mark.parametrize("width", [1.0, 5.0])  # within the radius, and beyond it
def test_the_gradient_is_that_of_the_polynomial(width):
    X, y = binary(n=5000, d=5)
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal(scale=1.0))
    mode = make_plan(posterior, Settings.of(SGLDLogisticRegression()), 0).mode
    root = mode.metric.sqrt(np.eye(6))
    cubic = CubicPosterior(posterior, mode.theta, root)
    z = np.random.default_rng(0).standard_normal((4, 6))
    theta = mode.theta + mode.metric.sqrt(width * z)
    ahead, back = (
        np.stack([cubic.log_density(theta + sign * 1e-3 * step) for step in root], axis=1)
        for sign in (1.0, -1.0)
    )
    np.testing.assert_allclose(
        mode.metric.sqrt_t(cubic.grad(theta)), (ahead - back) / 2e-3, atol=3e-3
    )


def test_the_density_of_the_rows_is_that_of_the_posterior():
    rng, (X, y) = np.random.default_rng(0), counts(d=3)
    of_rows = {"sample_weight": rng.random(len(y)), "offset": rng.standard_normal(len(y)) / 4.0}
    posterior = GLMPosterior(X, y, Poisson(), Normal(2.5), **of_rows)
    theta = 0.1 * rng.standard_normal((5, 4))
    cubic = CubicPosterior(posterior, theta[0], 0.01 * np.eye(4))
    found, expected = cubic.of_rows(theta), posterior.log_density(theta)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=2e-3)


def test_the_density_of_a_position_depends_on_no_other():
    X, y = binary(n=5000, d=12)
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal(scale=1.0))
    mode = make_plan(posterior, Settings.of(SGLDLogisticRegression()), 0).mode
    cubic = CubicPosterior(posterior, mode.theta, mode.metric.sqrt(np.eye(13)))
    theta = mode.theta + mode.metric.sqrt(np.random.default_rng(0).standard_normal((70, 13)))
    density = cubic.bind_log_density(32)
    np.testing.assert_array_equal(density(theta)[:32], density(theta[:32]))
    np.testing.assert_array_equal(density(theta)[32:35], density(theta[32:35]))


def test_a_rare_class_is_left_to_the_other_strategies():
    X, y = binary(n=6000, d=8, level=-6.5)
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal(scale=1.0))
    assert not is_cubic(make_plan(posterior, Settings.of(SGLDLogisticRegression()), 0))


def test_rows_in_a_regular_order_are_as_good_as_any():
    rng, n = np.random.default_rng(0), 10_000
    X = np.column_stack([rng.standard_normal((n, 2)), np.arange(n) % 4 == 0]).astype(float)
    y = (rng.random(n) < expit(X @ [0.5, 0.3, 0.6])).astype(int)
    assert is_cubic(SGLDLogisticRegression(n_draws=100, random_state=0).fit(X, y).result_.plan)


@pytest.mark.parametrize(
    "given", [{"temperature": 0.5}, {"batch_size": 50}, {"sampler": "sgld"}, {"step_size": 0.5}]
)
def test_settings_that_are_given_are_left_to_the_other_strategies(given):
    X, y = binary(n=5000, d=5)
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal(scale=1.0))
    assert not is_cubic(make_plan(posterior, Settings.of(SGLDLogisticRegression(**given)), 0))


def test_a_prior_that_is_not_normal_is_left_to_the_other_strategies():
    X, y = binary(n=5000, d=5)
    posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Laplace(scale=1.0))
    assert not is_cubic(make_plan(posterior, Settings.of(SGLDLogisticRegression()), 0))


def test_weights_and_single_precision_are_those_of_rows():
    X, y = binary(n=5000, d=6)
    weight = np.where(np.arange(5000) < 1500, 2.0, 1.0)
    model = SGLDLogisticRegression(random_state=0).fit(X.astype(np.float32), y, weight)
    twice = np.concatenate([np.arange(5000), np.arange(1500)])
    other = SGLDLogisticRegression(random_state=0).fit(X[twice].astype(np.float32), y[twice])
    assert is_cubic(model.result_.plan) and is_cubic(other.result_.plan)
    theirs = other.posterior_.flat
    z = (model.posterior_.flat.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)
    assert np.abs(z).max() < 4.5 * np.sqrt(2.0 / len(theirs))
