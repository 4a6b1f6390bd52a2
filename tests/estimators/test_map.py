"""SGDMAP*: what SGD found is what is reported, and how far the mode is from there is told."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import skbayes_sgld.estimators.map as map_module
from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld.posterior import (
    Bernoulli,
    ConjugateNormal,
    CustomPosterior,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Normal,
)
from skbayes_sgld.sampling import OPTIMIZERS, find_mode
from skbayes_sgld.sampling.tuning import mode as tuning
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.inference.test_own_models import Logistic
from tests.references.modes import SHORT_TASKS, distance, newton_mode, task

# few passes over the rows end far from the mode, and fit says so
ENDS_EARLY = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, Y = load_diabetes(return_X_y=True)
LABELS = (np.median(Y) < Y).astype(float)
CASES = [(SGDMAPRegressor, Y), (SGDMAPClassifier, LABELS)]
each = pytest.mark.parametrize(("model", "y"), CASES, ids=["regressor", "classifier"])


def told(model, X, y):
    """Distance of each warning that a fit gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    texts = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return [float(re.search(r"is (\S+) posterior standard dev", text).group(1)) for text in texts]


def true_distance(model, X, y):
    """Distance of a regressor from Newton's mode in its worst coordinate, in posterior sds."""
    prior, noise = ConjugateNormal(), InverseGamma().for_data(y.var())
    posterior = GLMPosterior(X, y, Gaussian(), prior, noise)
    mode = tuning.find_mode(posterior, posterior.start())
    values = np.r_[model.coef_, model.intercept_, model.noise_variance_]
    way = posterior.reported.theta(values[None])[0] - mode.theta
    return np.max(np.abs(way) / mode.metric.marginal_sd)


