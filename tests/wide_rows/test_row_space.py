"""Few rows, many columns: the distribution of what the rows see, and the prior of the rest."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.inference.parameterizations.noncentered import noncenter
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Normal
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.wide_rows.row_space import RowSpacePosterior
from tests.references.closed_forms import normal_inverse_gamma

SCALE, LOCATION = np.linspace(0.5, 2.0, 9), np.linspace(-1.0, 1.0, 9)


def pair(likelihood, prior, temperature=1.0):
    """A small model and the same in the space of its five rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5, 9)) + 2.0, np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    noise = InverseGamma(2.0, 1.0) if likelihood.infers_noise else None
    options = {"sample_weight": rng.uniform(0.5, 2.0, 5), "intercept_at_mean": True}
    full = GLMPosterior(X, y, likelihood, prior, noise, **options)
    return full, RowSpacePosterior(full, temperature)


ROOT = np.random.default_rng(0).standard_normal((9, 9))
COVARIANCE = ROOT @ ROOT.T + np.eye(9)
SPACES = {  # likelihood, prior and temperature
    "noise, a matrix": (
        NormalNoise(),
        ConjugateNormal(covariance=COVARIANCE, location=LOCATION),
        1.7,
    ),
    "labels, a matrix": (Bernoulli(), Normal(covariance=COVARIANCE, location=LOCATION), 1.0),
    "three classes": (Categorical(3), Normal(SCALE, LOCATION), 1.7),
    "sparse rows": (Bernoulli(), Normal(SCALE, LOCATION), 1.0),
    "sparse rows, one twice": (Bernoulli(), Normal(SCALE, LOCATION), 1.7),
    "sparse rows, multiples of one": (Bernoulli(), Normal(SCALE, LOCATION), 1.0),
}


@pytest.mark.parametrize("name", SPACES)
def test_given_what_the_rows_see_coefficients_are_what_the_prior_says(name):
    likelihood, prior, temperature = SPACES[name]
    rng, K, d = np.random.default_rng(0), likelihood.n_predictors, 9
    X = rng.standard_normal((6, d)) + 1.0
    y = rng.standard_normal(6) if likelihood.infers_noise else np.arange(6.0) % max(K, 2)
    if name.endswith("twice"):
        X, y = np.vstack([X, X[:1]]), np.append(y, 1.0)
    if name.endswith("of one"):
        X = np.outer(rng.uniform(0.5, 2.0, 6), X[0])
    columns = sparse.csr_array(X) if name.startswith("sparse") else X
    noise = InverseGamma(2.0, 1.0) if likelihood.infers_noise else None
    options = {"intercept_prior": Normal(2.0), "intercept_at_mean": True}
    full = GLMPosterior(columns, y, likelihood, prior, noise, **options)
    rows = RowSpacePosterior(full, temperature)
    assert rows.n_params == K * (np.linalg.matrix_rank(X) + 1) + likelihood.infers_noise
    theta = np.tile(0.1 * rng.standard_normal(rows.n_params), (20_000, 1))
    values = rows.reported.values(theta)
    linear = values[:, : K * (d + 1)].reshape(-1, K, d + 1)
    # the rows see the same predictors, and the way back is the way there
    predictors = linear[..., :d] @ X.T + linear[..., d:]
    np.testing.assert_allclose(predictors - predictors[:1], 0.0, atol=1e-9)
    variance = values[0, -1] if likelihood.infers_noise else 1.0
    u = np.vstack([predictors[0], np.full(len(X), np.log(variance))])[: likelihood.n_local]
    expected = likelihood.log_density(u[None], y)
    np.testing.assert_allclose(rows.log_likelihood(theta[:1]), expected, atol=1e-9)
    back = rows.reported.theta(values[:3])  # the same but for a shift of all classes
    np.testing.assert_allclose(rows.log_likelihood(back), rows.log_likelihood(theta[:3]))
    assert K > 1 or np.allclose(back, theta[:3], atol=1e-8)
    # by conditioning; of several classes, one less their mean
    location, share = (LOCATION, 1.0) if K == 1 else (0.0 * LOCATION, 1.0 - 1.0 / K)
    covariance = COVARIANCE if prior.covariance is not None else np.diag(SCALE**2)
    gain = covariance @ X.T @ np.linalg.pinv(X @ covariance @ X.T, rcond=1e-12)
    mean = location + gain @ (predictors[0, 0] - linear[0, 0, d] - X @ location)
    rest = variance * temperature * share * (covariance - gain @ X @ covariance)
    error = np.sqrt(np.diag(rest) / len(values))
    assert np.all(np.abs(linear[:, 0, :d].mean(axis=0) - mean) < 4.5 * error + 1e-9)
    spread = np.sqrt(np.outer(np.diag(rest), np.diag(rest)))
    assert np.max(np.abs(np.cov(linear[:, 0, :d].T) - rest) / spread) < 0.05


def test_the_rest_is_another_for_other_draws_and_the_same_for_the_same():
    _, reduced = pair(Bernoulli(), Normal(SCALE, LOCATION))
    theta = np.random.default_rng(3).standard_normal((6, reduced.n_params))
    values = reduced.reported.values(theta)
    np.testing.assert_array_equal(reduced.reported.values(theta[:4]), values[:4])
    other = reduced.reported.values(theta + 1e-9)
    assert np.all(np.abs(other - values).max(axis=1) > 1e-3)
    np.testing.assert_allclose(reduced.reported.theta(values), theta, atol=1e-10)


