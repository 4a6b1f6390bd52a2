"""Remainders of Stirling's formula."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods.stirling import remainder


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_series_goes_on_where_the_gamma_functions_end(order):
    below, above = remainder(np.array([20.0 - 1e-13, 20.0]), order)
    assert below == pytest.approx(above, rel=1e-9)
    assert remainder(np.array([20.0]), order) == above  # of large arguments alone
