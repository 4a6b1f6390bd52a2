"""Means over draws from a few nodes of a row."""

from math import factorial, sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from skbayes_sgld.prediction.quadrature import OwnNodes, quadrature


@pytest.mark.parametrize("reach", [0.0, 0.3, 1.5])
def test_the_nodes_alone_average_a_normal_distribution_function(reach):
    rng = np.random.default_rng(0)
    center, share = np.array([-1.0, 0.0, 2.0]), rng.dirichlet(np.ones(500))
    deviation = rng.uniform(-reach, reach, (3, 500))
    expected = ndtr(2.0 * (center[:, None] + deviation)) @ share
    extent = 2.0 * np.abs(deviation).max()
    bounds = [(extent / 2.0) ** k / sqrt(factorial(k)) for k in range(24)]
    degree = next(k for k in range(3, 24) if bounds[k] < 1e-7)

    def exact(rows):
        raise AssertionError(f"rows {rows} were averaged over all draws")

    own = OwnNodes(np.zeros((500, 0)))

    def at(u, rows):
        assert u.shape[2] == degree + 1  # no more nodes than these need
        return ndtr(2.0 * u[:, 0])

    average = quadrature(center, deviation, share, np.full(3, 2.0), exact, own)
    np.testing.assert_allclose(average(at, np.arange(3)), expected, atol=1e-6)


def test_no_node_is_beyond_the_draws():
    """A rate that is exp(350) at most under the draws would overflow at a node beyond them."""
    rng = np.random.default_rng(0)
    deviation = -rng.standard_exponential((3, 500))
    low, high = deviation.min(axis=1), deviation.max(axis=1)

    def at(u, rows):
        assert np.all((u[:, 0].min(axis=1) >= low) & (u[:, 0].max(axis=1) <= high))
        return np.exp(u[:, 0])

    share, expected = np.full(500, 1 / 500), np.exp(deviation).mean(axis=1)
    every = np.broadcast_to(deviation.copy()[:, None], (3, 1, 500))
    own = OwnNodes(np.zeros((500, 0)))
    average = quadrature(np.zeros(3), deviation, share, np.ones(3), lambda rows: every[rows], own)
    np.testing.assert_allclose(average(at, np.arange(3)), expected, atol=1e-6)


def test_the_nodes_of_own_parameters_average_over_them_too():
    rng = np.random.default_rng(1)
    share, own = rng.dirichlet(np.ones(2000)), rng.uniform(-0.4, 0.3, (2000, 2))
    deviation = 0.3 * own[:, 0] + rng.uniform(-0.5, 0.5, (3, 2000))  # which depend on them
    center = np.array([-1.0, 0.0, 2.0])

    def at(u):
        return ndtr(np.exp(-0.5 * u[:, 1]) * u[:, 0] + 0.5 * u[:, 2])

    def exact(rows):
        raise AssertionError(f"rows {rows} were averaged over all draws")

    every = np.broadcast_to(own.T, (3, 2, 2000))
    u = np.concatenate([(center[:, None] + deviation)[:, None], every], axis=1)
    average = quadrature(center, deviation, share, np.full(3, 1.5), exact, OwnNodes(own))
    mean = average(lambda u, rows: at(u), np.arange(3))
    np.testing.assert_allclose(mean, at(u) @ share, atol=1e-6)


def test_all_draws_are_averaged_where_the_nodes_are_more():
    rng = np.random.default_rng(2)
    share, own = rng.dirichlet(np.ones(1000)), rng.uniform(-2.0, 2.0, (1000, 2))
    u = np.concatenate([rng.uniform(-1.0, 1.0, (3, 1, 1000)), np.tile(own.T, (3, 1, 1))], axis=1)
    seen = []

    def at(u, rows):
        seen.append(u.shape)
        return ndtr(np.exp(-0.5 * u[:, 1]) * u[:, 0] + 0.5 * u[:, 2])

    deviation = u[:, 0].copy()
    average = quadrature(
        np.zeros(3), deviation, share, np.ones(3), lambda rows: u[rows], OwnNodes(own)
    )
    for rows in (np.arange(3), np.array([2])):
        np.testing.assert_allclose(average(at, rows), at(u[rows], rows) @ share, rtol=1e-12)
    assert {shape[2] for shape in seen} == {1000}