def test_tempering_acts_on_all_parameters_together():
    full, reduced = pair(NormalNoise(), ConjugateNormal(SCALE, LOCATION), 1.6)
    whole = noncenter(full, 1.6)[0]  # the closed form of the same distribution, unreduced
    short = noncenter(reduced, 1.6)[0]
    x = np.linspace(-2.0, 2.0, 5)[:, None]
    at, expected = (p.coordinates.scale_map.forward(x) for p in (short, whole))
    np.testing.assert_allclose(at, expected, rtol=1e-5, atol=1e-5)


# ---- the estimators ------------------------------------------------------------------------------

N, D = 60, 150


@pytest.fixture
def wide(monkeypatch):
    """Data on which the estimators go by the rows: 150 columns stand for 2,001."""
    monkeypatch.setitem(vars(THRESHOLDS), "many_columns", 100)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, D)) / np.sqrt(D) + 0.01
    return X, 3.0 * X @ rng.standard_normal(D) + 0.5 * rng.standard_normal(N)


def test_the_default_linear_model_agrees_with_the_closed_form(wide):
    X, y = wide
    prior, noise_prior = ConjugateNormal(scale=10.0), InverseGamma(2.0, 0.5)
    model = SGLDLinearRegression(prior=prior, noise_prior=noise_prior, random_state=0).fit(X, y)
    assert model.parameterization_ == "row_space"
    exact = normal_inverse_gamma(X, y, scale=10.0, shape=2.0, rate=0.5)
    draws = model.posterior_.flat
    assert np.all(np.abs(draws.mean(axis=0) - exact.mean) < 0.1 * exact.sd)
    assert np.all(np.abs(draws.std(axis=0) / exact.sd - 1) < 0.06)


# the conjugate prior warns of few rows a column
@pytest.mark.slow
@pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns")
def test_predictions_of_many_columns_are_those_of_few(wide, monkeypatch):
    X, y = wide
    model = SGLDLinearRegression(n_draws=300, random_state=0).fit(X, y)
    std, interval = model.predict(X, return_std=True)[1], model.predict_interval(X)
    for name in ("_FEWEST_ROWS", "_ROWS_PER_COLUMN"):  # the draws are factored all the same
        monkeypatch.setattr(f"skbayes_sgld.prediction.predictors.{name}", 0)
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], std, rtol=1e-6)
    np.testing.assert_allclose(model.predict_interval(X), interval, atol=1e-4 * std.max())


def test_chains_of_many_columns_do_not_depend_on_each_other(wide):
    X, y = wide
    settings = {"prior": "conjugate_normal", "n_draws": 30, "random_state": 1}
    with pytest.warns(UserWarning, match="effective sample size|60 rows for 150"):
        one = SGLDLinearRegression(n_chains=1, **settings).fit(X, y)
        three = SGLDLinearRegression(n_chains=3, **settings).fit(X, y)
    np.testing.assert_array_equal(one.posterior_.values[0], three.posterior_.values[0])


def test_a_warm_start_goes_on_from_the_last_draws_though_the_rows_are_others(wide):
    X, y = wide
    settings = {"n_draws": 20, "n_burnin": 0, "thin": 1, "warm_start": True, "random_state": 2}
    model = SGLDLinearRegression(step_size=1e-12, **settings)
    with pytest.warns(UserWarning):
        before = model.fit(X, y).posterior_.values[:, -1].copy()
        after = model.fit(X[:50], y[:50]).posterior_.values[:, 0]
    # such steps lead nowhere: what the rows see of the first draws is what they saw of the last
    at = [X[:50] @ values[:, :D].T for values in (before, after)]
    np.testing.assert_allclose(*at, atol=1e-3)


@pytest.mark.parametrize("prior", ["normal", "hierarchical_normal"])
def test_a_pickled_model_leaves_the_data_and_the_metric_behind(wide, prior):
    with pytest.warns(UserWarning):
        model = SGLDLinearRegression(prior=prior, n_draws=20, random_state=0).fit(*wide)
    assert len(pickle.dumps(model)) < 2 * model.posterior_.values.nbytes


@pytest.mark.parametrize(
    "estimator, n, d, expected",
    [
        (SGLDPoissonRegressor, 20, 320, "row_space"),
        (SGLDPoissonRegressor, 20, 280, "centered"),  # few parameters
        (SGLDPoissonRegressor, 170, 320, "centered"),  # half as many rows as columns
        (SGLDLogisticRegression, 20, 320, "centered"),  # trajectories along the rows themselves
        (SGLDLogisticRegression, 14, 2001, "row_space"),
    ],
)
def test_only_few_rows_of_many_columns_are_sampled_in_the_space_of_the_rows(
    estimator, n, d, expected
):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    y = (
        rng.poisson(np.exp(1.0 + X[:, 0]))
        if estimator is SGLDPoissonRegressor
        else np.arange(n) % 2
    )
    settings = {"prior": Normal(1.0), "random_state": 0, "n_draws": 20, "n_burnin": 0, "thin": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of 20 draws
        assert estimator(**settings).fit(X, y).parameterization_ == expected
