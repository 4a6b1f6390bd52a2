"""Modes that are none, where the likelihood never falls along some direction."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods import Poisson
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.propriety import ImproperPosteriorError, check_mode
from skbayes_sgld.priors import Flat


def test_a_supposed_mode_where_all_rows_are_certain_is_none():
    X = np.array([[1.0], [2.0]])
    posterior = GLMPosterior(X, np.zeros(2), Poisson(), Flat(), fit_intercept=False)
    check_mode(posterior, np.array([-1.0]))
    with pytest.raises(ImproperPosteriorError, match="coefficients would go to infinity"):
        check_mode(posterior, np.array([-20.0]))
