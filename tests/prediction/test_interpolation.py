"""Log densities under every draw from polynomials."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods import (
    Bernoulli,
    BetaBinomial,
    Binomial,
    Gamma,
    NegativeBinomial,
    NormalNoise,
    Poisson,
    StudentTNoise,
    as_totals,
)
from skbayes_sgld.prediction.interpolation import Interpolation

N_DRAWS = 4000
TRIALS = np.array([1.0, 7.0, 40.0, 3.0] * 6)
CENTER = np.repeat([-4.0, -1.0, 0.0, 0.5, 2.0, 6.0], 4)
COUNTS = np.array([0.0, 1.0, 2.0, 30.0] * 6)
FAMILIES = {
    "binary": (Bernoulli(), COUNTS % 2, ()),
    "totals": (Binomial(), as_totals(np.minimum(COUNTS, TRIALS), TRIALS), ()),
    "counts": (Poisson(), COUNTS, ()),
    "normal": (NormalNoise(), CENTER + COUNTS / 3, (-0.5,)),
    "gamma": (Gamma(), np.exp(CENTER) * (0.2 + COUNTS / 4), (-1.0,)),
    "negative binomial": (NegativeBinomial(), COUNTS, (-1.0,)),
    "beta-binomial": (BetaBinomial(), as_totals(np.minimum(COUNTS, TRIALS), TRIALS), (-2.0,)),
    "t noise": (StudentTNoise(), CENTER + COUNTS / 3, (-0.5, 1.4)),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sd", [0.0, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_are_those_of_the_likelihood(family, sd, dtype):
    likelihood, y, means = FAMILIES[family]
    rng = np.random.default_rng(0)
    away = (sd * rng.standard_normal((len(y), N_DRAWS))).astype(dtype)
    own = np.array(means).reshape(1, -1) + 0.05 * rng.standard_normal((N_DRAWS, len(means)))
    values = Interpolation(own)(
        CENTER, away.copy(), lambda u, rows: likelihood.log_density(u, y[rows, None])
    )
    u = np.stack(np.broadcast_arrays(CENTER[:, None] + away, *own.T[:, None]), axis=1)
    exact = likelihood.log_density(u, y[:, None])
    found = ~np.isnan(values).any(axis=1)
    assert np.array_equal(found, ~np.isnan(values).all(axis=1))
    assert found.mean() > 0.8 or sd >= 0.5, "rows left to their draws"
    error = np.abs(values - exact)[found] / np.maximum(1.0, np.abs(exact[found]))
    assert error.max(initial=0.0) < 5e-5


def test_rows_that_no_polynomial_describes_are_left():
    away = np.random.default_rng(1).uniform(-1.0, 1.0, (3, N_DRAWS))

    def function(u, rows):
        return np.where(
            rows[:, None] == 0, np.abs(u[:, 0]), np.where(rows[:, None] == 1, -np.inf, u[:, 0])
        )

    values = Interpolation(np.empty((N_DRAWS, 0)))(np.zeros(3), away.copy(), function)
    assert np.isnan(values[:2]).all()
    np.testing.assert_allclose(values[2], away[2], atol=1e-12)


def test_rows_whose_terms_cancel_are_left_in_single_precision():
    """Values near 0 of a row whose largest are 1e5 would be off by 6e-3."""
    away = np.random.default_rng(2).uniform(-1.0, 1.0, (2, N_DRAWS)).astype(np.float32)

    def function(u, rows):
        return np.where(rows[:, None] == 0, 1e5, 10.0) * u[:, 0]

    values = Interpolation(np.empty((N_DRAWS, 0)))(np.zeros(2), away.copy(), function)
    assert np.isnan(values[0]).all()
    np.testing.assert_allclose(values[1], 10.0 * away[1], rtol=0.0, atol=5e-6)
