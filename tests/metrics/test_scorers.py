"""Scorers choose what they should, in searches and through wrappers."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
    predict_interval,
    predict_quantiles,
    sample_y,
)
from skbayes_sgld.metrics import (
    brier_score,
    calibration_error,
    crps,
    get_scorer,
    get_scorer_names,
    interval_score,
    pinball_loss,
    quantile_calibration_error,
)
from tests.estimators import test_row_arguments as by_row
from tests.marks import slow

# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 80
MODEL = SGLDLinearRegression(n_draws=100, random_state=0)
LABELS = SGLDLogisticRegression(n_draws=100, random_state=0)
COUNTS = SGLDPoissonRegressor(n_draws=100, random_state=0)
FEW_STEPS = {"n_burnin": 10, "thin": 2}  # a tiny step size would take 100 a draw


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3))
    return X, X @ [0.5, -0.3, 0.0] + 0.3 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def linear(data):
    return make_pipeline(StandardScaler(), clone(MODEL)).fit(*data)


@pytest.fixture(scope="module")
def labels(data):
    X, z = data
    return make_pipeline(StandardScaler(), clone(LABELS)).fit(X, z > 0.2)


@pytest.fixture(scope="module")
def logs(data):
    X, z = data
    model = TransformedTargetRegressor(clone(MODEL), func=np.log, inverse_func=np.exp)
    return model.fit(X, np.exp(z))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (LABELS, {"neg_brier_score"}),
        (MODEL, set(get_scorer_names()) - {"neg_brier_score"}),
    ],
)
def test_every_scorer_is_used_in_a_search_of_a_pipeline(model, names, data):
    X, z = data
    pipe = make_pipeline(StandardScaler(), clone(model).set_params(n_draws=50))
    grid = {f"{pipe.steps[-1][0]}__temperature": [1.0, 2.0]}
    scorers = {name: get_scorer(name) for name in names}
    search = GridSearchCV(pipe, grid, scoring=scorers, refit=min(names), cv=2)
    search.fit(X, z > 0.2 if model is LABELS else z)
    for name in names:
        score = search.cv_results_[f"mean_test_{name}"]
        assert np.all(np.isfinite(score))
        assert np.all(score <= 0) or name == "log_predictive_density"


def test_each_score_is_its_function_of_the_models_predictions(linear, data):
    X, y = data
    w = np.random.default_rng(0).uniform(size=N)
    by = {"sample_weight": w}
    interval, q = predict_interval(linear, X, 0.6), (0.2, 0.9)
    inside = (interval[:, 0] <= y) & (y <= interval[:, 1])
    quantiles = predict_quantiles(linear, X, q)
    tenths = np.arange(1, 10) / 10
    each = linear[-1].log_predictive_density(linear[:-1].transform(X), y)
    at_tenths = predict_quantiles(linear, X, tenths)
    expected = [
        (
            "neg_interval_score",
            {"coverage": 0.6},
            -interval_score(y, interval, 0.6, **by),
        ),
        ("neg_interval_width", {"coverage": 0.6}, -np.average(np.ptp(interval, axis=1), weights=w)),
        ("neg_coverage_error", {"coverage": 0.6}, -abs(np.average(inside, weights=w) - 0.6)),
        ("neg_pinball_loss", {"q": q}, -pinball_loss(y, quantiles, q, **by)),
        ("log_predictive_density", {}, np.average(each, weights=w)),
    ]
    for norm in ("l1", "max"):
        error = quantile_calibration_error(y, at_tenths, tenths, norm=norm, **by)
        expected.append(("neg_calibration_error", {"norm": norm}, -error))
    for name, options, value in expected:
        found = get_scorer(name, **options)(linear, X, y, **by)
        assert found == pytest.approx(value), name


def test_the_crps_of_a_fit_is_that_of_many_draws(linear, logs, data):
    X, z = data
    exposure = np.linspace(1.0, 40.0, N)
    y = np.random.default_rng(0).poisson(exposure * np.exp(z))
    counts = SGLDPoissonRegressor(n_draws=100, random_state=0).fit(X, y, exposure=exposure)
    for model, observed, given in (
        (linear, z, {}),
        (logs, np.exp(z), {}),
        (counts, y, {"exposure": exposure}),
    ):
        expected = crps(observed, sample_y(model, X, 20_000, **given))
        found = get_scorer("neg_crps")(model, X, observed, **given)
        assert found == pytest.approx(-expected, rel=4e-3)


def test_the_density_of_a_transformed_target_is_in_the_users_units(logs, data):
    X, z = data
    y = np.exp(z)
    found = get_scorer("log_predictive_density")(logs, X, y)
    of_logs = logs.regressor_.log_predictive_density(X, z)
    assert found == pytest.approx(np.mean(of_logs - z), rel=1e-6)  # log |dz / dy| = -z


def test_scores_of_labels_are_those_of_their_probabilities(labels, data):
    X, z = data
    y, p = z > 0.2, labels.predict_proba(X)
    assert get_scorer("neg_brier_score")(labels, X, y) == -brier_score(y, p)
    found = get_scorer("neg_calibration_error", n_bins=4)(labels, X, y)
    assert found == -calibration_error(y, p, n_bins=4)
    expected = np.log(p[np.arange(N), y.astype(int)]).mean()
    assert get_scorer("log_predictive_density")(labels, X, y) == pytest.approx(expected)


def test_weights_and_exposures_are_routed(data):
    X, z = data
    exposure, w = np.linspace(1.0, 5.0, N), (np.arange(N) % 2).astype(float)
    y = np.random.default_rng(0).poisson(exposure * np.exp(z))
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(COUNTS).set_fit_request(exposure=True, sample_weight=False)
        scorer = get_scorer("log_predictive_density")
        scorer.set_score_request(exposure=True, sample_weight=True)
        found = cross_validate(
            model,
            X,
            y,
            scoring=scorer,
            cv=2,
            params={"exposure": exposure, "sample_weight": w},
            return_estimator=True,
            return_indices=True,
        )
    for k, rows in enumerate(found["indices"]["test"]):
        by_row = {"exposure": exposure[rows]}
        each = found["estimator"][k].log_predictive_density(X[rows], y[rows], **by_row)
        assert found["test_score"][k] == pytest.approx(np.average(each, weights=w[rows]))


def test_a_score_that_a_model_lacks_is_named_beside_arguments_by_row():
    rng = np.random.default_rng(0)
    X, n = rng.standard_normal((60, 2)), np.full(60, 5)
    model = SGLDLogisticRegression(prior="normal", n_draws=250, random_state=0)
    model.fit(X, rng.binomial(5, 0.4, 60), n_trials=n)
    with pytest.raises(TypeError, match="'neg_crps' needs a regressor with predictive dist"):
        get_scorer("neg_crps")(model, X, n, n_trials=n)


def test_metadata_that_no_score_takes_is_refused():
    with pytest.raises(
        TypeError, match="offset= is no metadata of a score; it takes sample_weight"
    ):
        get_scorer("neg_crps").set_score_request(offset=True)


def test_a_scorer_is_copied_and_pickled_and_says_how_it_was_made():
    scorer = get_scorer("neg_interval_score", coverage=0.5)
    assert repr(scorer) == "get_scorer('neg_interval_score', coverage=0.5)"
    assert repr(pickle.loads(pickle.dumps(scorer))) == repr(scorer)
    search = clone(GridSearchCV(MODEL, {}, scoring=scorer))
    assert repr(search.scoring) == repr(scorer)


def test_a_mixture_far_from_normal_has_its_crps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 2))
    y = X[:, 0] + rng.standard_normal(7)
    model = clone(MODEL).fit(X, y)
    draws = model.sample_posterior()
    away = np.append(0.0, np.geomspace(1e-6, 1e3, 2000))  # from y
    eta, sd = draws.coef @ X[0] + draws.intercept, np.sqrt(draws.noise_variance)
    below = ndtr((y[0] - away[:, None] - eta) / sd).mean(axis=1)
    above = ndtr((eta - y[0] - away[:, None]) / sd).mean(axis=1)
    expected = np.trapezoid(np.square(below) + np.square(above), away)
    found = get_scorer("neg_crps")(model, X[:1], y[:1])
    assert found == pytest.approx(-expected, rel=1e-3)


def test_a_score_of_another_kind_of_estimator_names_what_was_called(linear, labels, data):
    X, z = data
    of_numbers = {name for name in get_scorer_names() if "interval" in name or "coverage" in name}
    for name in of_numbers | {"neg_crps", "neg_pinball_loss"}:
        with pytest.raises(TypeError, match=f"the scorer '{name}' needs a regressor.*SGLDLogistic"):
            get_scorer(name)(labels, X, z > 0.2)
    with pytest.raises(TypeError, match="'neg_brier_score' needs a classifier: SGLDLinear"):
        get_scorer("neg_brier_score")(linear, X, z)
    ridge = Ridge().fit(X, z)
    for name in set(get_scorer_names()) - {"neg_brier_score"}:
        with pytest.raises(TypeError, match=f"the scorer '{name}' needs.*Ridge has no"):
            get_scorer(name)(ridge, X, z)


@pytest.mark.parametrize("n_chains", [slow(1), 4])
def test_chains_no_better_than_random_walks_win_no_search(n_chains):
    # around the mode they predict as the mode does: breast cancer's accuracy is 0.967 for 0.975
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0.0).astype(int)
    model = SGLDLogisticRegression(
        sampler="sgld", n_draws=100, n_burnin=100, thin=4, n_chains=n_chains, random_state=0
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = GridSearchCV(model, {"step_size": [1e-6, 0.5]}, cv=2).fit(X, y)
        stuck = clone(model).set_params(step_size=1e-6).fit(X, y)
        by_density = get_scorer("log_predictive_density")(make_pipeline(stuck), X, y)
        of_pipeline = make_pipeline(stuck).score(X, y)
    assert search.best_params_ == {"step_size": 0.5}
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]
    assert np.isnan([stuck.score(X, y), by_density, of_pipeline]).all()
    for score in (stuck.score, partial(get_scorer("log_predictive_density"), stuck)):
        with pytest.raises(ValueError, match="X has 1 features, but .* is expecting 2"):
            score(X[:, :1], y)
    told = " ".join(str(w.message) for w in caught)
    assert "SGLDLogisticRegression is nan: its chains are no better than random walks" in told
    assert stuck.result_.are_random_walks and not stuck.diagnose().usable
    assert "random walks" in stuck.result_.problems[0]
    assert "set step_size to 'auto'" in stuck.result_.problems[0]
    # the mean of several chains is near the mode, and a score of it would see this
    assert n_chains == 1 or (stuck.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize(
    ("family", "settings", "told"),
    [
        (SGLDLinearRegression, {"step_size": 1e-9}, "^The chains are no better than random walks"),
        (SGLDPoissonRegressor, {"step_size": 1e-6, "n_chains": 1}, "random walks"),
        (SGLDLogisticRegression, {"step_size": 1e-6, "init": "zeros"}, "random walks"),
        (SGLDLogisticRegression, {"step_size": 1e-6, "preconditioner": None}, "random walks"),
        (SGLDLogisticRegression, {"step_size": 1e-300}, "stand still"),
    ],
)
def test_the_score_of_every_family_is_nan_where_chains_stay_near_their_start(
    family, settings, told
):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.poisson(3.0, 60)
    y = y > 3 if family is SGLDLogisticRegression else y
    with pytest.warns(ConvergenceWarning, match=told):
        settings = settings | {"sampler": "sgld", "n_draws": 50, **FEW_STEPS}
        model = family(random_state=0, **settings).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="is nan: its chains are no better"):
        assert np.isnan(model.score(X, y))
    moved = family(random_state=0).fit(X, y)
    assert not moved.result_.are_random_walks and np.isfinite(moved.score(X, y))


def test_an_ensemble_has_a_score_where_its_chains_stay_at_the_modes_they_were_trained_to():
    X = np.linspace(-1.0, 1.0, 20)[:, None]
    model = SGLDMLPRegressor(step_size=1e-12, n_draws=20, n_burnin=100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="have not converged"):
        model.fit(X, X[:, 0])
    assert np.isfinite(model.score(X, X[:, 0]))


@pytest.mark.parametrize(
    "model, y",
    [
        (SGLDLogisticRegression(step_size=1e-300), np.arange(90) % 2),
        slow(SGLDOrdinalClassifier(step_size=1e-300), np.arange(90) % 3),
        slow(SGLDPoissonRegressor(step_size=1e-300), np.arange(90) % 4),
        (SGLDLinearRegression(step_size=1e-300), np.arange(90) % 7),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_predictions_of_chains_that_never_left_their_starts_warn_once_a_fit(model, y):
    """Scorers by name see no more than predictions."""
    X = np.random.default_rng(0).standard_normal((90, 2))
    methods = ["predict_proba", "predict"] if hasattr(model, "predict_proba") else ["predict"]
    for _ in range(2):  # each fit anew
        with pytest.warns(ConvergenceWarning):
            model.set_params(n_draws=50, **FEW_STEPS, random_state=0).fit(X, y)
        for name in methods:  # a warning that is an error is raised each time
            with warnings.catch_warnings(), pytest.raises(ConvergenceWarning, match="not those"):
                warnings.simplefilter("error")
                getattr(model, name)(X)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name in methods * 2:
                getattr(model, name)(X)
        (told,) = caught
        assert "these predictions are not those of a posterior" in str(told.message)


def test_predictions_of_a_fit_without_problems_warn_of_nothing():
    X = np.random.default_rng(0).standard_normal((90, 2))
    SGLDLinearRegression(random_state=0).fit(X, X[:, 0] + np.sin(np.arange(90))).predict(X)


@pytest.mark.parametrize("y", [2.0, np.zeros((40, 2)), np.zeros(3), ["a"] * 40])
def test_the_crps_of_another_shape_of_y_is_refused_by_name(y):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 2))
    model = SGLDLinearRegression(prior="normal", n_draws=250, random_state=0)
    model.fit(rows, rows @ [1.0, -1.0] + rng.standard_normal(40))
    with pytest.raises((TypeError, ValueError), match=r"\by\b"):
        get_scorer("neg_crps")(model, rows, y)


@pytest.fixture(scope="module", params=by_row.MODELS)
def with_argument(request):
    return by_row.fit(request.param)


@pytest.mark.parametrize("name", get_scorer_names())
def test_rows_are_not_scored_without_the_argument_of_the_fit(name, with_argument):
    scorer = get_scorer(name)
    judge = lambda model, y: scorer(model, by_row.X, y)  # noqa: E731
    by_row.refuse_without_argument(name, judge, *with_argument)


def test_noise_without_a_variance_has_a_crps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 1))
    y = X[:, 0] + rng.standard_t(1.6, 120)
    model = SGLDLinearRegression(noise_distribution="student_t", n_draws=200, random_state=0)
    model.fit(X, y)
    assert np.isinf(model.predict(X[:1], return_std=True)[1]).all()
    t = np.sinh(np.linspace(-9.0, 9.0, 1001))
    below = model.predict_cdf(X[:1], t[None])[0]
    expected = np.trapezoid(np.square(below - (t >= y[0])), t)
    found = get_scorer("neg_crps")(model, X[:1].tolist(), y[:1])
    assert -found == pytest.approx(expected, abs=0.01)
