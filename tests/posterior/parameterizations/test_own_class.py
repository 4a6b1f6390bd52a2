"""Coordinates of a row's class: quantiles by a table, and the differences one after the other."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_expit, ndtr

from skbayes_sgld.posterior.parameterizations.own_class import (
    LogisticQuantiles,
    Place,
    others_less_own,
    own_class_largest,
)
from tests.numeric import derivative_by_chain


def of_classes(K=8, sd=30.0, level=0.0, weight=1.0):
    """Differences of K predictors with equal sds, and their covariance."""
    covariance = sd**2 * (np.eye(K - 1) + 1.0)
    levels = np.full(K - 1, level)
    return own_class_largest(levels, np.linalg.cholesky(covariance), weight), levels, covariance


@pytest.mark.parametrize("scale, weight", [(0.5, 1.0), (30.0, 1.0), (30.0, 300.0), (3e4, 1.0)])
def test_the_table_has_the_quantiles_of_a_normal_times_a_logistic_function(scale, weight):
    table = LogisticQuantiles(scale, weight, -3.0 * scale, 3.0 * scale)
    assert table.increases
    for b in (-2.0 * scale, 0.1, scale):

        def density(t, b=b):
            return np.exp(-0.5 * t**2 + weight * log_expit(b - scale * t))

        fall = (b - np.log(weight)) / scale
        edges = np.r_[-9.0, fall + np.array([-40.0, -4.0, 0.0, 4.0, 40.0]) / scale, 9.0]
        edges = np.sort(np.clip(edges, -9.0, 9.0))
        whole = sum(quad(density, *ends)[0] for ends in zip(edges[:-1], edges[1:], strict=True))
        for s in (-2.0, 0.0, 1.5):
            (t,) = table(Place.of(np.array([s])), np.array([b]))[0][0]
            parts = np.unique(np.r_[edges[edges < t], t])
            below = sum(quad(density, *ends)[0] for ends in zip(parts[:-1], parts[1:], strict=True))
            assert abs(below / whole - ndtr(s)) < 2e-3


@pytest.mark.parametrize("K", [3, 8])
@pytest.mark.parametrize("case", [{}, {"sd": 1.0}, {"level": 20.0}, {"weight": 300.0}])
def test_differences_have_the_moments_of_draws_that_are_kept_with_their_probability(K, case):
    found, level, covariance = of_classes(K, **case)
    rng, weight = np.random.default_rng(0), case.get("weight", 1.0)
    u = rng.multivariate_normal(level, covariance, 200_000)
    kept = u[rng.random(len(u)) < (1.0 + np.exp(u).sum(axis=1)) ** -weight]
    z = rng.standard_normal((20_000, K - 1))
    at = found.expand(z)
    log_ratio = at.log_jacobian + 0.5 * (np.square(z) - np.square(at.theta)).sum(axis=1)
    assert log_ratio.std() < 0.2  # nearly normal
    share = np.exp(log_ratio - log_ratio.max())
    share /= share.sum()
    draws = level + at.theta @ np.linalg.cholesky(covariance).T
    assert len(kept) > 500
    for power in (1, 2):
        mean, exact = share @ draws**power, (kept**power).mean(axis=0)
        error = (kept**power).var(axis=0) / len(kept)
        error = error + np.square(share) @ np.square(draws**power - mean)
        assert np.all(np.abs(mean - exact) < 4.5 * np.sqrt(error))


@pytest.mark.parametrize("K", [3, 8])
def test_differences_have_their_inverse_jacobian_and_chain_rule(K):
    found, level, covariance = of_classes(K, weight=2.0)
    rng = np.random.default_rng(1)
    z, weight = 1.2 * rng.standard_normal((6, K - 1)), rng.standard_normal((6, K - 1))
    z[0, 0] = 9.0  # beyond the knots
    at = found.expand(z)
    np.testing.assert_allclose(found.inverse(at.theta), z, atol=1e-8)
    log_det = np.linalg.slogdet(derivative_by_chain(found.forward, z))[1]
    u = level + at.theta @ np.linalg.cholesky(covariance).T
    off = at.log_jacobian - log_det + 2.0 * np.log(1.0 + np.exp(u).sum(axis=1))
    np.testing.assert_allclose(off, off[0], atol=1e-4)

    def tilted(x):
        found_at = found.expand(x)
        return (found_at.theta * weight).sum(axis=1) + 2.5 * found_at.log_jacobian

    slopes = derivative_by_chain(tilted, z)
    np.testing.assert_allclose(at.pull_back(weight, 2.5), slopes, rtol=1e-4, atol=1e-4)


def test_no_coordinates_where_the_class_is_nearly_impossible():
    # the product of the first factors says little about the last ones
    assert of_classes(20, level=300.0)[0] is None


def test_differences_are_those_between_the_other_predictors_and_that_of_a_class():
    predictors = np.array([1.0, 3.0, 7.0])
    contrasts = predictors[:-1] - predictors[-1]
    for own in range(3):
        others = np.delete(predictors, own) - predictors[own]
        np.testing.assert_allclose(others_less_own(contrasts, own), others)


def test_a_draw_does_not_depend_on_the_others():
    found = of_classes()[0]
    z = np.random.default_rng(0).standard_normal((70, 7))
    at, alone = found.expand(z), found.expand(z[5:6])
    grad = np.random.default_rng(1).standard_normal((70, 7))
    assert np.array_equal(at.theta[5:6], alone.theta)
    assert np.array_equal(at.pull_back(grad, 1.0)[5:6], alone.pull_back(grad[5:6], 1.0))
