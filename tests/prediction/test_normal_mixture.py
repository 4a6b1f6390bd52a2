"""The expansion of a mixture of normals, and quantiles far out in its tails."""

from math import factorial

import numpy as np
import pytest
from numpy.polynomial import Polynomial, hermite_e
from scipy.special import ndtr

from skbayes_sgld.prediction import normal_mixture as mixture


@pytest.mark.parametrize("equal", [True, False])
def test_coefficients_are_those_of_the_hermite_polynomials(equal):
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.ones(12))
    deviation = 0.4 * rng.standard_normal((2, 12))
    deviation -= (deviation @ share)[:, None]
    square = np.ones(12) if equal else rng.uniform(0.6, 1.4, 12)
    scale = np.sqrt(square / (square @ share))
    moments = mixture.MixtureMoments(scale, share)
    sd = np.sqrt(1.0 + deviation**2 @ share)
    c, _ = mixture._coefficients(moments.by_power(moments(deviation.copy()).T), sd, 0.0)
    nodes, weight = hermite_e.hermegauss(20)
    x = (deviation[:, :, None] + scale[:, None] * nodes) / sd[:, None, None]
    for k in range(3, 7):
        of_draws = hermite_e.hermeval(x, np.eye(7)[k]) @ weight / weight.sum()
        np.testing.assert_allclose(c[k], of_draws @ share / factorial(k), atol=1e-12)
    for row in range(2):  # orders beyond the sixth are products of lower cumulants
        third, fourth, fifth, sixth = (c[k][row] for k in range(3, 7))
        log = Polynomial([0, 0, 0, third, fourth, fifth, sixth - 0.5 * third**2])
        series = 1.0 + log + log**2 / 2.0 + log**3 / 6.0
        np.testing.assert_allclose([c[k][row] for k in range(7, 11)], series.coef[7:11], atol=1e-14)


def test_the_expansion_never_understates_its_error_however_few_the_draws():
    q, n_sure = np.array([0.01, 0.05, 0.5, 0.95]), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        share = rng.dirichlet(np.full(40, 0.3))
        deviation = rng.uniform(0.02, 0.5, (400, 1)) * rng.standard_normal((400, 40))
        deviation -= (deviation @ share)[:, None]
        scale = np.exp(0.02 * rng.standard_normal(40))
        scale /= np.sqrt(share @ np.square(scale))
        moments = mixture.MixtureMoments(scale, share)
        by_power = moments.by_power(moments(deviation.copy()).T)
        t, _, error = mixture.expand(by_power, q, np.linalg.norm(share))
        rows, which = np.nonzero(error < 1e-5)
        z = (t[rows, which, None] - deviation[rows]) / scale
        density = (np.exp(-0.5 * z * z) / scale) @ share / np.sqrt(2.0 * np.pi)
        sd = np.sqrt(1.0 + np.square(deviation[rows]) @ share)
        assert np.all(np.abs(ndtr(z) @ share - q[which]) / density < 1e-5 * sd)
        n_sure += len(rows)
    assert n_sure > 40 * 50  # of 1,600 a seed: with fewer, the expansion would save nothing


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_rows_whose_series_diverge_have_quantiles_too(q):
    rng = np.random.default_rng(0)
    deviation, scale = rng.standard_normal((3, 200)), np.exp(0.3 * rng.standard_normal(200))
    share = np.full(200, 1 / 200)
    found = mixture.search(deviation, scale, share, q, np.full((3, 3), np.inf))
    np.testing.assert_allclose(ndtr((found[:, None] - deviation) / scale) @ share, q, atol=1e-5)


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