def low_noise(shape, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    return X, X @ rng.standard_normal(shape[1]) + noise * rng.standard_normal(shape[0])


# ---- SGD and nothing else ---------------------------------------------------------------------


@ENDS_EARLY
@each
@pytest.mark.parametrize("max_iter", [1, 3])
def test_estimate_predictions_and_intervals_are_of_one_point(model, y, max_iter):
    fit = model(max_iter=max_iter, tol=0.0, random_state=0).fit(X, y)
    eta = X @ np.ravel(fit.coef_) + fit.intercept_
    center = np.r_[np.ravel(fit.coef_), fit.intercept_]
    np.testing.assert_allclose(
        fit.posterior_.flat[:, : len(center)].mean(axis=0), center, atol=1e-9
    )
    if model is SGDMAPRegressor:
        np.testing.assert_allclose(fit.predict(X), eta)
        low, high = fit.predict_interval(X, kind="mean").T
        np.testing.assert_allclose((low + high) / 2, eta, rtol=1e-6)
        np.testing.assert_allclose(fit.predict_quantiles(X, [0.5])[:, 0], eta, rtol=1e-3)
    else:
        np.testing.assert_allclose(fit.predict_proba(X)[:, 1], 1 / (1 + np.exp(-eta)))
        low, high = fit.predict_proba_interval(X)[:, 1].T
        assert np.all((low < fit.predict_proba(X)[:, 1]) & (fit.predict_proba(X)[:, 1] < high))


@each
def test_no_mode_is_looked_for(model, y, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a mode was looked for")

    monkeypatch.setattr(tuning, "_search", refuse)
    monkeypatch.setattr(map_module, "find_mode", refuse)
    fit = model(random_state=0).fit(X, y)
    assert fit.distance_ <= fit.tol
    with pytest.raises(AssertionError, match="looked for"):
        model(optimizer="newton").fit(X, y)


@each
def test_newton_finds_the_mode(model, y):
    newton = model(optimizer="newton").fit(X, y)
    near = model(optimizer="svrg", preconditioner="curvature", schedule="constant", tol=1e-6)
    near.set_params(random_state=0).fit(X, y)
    np.testing.assert_allclose(newton.coef_, near.coef_, rtol=1e-5)


@each
def test_temperature_widens_the_approximation_and_leaves_the_mode(model, y):
    cold, hot = (
        model(optimizer="newton", temperature=t, random_state=0).fit(X, y) for t in (1.0, 4.0)
    )
    np.testing.assert_array_equal(hot.coef_, cold.coef_)
    linear = slice(0, X.shape[1])
    wide, narrow = (m.posterior_.flat.std(axis=0)[linear] for m in (hot, cold))
    np.testing.assert_allclose(wide, 2.0 * narrow, rtol=1e-9)
    assert hot.posterior_.choices["temperature"].value == 4.0
    assert "temperature=4" in repr(hot.posterior_)


# ---- how far the mode is ----------------------------------------------------------------------

SHAPES = [(200, 5), (50, 3), (300, 20), (100, 30), (500, 2)]


@pytest.mark.parametrize("max_iter", [1, 4, 2000])
@pytest.mark.parametrize("noise", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("optimizer", ["gd", "sgd", "momentum", "svrg"])
def test_data_with_little_noise_are_fitted_or_the_distance_is_told(optimizer, noise, max_iter):
    # in the metric at the mode the gradient vanishes where sigma^2 is far too large
    for seed, shape in enumerate(SHAPES[: 3 if max_iter < 2000 else None]):
        X, y = low_noise(shape, noise, seed)
        fit = SGDMAPRegressor(optimizer=optimizer, max_iter=max_iter, random_state=seed)
        figures, truth = told(fit, X, y), true_distance(fit, X, y)
        if figures:
            assert max_iter < 2000
            assert 0.5 * truth < figures[0] < 2.0 * truth
            continue
        assert truth < 1.1 * fit.tol
        assert fit.score(X, y) == pytest.approx(LinearRegression().fit(X, y).score(X, y), abs=0.01)


@pytest.mark.parametrize(("model", "data"), [*SHORT_TASKS, (SGDMAPRegressor, "raw units")])
@pytest.mark.parametrize("preconditioner", [None, "curvature"])
def test_the_distance_that_is_told_is_that_of_the_worst_coordinate(model, data, preconditioner):
    fit = model(preconditioner=preconditioner, max_iter=400, random_state=0)
    figures = told(fit, *task(model, data))
    truth = distance(fit, *newton_mode(model, data))  # by scikit-learn, or in closed form
    assert fit.distance_ == pytest.approx(truth, rel=0.1)
    assert bool(figures) == (fit.distance_ > fit.tol)
    if figures:
        assert figures[0] == pytest.approx(fit.distance_, rel=0.01)


CLASSES = {"breast cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}


@pytest.mark.parametrize("name", CLASSES)
def test_raw_units_and_several_classes(name):
    X, y = CLASSES[name](return_X_y=True)
    fit = SGDMAPClassifier(random_state=0, max_iter=300)
    figures = told(fit, X, y)
    exact = SGDMAPClassifier(optimizer="newton").fit(X, y)
    draws = exact.posterior_.flat
    point = fit.posterior_.flat.mean(axis=0)
    truth = np.max(np.abs(point - draws.mean(axis=0)) / draws.std(axis=0))
    assert truth < 0.6
    if figures:
        assert 0.5 * truth < figures[0] < 2.0 * truth
    else:
        assert truth < 1.3 * fit.tol  # the draws' covariance is known to a few per cent


def test_columns_in_any_units_give_the_same_path():
    units = 10.0 ** np.array([-8.0, 0.0, 4.0, 8.0])
    settings = {"prior": "flat", "random_state": 0}
    plain = SGDMAPRegressor(**settings).fit(X[:, :4], Y)
    scaled = SGDMAPRegressor(**settings).fit(X[:, :4] * units, Y)
    assert scaled.n_iter_ == plain.n_iter_
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, rtol=1e-6)


def test_no_remedy_is_given_that_is_in_force():
    plain, curved = SGDMAPClassifier(max_iter=1), SGDMAPClassifier(max_iter=1)
    curved.set_params(preconditioner="curvature", tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="preconditioner='curvature'"):
        plain.set_params(tol=1e-6).fit(X, LABELS)
    with pytest.warns(ConvergenceWarning, match="max_iter, or set optimizer='newton'"):
        curved.fit(X, LABELS)


# ---- the start --------------------------------------------------------------------------------


@ENDS_EARLY
@each
def test_the_path_starts_where_it_is_told(model, y):
    n_params = X.shape[1] + 1 + (model is SGDMAPRegressor)
    init = np.r_[np.linspace(-1.0, 1.0, n_params - 1), 2.0]
    fit = model(init=init, max_iter=2, tol=0.0).fit(X, y)
    np.testing.assert_allclose(fit.coef_path_[0], init[: X.shape[1]])
    np.testing.assert_allclose(fit.intercept_path_[0], init[X.shape[1]])
    zero = model(init="zeros", step_size=1e-6, max_iter=1).fit(X, y)
    assert zero.intercept_path_[0] == 0.0 and not zero.coef_path_[0].any()


@ENDS_EARLY
def test_starts_drawn_from_the_prior_have_its_moments():
    settings = {"init": "prior", "prior": Normal(scale=3.0), "step_size": 1e-12, "max_iter": 1}
    starts = np.array(
        [
            SGDMAPClassifier(random_state=seed, **settings).fit(X[:20], LABELS[:20]).coef_path_[0]
            for seed in range(20)
        ]
    )
    assert starts.std() == pytest.approx(3.0, rel=4.0 / np.sqrt(2 * starts.size))
    assert abs(starts.mean()) < 4.0 * 3.0 / np.sqrt(starts.size)


@pytest.mark.parametrize(
    ("init", "match"),
    [
        ("mode", r"init='mode' is not known.*'auto', 'zeros'"),
        ([1.0, 2.0], r"init has shape \(2,\); it must be \(12,\): coef\[x0\]"),
        ([[1.0]], r"init has shape \(1, 1\)"),
        (np.full(12, np.nan), r"init=.*not finite"),
        (np.zeros(12), r"init has the value 0 for noise_variance which is out of its range"),
        (None, r"init=None is not accepted|init has shape"),
    ],
)
def test_starts_that_cannot_be_are_refused(init, match):
    with pytest.raises((ValueError, TypeError), match=match):
        SGDMAPRegressor(init=init).fit(X, Y)


# ---- settings ---------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("batch_size", [10**9, 443])
def test_batches_of_more_rows_than_there_are_take_no_memory(model, y, batch_size):
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"batch_size={batch_size} .*442 rows.*at most 442"):
        model(batch_size=batch_size).fit(X, y)
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()


@ENDS_EARLY
@pytest.mark.parametrize("replacement", [True, False])
def test_a_given_step_and_batch_are_algorithm_14(replacement):
    A = np.column_stack([X, np.ones(len(X))])
    settings = {"noise_variance": 2000.0, "prior": Normal(scale=50.0), "step_size": 2.0}
    fit = SGDMAPRegressor(
        batch_size=100, replacement=replacement, schedule="harmonic", max_iter=1, **settings
    )
    fit.set_params(random_state=0, tol=0.0).fit(X, Y)
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    rows = rng.integers(0, 442, (5, 100)) if replacement else rng.permutation(442)[:400]
    beta = np.r_[np.zeros(X.shape[1]), Y.mean()]
    for t, idx in enumerate(rows.reshape(-1, 100)):
        score = 442 / 100 * A[idx].T @ (Y[idx] - A[idx] @ beta) / 2000.0
        beta = beta + 2.0 / (t + 1) * (score - np.r_[beta[:-1] / 2500.0, 0.0])
    np.testing.assert_allclose(np.r_[fit.coef_, fit.intercept_], beta, rtol=1e-9)


# ---- the mode of any posterior ----------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_any_optimizer_finds_the_mode_of_any_posterior(optimizer):
    own = CustomPosterior(Logistic(442, 5))
    exact = tuning.find_mode(own, np.zeros(own.n_params))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = find_mode(own, optimizer=optimizer, random_state=1)
    assert isinstance(found, Mode)
    away = np.max(np.abs(found.theta - exact.theta) / exact.metric.marginal_sd)
    if caught:
        figure = float(re.search(r"is (\S+) posterior", str(caught[0].message)).group(1))
        assert 0.5 * away < figure < 2.0 * away
    else:
        assert away < 0.11


def test_a_start_of_another_shape_is_refused():
    posterior = GLMPosterior(X, LABELS, Bernoulli(), Normal())
    with pytest.raises(ValueError, match=r"start has shape \(3,\); it must be \(11,\)"):
        find_mode(posterior, np.zeros(3), "sgd")
