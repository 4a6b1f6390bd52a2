"""Draws of y before any data, against closed forms of the prior predictive distribution."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.priors import ConjugateNormal, HalfStudentT, InverseGamma, Laplace, Normal
from tests.annexes import later, made

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 2)) * [1.0, 100.0] + [3.0, 0.0]
Y = np.array([10.0, -20.0, 50.0, 35.0, 0.0])
S = 4000


def test_a_normal_prior_and_normal_noise_have_a_joint_normal_distribution():
    location = np.array([1.0, -0.01])
    model = SGLDLinearRegression(
        prior=Normal(scale=[2.0, 0.03], location=location),
        intercept_prior=Normal(scale=0.5, location=4.0),
        noise_variance=1.5,
    )
    y = model.sample_prior(X, S)
    covariance = (X * [4.0, 0.0009]) @ X.T + 0.25 + 1.5 * np.eye(5)
    z = np.linalg.solve(np.linalg.cholesky(covariance), y - (X @ location + 4.0)[:, None])
    np.testing.assert_allclose(z.mean(axis=1), 0.0, atol=4.5 / np.sqrt(S))
    np.testing.assert_allclose(np.cov(z), np.eye(5), atol=6 / np.sqrt(S))


def test_the_conjugate_prior_has_a_t_distribution():
    prior, shape, scale = ConjugateNormal(scale=[1.0, 0.02]), 2.5, 3.0
    model = SGLDLinearRegression(
        prior=prior, noise_prior=InverseGamma(shape=shape, scale=scale), fit_intercept=False
    )
    y = model.sample_prior(X, S)
    sd = np.sqrt(scale / shape * (1 + np.square(X * [1.0, 0.02]).sum(axis=1)))
    for row, unit in zip(y, sd, strict=True):
        assert stats.kstest(row / unit, stats.t(2 * shape).cdf).pvalue > 1e-3


def test_counts_have_the_moments_of_a_lognormal_mixture():
    model = SGLDPoissonRegressor(prior=Normal(scale=0.3), intercept_prior=Normal(scale=0.2))
    rows, exposure = X[:, :1] / 3.0, np.arange(1.0, 6.0)
    y = model.sample_prior(rows, S, exposure=exposure)
    variance = np.square(0.3 * rows[:, 0]) + 0.04
    mean = exposure * np.exp(0.5 * variance)
    total = mean + np.square(mean) * np.expm1(variance)  # noise, and what the rates vary by
    np.testing.assert_allclose(y.mean(axis=1), mean, atol=4.5 * np.sqrt(total.max() / S))
    np.testing.assert_allclose(y.var(axis=1), total, rtol=0.2)


def test_labels_have_their_probabilities():
    model = SGLDLogisticRegression(
        prior=Normal(scale=0.5), intercept_prior=Normal(scale=1.0, location=1.0)
    )
    rows = X[:, :1]
    grid, weight = np.polynomial.hermite_e.hermegauss(60)
    eta = 1.0 + np.sqrt(1.0 + np.square(0.5 * rows)) * grid
    p = expit(eta) @ weight / weight.sum()
    y = model.sample_prior(rows, S, y=np.array(["a", "b", "a", "a", "b"]))
    np.testing.assert_allclose((y == "b").mean(axis=1), p, atol=4 * np.sqrt(0.25 / S))
    assert set(model.sample_prior(rows, 20).ravel()) == {0, 1}
    three = model.set_params(intercept_prior="normal").sample_prior(rows, S, y=np.arange(5) % 3)
    for k in range(3):
        np.testing.assert_allclose((three == k).mean(axis=1), 1 / 3, atol=0.035)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (SGLDLinearRegression(noise_prior="half_normal", intercept_prior="normal"), Y),
        (SGLDLinearRegression(prior="normal", intercept_prior="normal", noise_variance=2.0), Y),
        (
            later(
                "SGDMAPRegressor",
                prior="normal",
                noise_prior="exponential",
                intercept_prior="normal",
            ),
            Y,
        ),
        (SGLDLogisticRegression(intercept_prior="normal"), np.array([0, 1, 1, 2, 0])),
        (SGLDPoissonRegressor(prior="student_t", fit_intercept=False), np.arange(5)),
    ],
)
# 20 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_keeps_the_prior_that_it_was_given(model, y):
    model = made(model)
    if "n_draws" in model.get_params():
        model = model.set_params(n_draws=20)
    before = clone(model).sample_prior(X, 3, random_state=1, y=y)
    after = model.set_params(random_state=0).fit(X, y).sample_prior(X, 3, random_state=1)
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(model.sample_prior(X[:2], 3, random_state=1)[0], before[0])


def test_automatic_scales_follow_the_units():
    model = SGLDLinearRegression(noise_prior="half_normal", intercept_prior="normal")
    plain = model.sample_prior(X, 4, y=Y)
    moved = model.sample_prior(X * [1e3, 1e-5], 4, y=100.0 * Y)
    np.testing.assert_allclose(moved, 100.0 * plain)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": "flat"}, "prior=Flat.. is improper.*prior='normal'"),
        ({"intercept_prior": "flat"}, "intercept_prior=Flat.. is improper.*fit_intercept=False"),
        ({"noise_prior": "flat"}, "noise_prior=FlatNoise.. is improper.*'half_normal'"),
        ({"noise_prior": "inverse_gamma"}, "noise_prior takes its scale from y.*give y"),
        ({"noise_prior": InverseGamma(scale=1.0)}, "noise_prior=.*beyond the range"),
        ({"prior": "normal"}, "prior takes its scale from y.*give y"),
        ({"intercept_prior": "normal"}, "intercept_prior takes its scale from y.*give y"),
        ({"prior": Normal(scale=[1.0, 1.0, 1.0])}, "prior.scale has shape"),
        ({"noise_model": "log_linear"}, "noise_model='log_linear' cannot be drawn"),
        ({"n_chains": 0}, "n_chains=0"),
    ],
)
def test_what_cannot_be_drawn_is_named(settings, message):
    model = SGLDLinearRegression(
        prior=Laplace(scale=1.0),
        intercept_prior=Normal(scale=1.0),
        noise_prior=HalfStudentT(scale=1.0),
    )
    assert model.sample_prior(X, 2).shape == (5, 2)
    with pytest.raises(ValueError, match=message):
        model.set_params(**settings).sample_prior(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_all_that_a_default_linear_model_needs_is_told_at_once():
    model = SGLDLinearRegression()
    with pytest.raises(ValueError, match="intercept_prior='normal'.*noise_prior='half_normal'"):
        model.sample_prior(X, y=Y)
    with pytest.raises(ValueError, match="intercept_prior='normal'.*'half_normal'.*give y"):
        model.sample_prior(X)
    model.set_params(intercept_prior="normal", noise_prior="half_normal")
    assert np.isfinite(model.sample_prior(X, 9, y=Y)).all()


def test_sparse_rows_are_as_dense_ones():
    model = SGLDLinearRegression(noise_prior="half_normal", intercept_prior="normal")
    dense, rows = model.sample_prior(X, 3, y=Y), sparse.csc_array(X)
    np.testing.assert_allclose(model.sample_prior(rows, 3, y=Y), dense)
