"""The expansion of a mixture of normals: its moments, its series, its quantiles."""

from math import factorial

import numpy as np
import pytest
from numpy.polynomial import Polynomial, hermite_e
from scipy import optimize
from scipy.special import ndtr

from skbayes_sgld.prediction import normal_mixture as mixture

RNG = np.random.default_rng(0)
SHARE = RNG.dirichlet(np.ones(12))


def draws(equal):
    """Deviations (2, S) and scales (S,) of the draws, with means of 0 and of 1."""
    deviation = 0.4 * RNG.standard_normal((2, 12))
    deviation -= (deviation @ SHARE)[:, None]
    square = np.ones(12) if equal else RNG.uniform(0.6, 1.4, 12)
    return deviation, np.sqrt(square / (square @ SHARE))


def moments_of(deviation, scale):
    of = mixture.Moments(scale, SHARE)
    return of.by_power(of(deviation.copy()).T)


@pytest.mark.parametrize("equal", [True, False])
def test_moments_are_those_of_all_powers_up_to_the_sixth_order(equal):
    deviation, scale = draws(equal)
    found, excess = moments_of(deviation, scale), scale**2 - 1.0
    wanted = {(i, j) for i in range(1, 7) for j in range(1 if equal else 4) if 3 <= i + 2 * j <= 6}
    assert {power for power in found if power[0]} == wanted | {(2, 0)}
    for (i, j), value in found.items():
        expected = (deviation**i * excess**j) @ SHARE
        np.testing.assert_allclose(np.broadcast_to(value, 2), expected, atol=1e-14)


@pytest.mark.parametrize("equal", [True, False])
def test_coefficients_are_those_of_the_hermite_polynomials(equal):
    deviation, scale = draws(equal)
    sd = np.sqrt(1.0 + deviation**2 @ SHARE)
    c, _ = mixture._coefficients(moments_of(deviation, scale), sd)
    nodes, weight = hermite_e.hermegauss(20)
    x = (deviation[:, :, None] + scale[:, None] * nodes) / sd[:, None, None]
    for k in range(3, 7):
        of_draws = hermite_e.hermeval(x, np.eye(7)[k]) @ weight / weight.sum()
        np.testing.assert_allclose(c[k], of_draws @ SHARE / factorial(k), atol=1e-12)
    for row in range(2):  # orders beyond the sixth are products of lower cumulants
        third, fourth, fifth, sixth = (c[k][row] for k in range(3, 7))
        log = Polynomial([0, 0, 0, third, fourth, fifth, sixth - 0.5 * third**2])
        series = 1.0 + log + log**2 / 2.0 + log**3 / 6.0
        np.testing.assert_allclose([c[k][row] for k in range(7, 11)], series.coef[7:11], atol=1e-14)


def test_the_error_of_a_quantile_is_below_the_one_that_is_told():
    deviation, scale = draws(equal=False)
    q = np.array([0.05, 0.5, 0.975])
    found, density, told = mixture.expand(moments_of(deviation, scale), q)

    def excess(t, row, level):
        return ndtr((t - deviation[row]) / scale) @ SHARE - level

    for row in range(2):
        for k, level in enumerate(q):
            exact = optimize.brentq(excess, -9.0, 9.0, args=(row, level), xtol=1e-13)
            assert abs(found[row, k] - exact) <= told[row, k]
            z = (exact - deviation[row]) / scale
            slope = (np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / scale) @ SHARE
            assert density[row, k] == pytest.approx(slope, rel=0.01)
    assert told.max() < 0.02


@pytest.mark.parametrize("skew", [0.3, 3.0])
def test_far_out_in_a_long_tail_quantiles_keep_their_digits(skew):
    rng = np.random.default_rng(0)
    scale = np.exp(0.3 * rng.standard_normal(4000))
    scale /= np.sqrt(np.square(scale).mean())
    deviation = skew * rng.standard_exponential((8, 4000))
    deviation -= deviation.mean(axis=1, keepdims=True)
    sd = np.sqrt(np.square(deviation).mean(axis=1) + 1.0)
    share = np.full(4000, 1 / 4000)
    start = np.full((3, 8), np.nan)
    for q in (1e-6, 1e-4, 0.9999):
        found = mixture.search(deviation, scale, share, q, start)
        below = ndtr((found[:, None] - deviation) / scale) @ share
        above = ndtr((deviation - found[:, None]) / scale) @ share
        z = (found[:, None] - deviation) / scale
        density = (np.exp(-0.5 * z * z) / scale) @ share / np.sqrt(2.0 * np.pi)
        missed = below - q if q < 0.5 else (1.0 - q) - above
        assert np.all(np.abs(missed) / density < 1e-5 * sd)
