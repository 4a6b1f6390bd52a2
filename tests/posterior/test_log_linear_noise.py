"""Unequal noise: derivatives, the posterior by importance sampling, and calibration."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.likelihoods import NormalNoise, StudentTNoise
from skbayes_sgld.posterior import NOISE_MODELS, GLMPosterior, LogLinearNoise
from skbayes_sgld.posterior.differences import difference_curvature
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Laplace, Normal
from tests.marks import SHORT, short_chains
from tests.numeric import derivative_by_chain
from tests.references.closed_forms import adapted_draws, laplace_fit, z_scores
from tests.references.unequal_noise import UnequalNoise


def unequal(n=80, seed=0):
    """Rows in units of their own, whose noise grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) * [1.0, 20.0] + [3.0, 100.0]
    log_sigma = 0.5 * (X[:, 0] - 3.0)
    y = 2.0 * X[:, 0] - 0.1 * X[:, 1] + np.exp(log_sigma) * rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2.0, n)


def bound(prior, columns="all", **options):
    X, y, weight = unequal()
    model = LogLinearNoise(columns=columns)
    options = {"sample_weight": weight} | options
    return model.bind(X, y, NormalNoise(), prior, InverseGamma(2.0, 1.0), **options)


FORMS = {  # prior, columns of the noise, and how rows are bound
    "conjugate": (ConjugateNormal(), "all", {"intercept_at_mean": True}),
    "one column": (Normal(0.7, 0.1), [1], {"sample_weight": None}),
    "no intercept": (Normal(0.7, 0.1), [0], {"fit_intercept": False}),
}


@pytest.mark.parametrize("form", FORMS)
def test_bound_sums_batches_curvature_and_units_belong_to_the_density(form):
    from skbayes_sgld.own_models import check_gradient

    prior, columns, options = FORMS[form]
    posterior = bound(prior, columns, **options)
    check_gradient(posterior)
    rng, n_walkers = np.random.default_rng(0), 4
    theta = posterior.start() + 0.05 * rng.standard_normal((8, posterior.n_params))
    H = posterior.curvature(theta[0])
    differences = difference_curvature(posterior.grad, theta[0], posterior.n_samples)
    np.testing.assert_allclose(H, differences, atol=1e-6 * np.abs(H).max())
    reported = posterior.reported
    np.testing.assert_allclose(reported.theta(reported.values(theta)), theta, atol=1e-9)
    value, grad = posterior.log_density(theta), posterior.grad(theta)
    for size in (None, n_walkers):  # positions in a product
        np.testing.assert_allclose(posterior.bind_grad(size)(theta), grad, rtol=1e-9, atol=1e-9)
        found, slope = posterior.bind_value_and_grad(group=size)(theta)
        np.testing.assert_allclose(found - value, (found - value)[0], atol=1e-8)
        np.testing.assert_allclose(slope, grad, rtol=1e-9, atol=1e-9)
    idx = rng.integers(0, posterior.n_samples, (2, 2, 9))
    shared = posterior.bind_batches(2, 9, n_walkers)
    for at, rows in zip(np.repeat(idx, n_walkers, axis=1), shared.gather(idx), strict=True):
        got = shared.gradient(theta, rows)
        np.testing.assert_allclose(got, posterior.grad_log_likelihood(theta, at), rtol=1e-8)


# of 20 draws a chain
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_chain_of_a_fit_does_not_depend_on_how_many_there_are():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 8))
    y = X[:, 0] + np.exp(0.5 * X[:, 0]) * rng.standard_normal(240)
    settings = {"prior": "student_t", "noise_model": "log_linear", "n_draws": 20, "random_state": 0}
    one, three = (SGLDLinearRegression(n_chains=n, **settings).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.posterior_.values, three.posterior_.values[:1])


@pytest.mark.parametrize("n, light", [(90, False), (110, True)])
def test_only_many_rows_are_followed_as_a_normal_posterior_is(n, light):
    X, y, _ = unequal(n)
    posterior = LogLinearNoise([0]).bind(X, y, NormalNoise(), Normal(1.0), InverseGamma(2.0, 1.0))
    assert posterior.n_params == 5
    assert posterior.facts.light_tailed is light


