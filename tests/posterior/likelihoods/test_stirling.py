"""Remainders of Stirling's formula."""

import numpy as np
import pytest

from skbayes_sgld.posterior.likelihoods.stirling import remainder


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_series_goes_on_where_the_gamma_functions_end(order):
    below, above = remainder(np.array([20.0 - 1e-13, 20.0]), order)
    assert below == pytest.approx(above, rel=1e-9)


@pytest.mark.parametrize("x", [20.0, 35.0, 400.0])
def test_remainders_follow_one_another(x):
    """By log gamma(x + 1) - log gamma(x) = log x, and its two derivatives."""
    here, there = np.array([x]), np.array([x + 1.0])
    fall = [remainder(here, order) - remainder(there, order) for order in (0, 1, 2)]
    log = np.log1p(1.0 / x)
    expected = [
        (x + 0.5) * log - 1.0,
        0.5 / x + 0.5 / (x + 1.0) - log,
        1.0 / np.square(x) - 1.0 / x + 1.0 / (x + 1.0) - 0.5 / x**2 + 0.5 / (x + 1.0) ** 2,
    ]
    digits = [1e-15, 1e-16, 1e-17]
    for order in (0, 1, 2):
        assert fall[order][0] == pytest.approx(expected[order], rel=1e-9, abs=10 * digits[order])
