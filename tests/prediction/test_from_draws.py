"""Every prediction of every family, from the draws of ``sample_posterior`` and SciPy alone.

Nothing here calls a likelihood: the densities, moments and links are written out once more. There
are a few rows, and more: of these, predictions are summed in single precision or by a quadrature.
"""

import numpy as np
import pytest
from scipy import special, stats

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from tests.annexes import later, made

# 100 draws of two chains are too few, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(5)
N, D = 60, 3
X = RNG.standard_normal((N, D))
ETA = X @ [1.0, -0.7, 0.3] + 0.4
Y = ETA + 0.6 * RNG.standard_normal(N)
EXPOSURE = RNG.uniform(0.5, 4.0, N)
COUNTS = RNG.poisson(EXPOSURE * np.exp(0.5 * ETA))
TWO = np.where(RNG.random(N) < special.expit(ETA), "yes", "no")
THREE = np.digitize(Y, [-0.3, 1.0])
SHORT = {"n_draws": 100, "n_chains": 2, "random_state": 0}
NETWORK = {**SHORT, "hidden_layer_sizes": (4,), "n_burnin": 50, "thin": 2}
LEVELS = np.array([0.05, 0.5, 0.9])
EACH = [30, 240]  # rows: below and above the number from which they are many


def linear(draws, rows):
    return draws.coef @ rows.T + np.asarray(draws.intercept)[:, None]


def network(draws, rows):
    hidden = np.tanh(rows @ draws.coefs[0] + draws.intercepts[0][:, None])
    return hidden @ draws.coefs[1] + draws.intercepts[1][:, None]


def two(eta):
    p = 1.0 / (1.0 + np.exp(-eta))
    return np.stack([1.0 - p, p], axis=-1)


def several(eta):
    e = np.exp(eta)
    return e / e.sum(axis=-1, keepdims=True)


def ordered(draws, rows):
    below = special.expit(draws.cut_point[:, None] - (draws.coef @ rows.T)[..., None])
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


def normal(draws, rows):
    return stats.norm(linear(draws, rows), np.sqrt(draws.noise_variance)[:, None])


def log_linear(draws, rows):
    sd = np.exp(draws.noise_coef @ rows.T + draws.noise_intercept[:, None])
    return stats.norm(linear(draws, rows), sd)


def poisson(draws, rows, exposure=1.0):
    return stats.poisson(exposure * np.exp(linear(draws, rows)))


REGRESSORS = {
    "normal": (SGLDLinearRegression(**SHORT), Y, normal),
    "known noise": (
        SGLDLinearRegression(noise_variance=0.36, **SHORT),
        Y,
        lambda draws, rows: stats.norm(linear(draws, rows), 0.6),
    ),
    "unequal noise": (SGLDLinearRegression(noise_model="log_linear", **SHORT), Y, log_linear),
    "Laplace": (later("SGDMAPRegressor", random_state=0), Y, normal),
    "network": (
        later("SGLDMLPRegressor", **NETWORK),
        Y,
        lambda draws, rows: stats.norm(
            network(draws, rows)[..., 0], np.sqrt(draws.noise_variance)[:, None]
        ),
    ),
    "counts": (SGLDPoissonRegressor(**SHORT), COUNTS, poisson),
}
CLASSIFIERS = {
    "two": (SGLDLogisticRegression(**SHORT), TWO, lambda draws, rows: two(linear(draws, rows))),
    "three": (
        SGLDLogisticRegression(**SHORT),
        THREE,
        lambda draws, rows: several(
            np.einsum("skd,nd->snk", draws.coef, rows) + draws.intercept[:, None]
        ),
    ),
    "ordered": (SGLDOrdinalClassifier(**SHORT), THREE, ordered),
    "Laplace of two": (
        later("SGDMAPClassifier", random_state=0),
        TWO,
        lambda d, rows: two(linear(d, rows)),
    ),
    "network of two": (
        later("SGLDMLPClassifier", **NETWORK),
        TWO,
        lambda draws, rows: two(network(draws, rows)[..., 0]),
    ),
    "network of three": (
        later("SGLDMLPClassifier", **NETWORK),
        THREE,
        lambda draws, rows: several(network(draws, rows)),
    ),
}


@pytest.fixture(scope="module")
def fitted():
    return {}


def exposed(name, exposure):
    return {"exposure": exposure} if name == "counts" else {}


