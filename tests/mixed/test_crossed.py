"""Crossed terms with many labels, by polynomials in ratios of scales, against exact elimination."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.mixed import crossed
from skbayes_sgld.mixed.collapsed import CollapsedPosterior
from skbayes_sgld.mixed.crossed_fit import CrossedPosterior, crossed_terms, fit_crossed
from skbayes_sgld.mixed.polynomial import Whitening, draws_by_weight
from skbayes_sgld.priors import InverseGamma
from tests.marks import slow
from tests.mixed.test_density import bind_rows, check_coefficients, check_gradient

CASES = {
    "crossed": {"g": "intercept", "h": "intercept"},
    "slopes": {"g": "intercept", "h": ["intercept", "x"]},
    "of the main term": {"g": ["intercept", "x"], "h": "intercept"},
    "nested": {"h": "intercept", "h:k": "intercept"},
    "three": {"g": "intercept", "h": "intercept", "k": "intercept"},
    "no such effects": {"g": "intercept", "u": "intercept"},
}


def make_rows(n=500, seed=0):
    """Rows of 50 and 35 labels, others of 4, and labels that say nothing."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(35, 2.0))
    codes = {
        "g": rng.integers(50, size=n),
        "h": rng.choice(35, size=n, p=share),
        "k": rng.integers(4, size=n),
        "u": rng.integers(40, size=n),
    }
    x = rng.normal(2.0, 1.5, n)
    y = 3.0 + 0.4 * x + rng.normal(size=n) + rng.normal(size=50)[codes["g"]]
    y += rng.normal(size=35)[codes["h"]] + 0.4 * rng.normal(size=35)[codes["h"]] * x
    frame = pd.DataFrame({name: each.astype(str) for name, each in codes.items()})
    return frame.assign(x=x, z=rng.normal(size=n)), y + rng.normal(size=4)[codes["k"]]


def make_posterior(case, weighted=False, n=500):
    frame, y = make_rows(n)
    columns = {name for key in CASES[case] for name in key.split(":")} | {"x", "z"}
    weight = np.random.default_rng(2).integers(0, 4, n).astype(float) if weighted else None
    noise = NormalNoise(), (InverseGamma(1.0, 1.0),)
    rows = frame[sorted(columns)], y
    return bind_rows(*rows, CASES[case], *noise, weight, drops=weighted)[0]


@cache
def fitted_and_draws(case, weighted, n=40):
    """Posterior by polynomials, the exact one, and draws about the exact mode."""
    posterior = make_posterior(case, weighted)
    fitted, exact = fit_crossed(posterior, crossed_terms(posterior)), CollapsedPosterior(posterior)
    assert fitted is not None
    found = minimize(
        lambda theta: tuple(-each[0] for each in exact.value_and_grad(theta[None])),
        fitted.start(),
        jac=True,
        method="BFGS",
    )
    values, vectors = np.linalg.eigh(found.hess_inv)
    whitening = Whitening(found.x, vectors * np.sqrt(np.clip(values, 1e-6, 1.0)))
    draws = draws_by_weight(fitted.log_density, whitening, np.random.default_rng(4), n)
    return fitted, exact, draws


# weights change the rows, whatever the terms: the dearest terms have theirs in the next test
@pytest.mark.parametrize(
    ("weighted", "case"),
    [
        *[(False, case) for case in CASES if case != "of the main term"],
        slow(False, "of the main term"),  # its gradient has a quick test
        *[(True, case) for case in ("crossed", "nested", "three", "no such effects")],
    ],
)
def test_the_density_by_polynomials_is_the_exact_one(case, weighted):
    fitted, exact, theta = fitted_and_draws(case, weighted)
    error = fitted.log_density(theta) - exact.log_density(theta)
    assert np.std(error) < 0.05
    assert np.ptp(theta, axis=0).min() > 0.1  # positions are those of a posterior


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_moments_by_polynomials_are_those_of_the_exact_density(case):
    # of many draws a few lie beyond the nodes, where the density may be far off
    fitted, exact, theta = fitted_and_draws(case, True, n=400)
    error = exact.log_density(theta) - fitted.log_density(theta)
    weight = np.exp(error - error.max())
    weight /= weight.sum()
    mean, sd = theta.mean(axis=0), theta.std(axis=0)
    exact_mean = weight @ theta
    exact_sd = np.sqrt(weight @ np.square(theta - exact_mean))
    assert np.all(np.abs(exact_mean - mean) < 0.05 * sd)
    assert np.all(np.abs(np.log(exact_sd / sd)) < 0.03)
    assert np.quantile(np.abs(error - np.median(error)), 0.95) < 0.1


