"""Means over draws from a few nodes of a row."""

from math import factorial, sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from skbayes_sgld.prediction.quadrature import Quadrature


@pytest.mark.parametrize("reach", [0.0, 0.3, 1.0, 1.5])
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

    quadrature = Quadrature(center, deviation, share, np.full(3, 2.0), exact)
    mean = quadrature.mean(lambda eta, rows: ndtr(2.0 * eta), np.arange(3))
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    assert quadrature.nodes.shape[1] == degree + 1  # no more than these need