def regression(fitted, name, n):
    """A fit, n rows, further arguments of its predictions, and the distributions by draw."""
    model, y, of_draws = REGRESSORS[name]
    if name not in fitted:
        fitted[name] = made(model).fit(X, y, **exposed(name, EXPOSURE))
    rows = np.random.default_rng(8).standard_normal((n, D))
    given = exposed(name, np.random.default_rng(9).uniform(0.5, 30.0, n))
    model = fitted[name]
    return model, rows, given, of_draws(model.sample_posterior(), rows, *given.values())


def classification(fitted, name, n):
    """A fit, n rows, and the probabilities by draw."""
    model, y, of_draws = CLASSIFIERS[name]
    if name not in fitted:
        fitted[name] = made(model).fit(X, y)
    rows = np.random.default_rng(8).standard_normal((n, D))
    model = fitted[name]
    return model, rows, of_draws(model.sample_posterior(), rows)


# ---- numbers and counts -------------------------------------------------------------------------


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("name", REGRESSORS)
def test_mean_and_std_are_those_of_the_mixture_of_all_draws(name, n, fitted):
    model, rows, given, each = regression(fitted, name, n)
    mean = each.mean().mean(axis=0)
    std = np.sqrt((each.mean() ** 2 + each.var()).mean(axis=0) - mean**2)
    found = model.predict(rows, return_std=True, **given)
    center = mean if name != "Laplace" else rows @ model.coef_ + model.intercept_  # the mode
    # of many rows that are not linear in single precision
    np.testing.assert_allclose(found[0], center, rtol=1e-9 if n < 200 else 1e-6, atol=1e-9)
    # of many rows from a few nodes of each
    np.testing.assert_allclose(found[1], std, rtol=1e-6 if n < 200 else 2e-4)


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("name", REGRESSORS)
def test_distribution_functions_and_densities_are_those_of_the_mixture(name, n, fitted):
    model, rows, given, each = regression(fitted, name, n)
    y = each.rvs(random_state=np.random.default_rng(3))[0].astype(float)
    found, exact = model.predict_cdf(rows, y, **given), each.cdf(y).mean(axis=0)
    # of many rows from a few nodes of each
    np.testing.assert_allclose(found, exact, rtol=0, atol=3e-6 if n < 200 else 2e-4)
    log_density = each.logpmf(y) if name == "counts" else each.logpdf(y)
    mixed = special.logsumexp(log_density, axis=0) - np.log(len(log_density))
    found = model.log_predictive_density(rows, y, **given)
    np.testing.assert_allclose(found, mixed, rtol=0, atol=2e-5 if n < 200 else 1e-3)
    # of many rows by polynomials
    error = {"rtol": 1e-9} if n < 200 else {"rtol": 1e-5, "atol": 5e-5}
    np.testing.assert_allclose(model.log_likelihood(rows, y, **given).T, log_density, **error)


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("name", REGRESSORS)
def test_quantiles_of_observations_solve_the_mixture(name, n, fitted):
    model, rows, given, each = regression(fitted, name, n)
    for t, q in zip(model.predict_quantiles(rows, LEVELS, **given).T, LEVELS, strict=True):
        reached = each.cdf(t).mean(axis=0)
        if name == "counts":
            assert np.all(reached > q - 3e-6)
            assert np.all(each.cdf(t - 1).mean(axis=0) < q + 3e-6)
        else:
            np.testing.assert_allclose(reached, q, rtol=0, atol=2e-4)
    intervals = model.predict_interval(rows, [0.8, 0.5], **given)
    ends = model.predict_quantiles(rows, [0.1, 0.25, 0.9, 0.75], **given)
    # with other levels a row may have other nodes, if its means are over nodes
    near = 1e-3 if name == "unequal noise" and n >= 200 else 2e-5
    np.testing.assert_allclose(intervals, ends.reshape(n, 2, 2), rtol=0, atol=near)
    one = model.predict_interval(rows, 0.5, **given)
    np.testing.assert_allclose(one, intervals[..., 1], rtol=0, atol=near)


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("name", REGRESSORS)
def test_quantiles_of_the_mean_are_those_of_its_draws(name, n, fitted):
    model, rows, given, each = regression(fitted, name, n)
    each = each.mean()
    found = model.predict_quantiles(rows, LEVELS, kind="mean", **given)
    np.testing.assert_allclose(found.T, np.quantile(each, LEVELS, axis=0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.posterior_mean_draws(rows, **given).T, each, rtol=1e-9)
    some = REGRESSORS[name][2](model.sample_posterior(7, 3), rows, *given.values()).mean()
    found = model.posterior_mean_draws(rows, 7, 3, **given)
    np.testing.assert_allclose(found.T, some, rtol=1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
def test_sampled_observations_have_the_moments_of_the_mixture(name, fitted):
    model, rows, given, each = regression(fitted, name, 40)
    mean = each.mean().mean(axis=0)
    variance = (each.mean() ** 2 + each.var()).mean(axis=0) - mean**2
    drawn = model.sample_y(rows, 4000, random_state=1, **given)
    z = (drawn - mean[:, None]) / np.sqrt(variance)[:, None]
    # the rows share their draws of the parameters: each by itself, 40 at once
    assert np.abs(z.mean(axis=1)).max() < 4.5 / np.sqrt(4000)
    squares = np.square(z)
    error = squares.std(axis=1) / np.sqrt(4000)
    assert np.all(np.abs(squares.mean(axis=1) - 1.0) < 4.5 * error)
    if name == "counts":
        assert np.array_equal(drawn, np.rint(drawn))


# ---- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_are_the_means_of_those_of_the_draws(name, n, fitted):
    model, rows, p = classification(fitted, name, n)
    mean = p.mean(axis=0)
    if name == "Laplace of two":  # predict is at the mode
        mean = two(rows @ model.coef_[0] + model.intercept_[0])
    np.testing.assert_allclose(model.predict_proba(rows), mean, rtol=3e-6)
    np.testing.assert_allclose(model.predict_log_proba(rows), np.log(mean), atol=3e-6)
    labels = model.classes_[p[0].argmax(axis=1)]
    codes = np.searchsorted(model.classes_, labels)
    expected = np.log(mean[np.arange(n), codes])
    np.testing.assert_allclose(model.log_predictive_density(rows, labels), expected, atol=3e-6)
    each = np.log(p[:, np.arange(n), codes])
    error = 1e-9 if n < 200 else 5e-5  # of many rows by polynomials, or in single precision
    np.testing.assert_allclose(model.log_likelihood(rows, labels).T, each, atol=error)
    found = np.moveaxis(model.posterior_mean_draws(rows), -1, 0)
    np.testing.assert_allclose(found, p, rtol=1e-9)


@pytest.mark.parametrize("scale", [30.0, 1e6])
@pytest.mark.parametrize("name", ["three", "ordered"])
def test_log_likelihoods_of_labels_far_out_are_those_of_few_rows(name, scale, fitted):
    model, rows, _ = classification(fitted, name, 300)
    rows, labels = scale * rows, model.classes_[np.arange(300) % len(model.classes_)]
    exact = np.concatenate([model.log_likelihood(rows[k::3], labels[k::3]) for k in range(3)])
    exact = exact[np.argsort(np.concatenate([np.arange(k, 300, 3) for k in range(3)]))]
    assert exact.min() < -0.1 * scale
    found = model.log_likelihood(rows, labels)
    np.testing.assert_allclose(found, exact, rtol=5e-5, atol=5e-5)


@pytest.mark.parametrize("n", EACH)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_quantiles_and_intervals_of_probabilities_are_those_of_the_draws(name, n, fitted):
    model, rows, p = classification(fitted, name, n)
    levels = [0.75, 0.05, 0.25, 0.95]
    expected = np.moveaxis(np.quantile(p, levels, axis=0), 0, -1)
    found = model.predict_proba_quantiles(rows, levels)
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-9)
    intervals = model.predict_proba_interval(rows, coverage=[0.9, 0.5])
    ends = expected[..., [1, 2, 3, 0]].reshape(n, -1, 2, 2)
    np.testing.assert_allclose(intervals, ends, rtol=3e-6, atol=1e-9)
    one = model.predict_proba_interval(rows, coverage=0.9)
    np.testing.assert_allclose(one, intervals[..., 0], rtol=1e-6)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_sampled_labels_are_as_frequent_as_they_are_probable(name, fitted):
    model, rows, p = classification(fitted, name, 40)
    p = p.mean(axis=0)
    drawn = model.sample_y(rows, 4000, random_state=1)
    share = np.stack([(drawn == label).mean(axis=1) for label in model.classes_], axis=1)
    assert np.all(np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / 4000) + 1e-3)


@pytest.mark.parametrize(("name", "label"), [("two", "z"), ("three", 7)])
def test_a_label_that_is_no_class_is_refused(name, label, fitted):
    model, _, _ = classification(fitted, name, 1)
    with pytest.raises(ValueError, match="not among the classes"):
        model.log_likelihood(X[:1], np.array([label]))
