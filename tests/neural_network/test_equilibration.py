"""The metric of posteriors without one mode: products with the Hessian, and what it leaves."""

import numpy as np
import pytest

from skbayes_sgld.neural_network.equilibration import (
    equilibrate,
    row_norms,
)
from skbayes_sgld.sampling.metric import Diagonal

SPREAD = np.array([1.0, 10.0, 0.1])
H = np.array([[9.0, 0.3, 0.0], [0.3, 0.5, 1.0], [0.0, 1.0, 400.0]])
THETA = np.array([[1.0, -2.0, 0.1], [0.0, 30.0, -0.2]])


def gradient(theta):
    return -theta @ H


def test_every_chain_has_its_own_diagonal_and_its_root():
    values, v = np.array([[1.0, 4.0, 9.0], [16.0, 25.0, 0.25]]), np.array([[1.0, 2.0, 3.0]] * 2)
    metric = Diagonal(values)
    np.testing.assert_allclose(metric.scale(v), values * v)
    np.testing.assert_allclose(metric.sqrt_t(v), np.sqrt(values) * v)
    np.testing.assert_allclose(metric.sqrt(metric.sqrt_t(v)), metric.scale(v))
    many = np.ones((2, 4, 3))
    np.testing.assert_allclose(metric.sqrt(many), many * np.sqrt(values)[:, None])


def test_the_norms_are_those_of_the_hessians_rows_in_units_of_the_spread():
    norms = row_norms(gradient, np.tile(THETA[:1], (200, 1)), SPREAD, seed=0)
    exact = np.linalg.norm(H * np.outer(SPREAD, SPREAD), axis=1)
    # the mean square of ten probes, over 200 chains, has a relative sd of sqrt(2 / 2000)
    found = np.sqrt(np.square(norms).mean(axis=0))
    np.testing.assert_allclose(found, exact, rtol=5.0 * np.sqrt(2.0 / 2000))


def test_the_steepest_direction_has_a_curvature_of_one():
    norms = row_norms(gradient, THETA, SPREAD, seed=0)
    metric = equilibrate(gradient, THETA, SPREAD, norms)
    assert metric.marginal_sd.shape == THETA.shape
    for root in metric.marginal_sd:
        assert np.linalg.eigvalsh(root[:, None] * H * root).max() == pytest.approx(1.0, abs=0.1)
