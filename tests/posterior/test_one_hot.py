"""Sums over rows sorted by the levels of a factor are those of the rows as they are."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from skbayes_sgld.likelihoods import Bernoulli, Categorical, Poisson
from skbayes_sgld.posterior import GLMPosterior, one_hot
from skbayes_sgld.priors import Normal

RNG = np.random.default_rng(0)
N, LEVELS = 400, 30
CODES = RNG.integers(LEVELS + 1, size=N)
CODES[CODES == 7] = 8  # a level without rows
CODES[:1] = 9
Z = (CODES[:, None] == np.arange(1, LEVELS + 1)).astype(float)
X = np.hstack([RNG.standard_normal((N, 2)) + 3.0, Z, RNG.standard_normal((N, 1))])
CASES = [
    (Bernoulli(), RNG.integers(0, 2, N) * 1.0, {}),
    (Poisson(), RNG.poisson(2.0, N) * 1.0, {"offset": RNG.standard_normal(N)}),
    (Categorical(4), RNG.integers(0, 4, N) * 1.0, {"sample_weight": RNG.uniform(0.0, 2.0, N)}),
]


@pytest.fixture(autouse=True)
def _any_size(monkeypatch):
    monkeypatch.setattr(one_hot, "_FEWEST_NUMBERS", 0)


def posterior_of(likelihood, y, others, at_mean):
    return GLMPosterior(X, y, likelihood, Normal(scale=1.0), intercept_at_mean=at_mean, **others)


@pytest.mark.parametrize("at_mean", [True, False])
@pytest.mark.parametrize(("likelihood", "y", "others"), CASES)
def test_sorted_rows_have_the_sums_of_the_rows(likelihood, y, others, at_mean):
    posterior = posterior_of(likelihood, y, others, at_mean)
    rows, by_level = posterior.row_sum(), posterior._sum()
    assert isinstance(by_level, one_hot.LevelSum)
    theta = 0.3 * np.random.default_rng(1).standard_normal((5, posterior.n_params))
    both = rows.value_and_grad(theta), by_level.value_and_grad(theta)
    for expected, got in zip(*both, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(by_level.grad(theta)[:1], by_level.grad(theta[:1]))
    for at in (theta[0], theta):
        expected, got = rows.expand(at), by_level.expand(at)
        assert len(got.of_rows) == len(expected.of_rows)
        for one, other in zip(expected.of_rows, got.of_rows, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
        for name in ("grad", "curvature", "value"):
            one, other = getattr(expected, name), getattr(got, name)
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)


def test_the_gradient_is_that_of_the_density():
    posterior = posterior_of(*CASES[2], True)
    theta = 0.3 * np.random.default_rng(2).standard_normal(posterior.n_params)
    slope = approx_fprime(theta, lambda t: posterior.log_density(t[None])[0], 1e-6)
    np.testing.assert_allclose(posterior.grad(theta[None])[0], slope, rtol=1e-3, atol=1e-3)


def test_blocks_of_some_levels_add_up(monkeypatch):
    posterior = posterior_of(*CASES[2], True)
    theta = 0.3 * np.random.default_rng(3).standard_normal((2, posterior.n_params))
    expected = posterior.value_and_grad(theta)
    blocks = [[slice(0, 37), slice(37, 38)], [slice(38, N)]]
    monkeypatch.setattr(one_hot.LevelDesign, "parts", lambda *size: blocks)
    in_blocks = posterior_of(*CASES[2], True).value_and_grad(theta)
    for one, other in zip(expected, in_blocks, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10)


@pytest.mark.parametrize("change", ["two levels in a row", "another number", "half of one"])
def test_other_columns_are_no_factor(change):
    rows = X.copy()
    if change == "two levels in a row":
        rows[-1, 2:32] = 1.0
    else:
        rows[-1, 2 + CODES[-1] % LEVELS] = 0.5 if change == "half of one" else 2.0
    found = one_hot.levels_of(rows)
    assert found is None or found.columns != slice(2, 32)


def test_the_columns_of_a_factor_are_found():
    columns, level = one_hot.levels_of(X)
    assert columns == slice(2, 32)
    np.testing.assert_array_equal(level, CODES)
    assert one_hot.levels_of(np.hstack([X, RNG.standard_normal((N, 40))])) is None
