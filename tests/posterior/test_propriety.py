"""Directions along which a likelihood never falls, and modes that are none."""

import numpy as np
import pytest

from skbayes_sgld.posterior import Bernoulli, Categorical, Flat, GLMPosterior, Poisson
from skbayes_sgld.posterior.propriety import ImproperPosteriorError, check_mode


@pytest.mark.parametrize("likelihood", [Bernoulli(), Categorical(3), Poisson()], ids=repr)
def test_the_likelihood_never_falls_where_no_row_loses_and_falls_elsewhere(likelihood):
    rng, K = np.random.default_rng(0), likelihood.n_predictors
    times, without_end = np.linspace(0.0, 40.0, 401), 0
    for _ in range(300):
        design = rng.integers(-3, 4, (3, 2)) + 0.5
        y = rng.integers(0, max(K, 2), 3).astype(float) * (rng.random(3) < 0.5)
        v = rng.integers(-2, 3, (K, 2)).astype(float)
        u = (v @ design.T)[None] * times[:, None, None]  # (time, K, rows)
        by_row = likelihood.log_density(u, np.broadcast_to(y, (len(times), 3)))
        never_falls = bool(np.all(np.diff(by_row, axis=0) > -1e-12))
        loses = np.asarray(likelihood.gains(design, y) @ v.ravel()) < 0.0
        assert never_falls == (not loses.any())
        without_end += never_falls and bool(v.any())
    assert without_end > 3


@pytest.mark.parametrize("far, refused", [(-20.0, True), (-1.0, False)])
def test_a_supposed_mode_where_all_rows_are_certain_is_none(far, refused):
    X = np.array([[1.0], [2.0]])
    posterior = GLMPosterior(X, np.zeros(2), Poisson(), Flat(), fit_intercept=False)
    if not refused:
        check_mode(posterior, np.array([far]))
        return
    with pytest.raises(ImproperPosteriorError, match="coefficients would go to infinity"):
        check_mode(posterior, np.array([far]))


WEIGHTS = np.array([0.5, 2.0, 1e-3, 0.25])


@pytest.mark.parametrize("weight", [None, WEIGHTS, 1e-9 * WEIGHTS])
@pytest.mark.parametrize(
    ("likelihood", "y", "free"),
    [
        (Bernoulli(), [1.0, 0.0, 1.0, 1.0], False),
        (Bernoulli(), [1.0, 1.0, 1.0, 1.0], True),
        (Categorical(3), [0.0, 1.0, 2.0, 2.0], False),
        (Categorical(3), [0.0, 2.0, 2.0, 2.0], True),
        (Poisson(), [0.0, 3.0, 0.0, 7.0], False),
        (Poisson(), [0.0, 0.0, 0.0, 0.0], True),
    ],
)
def test_the_weight_that_holds_a_level_is_the_slope_of_the_likelihood_far_out(
    likelihood, y, free, weight
):
    y, K = np.array(y), likelihood.n_predictors
    w, slopes = np.ones(4) if weight is None else weight, []
    for k in range(K):
        for sign in (-1.0, 1.0):
            far = np.zeros((2, K, 4))
            far[:, k] = sign * np.array([[40.0], [41.0]])
            values = likelihood.log_density(far, np.broadcast_to(y, (2, 4))) @ w
            slopes.append(values[0] - values[1])
    found = likelihood.level_weight(y, weight)
    assert found == pytest.approx(min(slopes), rel=1e-9, abs=1e-14)
    assert (likelihood.level_weight(y) == 0.0) is free
