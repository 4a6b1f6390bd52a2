"""Coefficients given scales, standardised by an expansion over draws of a pilot."""

import numpy as np
import pytest
from scipy.special import expit

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference.parameterizations.learned_scales import LearnedScales, standardise
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import Bernoulli, NormalNoise, Poisson
from skbayes_sgld.own_models import check_gradient
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior
from skbayes_sgld.priors import HierarchicalNormal, Horseshoe
from tests.numeric import derivative_by_chain


def table(collinear=True):
    """Rows of six columns, two pairs of which are correlated, and labels."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 6))
    if collinear:
        X[:, 1:3] = X[:, :1] + 0.04 * X[:, 1:3]
        X[:, 4] = X[:, 3] + 0.04 * X[:, 4]
    return X, (6.0 * X[:, 0] - 4.0 * X[:, 3] + rng.logistic(size=80) > 0.0) * 1.0


def model(likelihood, prior, collinear=True):
    X, y = table(collinear)
    glm = GLMPosterior(X, y, likelihood, prior.conditional(), intercept_at_mean=True)
    return HierarchicalPosterior(glm, prior)


def test_coordinates_about_draws_keep_the_density():
    joint, rng = model(Bernoulli(), Horseshoe(scale=1.0)), np.random.default_rng(0)
    found, _ = standardise(joint)
    suited = found.about_draws(rng.standard_normal((50, found.n_params)))
    assert suited is not found
    check_gradient(suited)
    phi = 0.5 * rng.standard_normal((3, found.n_params))
    moved = suited.moved_from(found, phi)
    theta = found.coordinates.forward(phi)
    np.testing.assert_allclose(suited.coordinates.forward(moved), theta, atol=1e-8)
    assert np.abs(moved - phi).max() > 0.05
    log_jacobian = np.linalg.slogdet(derivative_by_chain(suited.coordinates.forward, moved))[1]
    expected = joint.log_density(theta) + log_jacobian
    np.testing.assert_allclose(np.ptp(suited.log_density(moved) - expected), 0.0, atol=1e-4)


def test_the_expansion_about_draws_has_their_mean_score_and_curvature():
    found, _ = standardise(model(Bernoulli(), Horseshoe(scale=1.0)))
    draws = np.random.default_rng(1).standard_normal((40, found.n_params))
    X, y = table()
    columns, L = np.column_stack([X - X.mean(axis=0), np.ones(len(y))]), 7
    coef = found.coordinates.forward(draws)[:, :L]
    p = expit(coef @ columns.T)
    H = (columns.T * (p * (1.0 - p)).mean(axis=0)) @ columns
    origin = found.coordinates.origin
    g = (y - p).mean(axis=0) @ columns + H @ (coef.mean(axis=0) - origin)
    about = found.about_draws(draws).coordinates.coefficients
    np.testing.assert_allclose(about.H, H, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(about.g, g, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("likelihood", "prior", "collinear"),
    [
        (NormalNoise(), Horseshoe(scale=1.0), True),
        (Bernoulli(), HierarchicalNormal(), True),
        (Bernoulli(), Horseshoe(scale=1.0), False),
    ],
    ids=["quadratic", "common scale", "single columns"],
)
def test_other_coordinates_stay(likelihood, prior, collinear):
    joint = model(likelihood, prior, collinear)
    found, _ = LearnedScales.apply(joint, Settings.of({}))
    assert found.about_draws(np.zeros((4, found.n_params))) is found


@pytest.mark.parametrize("size", [1e5, 1e200])
def test_coordinates_stay_where_the_mean_curvature_of_draws_overflows(size):
    found, _ = standardise(model(Poisson(), Horseshoe(scale=1.0)))
    draws = np.random.default_rng(1).standard_normal((40, found.n_params))
    assert found.about_draws(draws) is not found
    draws[7, :3] = size
    assert found.about_draws(draws) is found


def test_draws_are_standardised_and_the_mode_stays():
    X, y = table()
    prior = Horseshoe(scale=1.0)
    result = SGLDLogisticRegression(prior=prior, random_state=0).fit(X, y).result_
    L, before = 7, standardise(model(Bernoulli(), prior))[0]
    z = result.theta.reshape(-1, before.n_params)[:, :L]
    old = before.moved_from(result.plan.posterior, result.theta.reshape(-1, before.n_params))[:, :L]
    # the pilot averages over a hundred draws or more
    assert np.abs(z.mean(axis=0)).max() < 0.25 < np.abs(old.mean(axis=0)).max()
    at_mode = result.plan.posterior.reported.values(result.mode.theta[None])
    start = before.reported.values(np.zeros((1, before.n_params)))
    np.testing.assert_allclose(at_mode, start, rtol=1e-6)