@pytest.mark.parametrize("case", ["crossed", "slopes", "of the main term", "nested"])
@pytest.mark.parametrize("distance", [0.0, 4.0])
def test_the_gradient_is_that_of_the_density(case, distance):
    fitted, _, theta = fitted_and_draws(case, False)
    move = distance * np.random.default_rng(3).normal(size=theta[:3].shape)
    check_gradient(fitted, theta[:3] + move, atol=2e-3)


@pytest.mark.parametrize("case", ["crossed", slow("slopes"), "nested", "no such effects"])
def test_effects_are_drawn_from_their_normal_distribution_given_the_scales(case):
    fitted, _, theta = fitted_and_draws(case, False)
    near = np.tile(theta[0], (8000, 1))
    near[:, 0] += 1e-6 * np.arange(8000)  # each draw of the coefficients belongs to its theta
    draws = fitted.reported.values(near)
    np.testing.assert_array_equal(draws[:7], fitted.reported.values(near[:7]))
    np.testing.assert_array_equal(draws[70:75], fitted.reported.values(near[70:75]))
    check_coefficients(make_posterior(case), draws)


def test_far_from_all_rows_the_density_falls():
    fitted, _, theta = fitted_and_draws("crossed", False)
    way = np.array([1.0, 0.5, 0.0])
    values = fitted.log_density(theta[:1] + np.linspace(2.0, 8.0, 20)[:, None] * way)
    assert np.all(np.diff(values) < 0.0)


def test_few_labels_are_integrated_out_with_the_coefficients():
    frame, y = make_rows()
    terms = {"g": "intercept", "k": "intercept"}
    posterior, _, _ = bind_rows(
        frame[["g", "k", "x"]], y, terms, NormalNoise(), (InverseGamma(1.0, 1.0),)
    )
    assert crossed_terms(posterior) == []


@pytest.mark.parametrize("of_h", [["intercept"], slow(["intercept", "x"])], ids=len)
def test_a_fit_reports_effects_of_all_labels(of_h):
    frame, y = make_rows()
    model = SGLDLinearRegression(group_effects={"g": "intercept", "h": of_h}, random_state=0)
    model.fit(frame[["g", "h", "x", "z"]], y)
    effects = model.group_effects_
    assert len(effects) == 50 + 35 * len(of_h)
    assert model.score(frame[["g", "h", "x", "z"]], y) > 0.6


@pytest.mark.parametrize("case", ["crossed", "of the main term"])
def test_products_by_label_need_not_be_kept(case, monkeypatch):
    posterior = make_posterior(case, weighted=True)
    kept = CrossedPosterior(posterior, crossed_terms(posterior))
    monkeypatch.setattr(crossed, "_PRODUCTS", 0)
    not_kept = CrossedPosterior(posterior, crossed_terms(posterior))
    pairs = (each.nodes(each.start()[None]) for each in (kept, not_kept))
    for some, others in zip(*pairs, strict=True):
        np.testing.assert_allclose(some.N, others.N, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(some.means, others.means, atol=1e-10)
        assert some.log_det == pytest.approx(others.log_det, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_polynomials_are_close_where_labels_are_nested(seed):
    """The outer labels' effects are in the sums of squares of the inner ones, and larger."""
    n, rng = 10_000, np.random.default_rng(seed)
    inner = rng.integers(1000, size=n)
    outer, x = inner % 40, rng.normal(size=n)
    y = rng.normal(size=40)[outer] + 0.5 * rng.normal(size=1000)[inner] + rng.normal(size=n)
    frame = pd.DataFrame({"a": outer.astype(str), "b": inner.astype(str), "x": x})
    terms, noise = {"a": "intercept", "b": "intercept"}, (NormalNoise(), (InverseGamma(1.0, 1.0),))
    posterior = bind_rows(frame, y, terms, *noise)[0]
    assert fit_crossed(posterior, crossed_terms(posterior)) is not None


def test_variances_by_moments_tell_nested_labels_apart():
    n, rng = 40_000, np.random.default_rng(0)
    inner = rng.integers(4000, size=n)
    outer, x = inner % 200, rng.normal(size=n)
    y = 2.0 * rng.normal(size=200)[outer] + rng.normal(size=4000)[inner] + rng.normal(size=n)
    frame = pd.DataFrame({"a": outer.astype(str), "b": inner.astype(str), "x": x})
    terms, noise = {"a": "intercept", "b": "intercept"}, (NormalNoise(), (InverseGamma(1.0, 1.0),))
    posterior = bind_rows(frame, y, terms, *noise)[0]
    start = CrossedPosterior(posterior, crossed_terms(posterior)).start()
    found = posterior.covariances.reported(start[None, :2])[0]
    # four standard errors of the sd of 200 and of 4,000 effects
    np.testing.assert_allclose(found, [2.0, 1.0], rtol=4.0 / np.sqrt(2 * 200))
    assert np.exp(start[2]) == pytest.approx(1.0, rel=4.0 * np.sqrt(2.0 / n))
