"""Means over draws from a few nodes of a row."""

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

    def exact(rows):
        raise AssertionError(f"rows {rows} were averaged over all draws")

    quadrature = Quadrature(center, deviation, share, np.full(3, 2.0), exact)
    mean = quadrature.mean(lambda eta, rows: ndtr(2.0 * eta), np.arange(3))
    np.testing.assert_allclose(mean, expected, atol=1e-6)