@pytest.mark.parametrize(
    "likelihood, prior, offered",
    [
        (NormalNoise(), Normal(), ("centered", "noncentered")),
        (NormalNoise(), Laplace(), ("centered",)),
        (StudentTNoise(), Normal(), ("centered",)),
    ],
    ids=["normal", "laplace", "heavy noise"],
)
def test_coefficients_are_integrated_only_where_noise_and_prior_are_normal(
    likelihood, prior, offered
):
    X, y, _ = unequal(40)
    own_priors = [InverseGamma(2.0, 1.0)] * len(likelihood.own)
    posterior = LogLinearNoise().bind(X, y, likelihood, prior, own_priors)
    assert posterior.facts.parameterizations == offered
    centre = posterior.centered_normal(anyway=True)  # the noise is then normal
    assert (centre is not None) == likelihood.quadratic


@pytest.mark.parametrize("d, offered", [(19, ("centered", "noncentered")), (21, ("centered",))])
def test_coefficients_are_integrated_where_a_step_of_a_chain_costs_little(d, offered):
    # 300 rows of 20 and of 22 coefficients: 120,000 and 145,200 multiplications
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, d)), rng.standard_normal(300)
    posterior = LogLinearNoise([0]).bind(X, y, NormalNoise(), Normal(), [InverseGamma(2.0, 1.0)])
    assert posterior.facts.parameterizations == offered


def test_draws_of_the_prior_have_the_noise_of_y_at_the_mean_row():
    posterior = bound(Normal(0.7, 0.1))
    X, y, weight = unequal()
    drawn = posterior.draw_prior([np.random.default_rng(seed) for seed in range(400)])
    slopes, at_zero = drawn[:, -3:-1], drawn[:, -1]
    mean = np.average(X, axis=0, weights=weight)
    unit = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    error = 1.0 / np.sqrt(2 * 400)  # of the sd of normal draws, which is 1 in these units
    np.testing.assert_allclose((slopes * unit).std(axis=0), 1.0, atol=4.5 * error)
    log_sd = at_zero + slopes @ mean
    spread = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    np.testing.assert_allclose(log_sd, 0.5 * np.log(spread), rtol=1e-9)


@pytest.mark.parametrize(
    ("conjugate", "n", "seed"),
    [(True, 80, 0), (False, 24, 3)],  # the last has starts where no step is taken
    ids=["conjugate", "few rows"],
)
def test_the_posterior_is_that_of_importance_sampling(conjugate, n, seed):
    X, y, weight = unequal(n, seed)
    weight = weight if n > 24 else np.ones(n)
    prior = (ConjugateNormal if conjugate else Normal)(scale=[2.0, 0.3])
    model = SGLDLinearRegression(
        prior=prior,
        noise_prior=InverseGamma(2.0, 1.5),
        noise_model=LogLinearNoise(scale=[0.5, 0.02]),
        random_state=0,
    ).fit(X, y, weight)
    target = UnequalNoise(
        X, y, weight, [0, 1], np.array([2.0, 0.3]), np.array([0.5, 0.02]), 2.0, 1.5, conjugate
    )
    mode, covariance = laplace_fit(target, start=target.start())
    theta, weights = adapted_draws(target, mode, 1.2 * covariance)
    assert 1.0 / np.sum(weights**2) > 10_000
    assert model.summary()["ess_bulk"].min() > 1000  # so that the errors are small
    assert np.abs(z_scores(model.posterior_.values, theta, weights)).max() < 4.5
    assert model.parameterization_ == "noncentered"
    assert model.posterior_.names[3:] == ["noise_coef[x0]", "noise_coef[x1]", "noise_intercept"]


def test_no_walker_begins_where_it_cannot_leave():
    """One of 64 began 15 nats low, where every trajectory of the run's step was refused."""
    X, y, _ = unequal(24, 3)
    model = SGLDLinearRegression(
        prior=Normal(scale=[2.0, 0.3]),
        noise_prior=InverseGamma(2.0, 1.5),
        noise_model=LogLinearNoise(scale=[0.5, 0.02]),
        random_state=6,
    ).fit(X, y)
    walkers = model.posterior_.values[:, : 15 * 63].reshape(60, 63, 6)  # all but the last of each
    assert (np.ptp(walkers, axis=1) > 0).all()


@short_chains
def test_automatic_scales_know_the_units():
    """In other units of columns and y all predictions are the same."""
    X, y, weight = unequal()
    settings = {"noise_model": "log_linear", "random_state": 0, **SHORT}
    first = SGLDLinearRegression(**settings).fit(X, y, weight)
    second = SGLDLinearRegression(**settings).fit(X * [1e-6, 1e6], 1e3 * y, weight)
    a, b = first.predict_interval(X), second.predict_interval(X * [1e-6, 1e6])
    width = (a[:, 1] - a[:, 0])[:, None]
    np.testing.assert_allclose(b / 1e3 / width, a / width, atol=0.03)
    np.testing.assert_allclose(second.noise_coef_ * [1e-6, 1e6], first.noise_coef_, atol=0.02)


def test_minibatches_have_the_same_posterior():
    X, y, weight = unequal(2000)
    settings = {"noise_model": "log_linear", "random_state": 0}
    full = SGLDLinearRegression(**settings).fit(X, y, weight)
    some = SGLDLinearRegression(gradient="control_variate", batch_size=200, **settings).fit(
        X, y, weight
    )
    a, b = full.summary(), some.summary()
    assert (np.abs(a["mean"] - b["mean"]) / a["sd"]).max() < 0.12
    assert np.abs(b["sd"] / a["sd"] - 1).max() < 0.08


# 100 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_take_the_noise_of_the_columns_that_are_named():
    X, y, weight = unequal()
    frame = pd.DataFrame(X, columns=["age", "dose"])
    chosen = LogLinearNoise(columns=["dose"])
    model = SGLDLinearRegression(noise_model=chosen, n_draws=100, random_state=0)
    model.fit(frame, y, weight)
    assert model.posterior_.names[3:] == ["noise_coef[dose]", "noise_intercept"]
    draws = model.sample_posterior()
    mean = X @ draws.coef.T + draws.intercept
    variance = np.exp(2.0 * (X[:, 1:] @ draws.noise_coef.T + draws.noise_intercept))
    _, std = model.predict(frame, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(variance.mean(1) + mean.var(1)), rtol=1e-6)
    assert model.noise_coef_.shape == (1,)
    assert not hasattr(model, "noise_variance_")


FRAME = pd.DataFrame(unequal()[0][:8], columns=["age", "dose"])


@pytest.mark.parametrize(
    "X, columns, settings, error, message",
    [
        (FRAME, ["weight"], {}, ValueError, "the names in X are 'age', 'dose'"),
        (FRAME, [2], {}, ValueError, "X has 2 columns"),
        (FRAME, [0.5], {}, TypeError, "whole numbers"),
        (FRAME, [0, -2], {}, ValueError, "twice"),
        (FRAME, [], {}, ValueError, "empty"),
        (FRAME, "dose", {}, ValueError, "'all'"),
        (FRAME, "all", {"noise_variance": 1.0}, ValueError, "noise_variance='infer'"),
        (sparse.csr_array(FRAME), "all", {}, TypeError, "X is sparse"),
        (np.eye(8)[:, :3], "all", {}, ValueError, "8 parameters of 8 rows"),
    ],
)
def test_what_has_no_log_linear_noise_is_refused(X, columns, settings, error, message):
    model = SGLDLinearRegression(noise_model=LogLinearNoise(columns=columns), **settings)
    with pytest.raises(error, match=message):
        model.fit(X, np.arange(8.0))


def check_noise_model(name):
    """Raise where the posterior under the noise model of this name contradicts itself."""
    X, y, weight = unequal(40)
    noise = NOISE_MODELS[name]()
    posterior = (GLMPosterior if noise.constant else noise.bind)(
        X,
        y,
        NormalNoise(),
        Normal(1.0),
        InverseGamma(2.0, 1.0),
        sample_weight=weight,
        intercept_at_mean=True,
    )
    theta = posterior.start() + 0.1 * np.random.default_rng(0).standard_normal(
        (2, posterior.n_params)
    )
    slope = derivative_by_chain(posterior.log_density, theta)
    np.testing.assert_allclose(posterior.grad(theta), slope, rtol=1e-5, atol=1e-4)
    reported = posterior.reported
    np.testing.assert_allclose(reported.theta(reported.values(theta)), theta, atol=1e-9)


@pytest.mark.parametrize("name", NOISE_MODELS)
def test_a_noise_model_has_the_gradient_of_its_density(name):
    check_noise_model(name)
