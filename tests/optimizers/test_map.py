"""SGDMAP*: what SGD found is what is reported, and how far the mode is from there is told."""

import re
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

import skbayes_sgld.optimizers.estimators as map_module
from skbayes_sgld import SGDMAPClassifier, SGDMAPRegressor
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.optimizers import find_mode
from skbayes_sgld.optimizers.newton_step import newton_step
from skbayes_sgld.own_models import CustomPosterior
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.sampling.tuning import mode as tuning
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.own_models.test_sampled import Logistic
from tests.references.modes import distance, newton_mode, task

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


# ---- SGD and nothing else ---------------------------------------------------------------------


@ENDS_EARLY
@each
def test_estimate_draws_and_predictions_are_of_one_point(model, y):
    fit = model(max_iter=3, tol=0.0, random_state=0).fit(X, y)
    eta = X @ np.ravel(fit.coef_) + fit.intercept_
    center = np.r_[np.ravel(fit.coef_), fit.intercept_]
    np.testing.assert_allclose(
        fit.posterior_.flat[:, : len(center)].mean(axis=0), center, atol=1e-9
    )
    if model is SGDMAPRegressor:
        np.testing.assert_allclose(fit.predict(X), eta)
    else:
        np.testing.assert_allclose(fit.predict_proba(X)[:, 1], 1 / (1 + np.exp(-eta)))


@each
def test_no_mode_is_looked_for(model, y, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a mode was looked for")

    monkeypatch.setattr(tuning, "_search", refuse)
    monkeypatch.setattr(map_module, "find_mode", refuse)
    few = X[:, [2, 3, 8]]  # all ten, of which two are nearly copies, take a thousand passes
    fit = model(random_state=0).fit(few, y)
    assert fit.distance_ <= fit.tol
    with pytest.raises(AssertionError, match="looked for"):
        model(optimizer="newton").fit(few, y)


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


@pytest.mark.parametrize(
    ("model", "data", "preconditioner"),
    [
        (SGDMAPRegressor, "diabetes", None),
        (SGDMAPRegressor, "raw units", None),
        (SGDMAPRegressor, "short lecture", "curvature"),
        (SGDMAPClassifier, "nba", None),
    ],
)
def test_the_distance_that_is_told_is_that_of_the_worst_coordinate(model, data, preconditioner):
    fit = model(preconditioner=preconditioner, max_iter=400, random_state=0)
    figures = told(fit, *task(model, data))
    truth = distance(fit, *newton_mode(model, data))  # by scikit-learn, or in closed form
    assert fit.distance_ == pytest.approx(truth, rel=0.1)
    assert bool(figures) == (fit.distance_ > fit.tol)
    if figures:
        assert figures[0] == pytest.approx(fit.distance_, rel=0.01)


@pytest.mark.parametrize("optimizer", ["gd", "momentum", "svrg"])
@pytest.mark.parametrize(
    ("model", "data", "max_iter"),
    [
        # in the metric at the mode the gradient vanishes where sigma^2 is far too large
        (SGDMAPRegressor, "little noise", 1),
        (SGDMAPRegressor, "little noise", 4),
        (SGDMAPClassifier, "iris", 30),
        (SGDMAPClassifier, "breast cancer", 30),
    ],
)
def test_the_order_of_a_large_distance_is_told(optimizer, model, data, max_iter):
    fit = model(optimizer=optimizer, max_iter=max_iter, random_state=0)
    told(fit, *task(model, data))
    truth = distance(fit, *newton_mode(model, data))
    assert 0.5 * truth < fit.distance_ < 2.0 * truth


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


# ---- settings ---------------------------------------------------------------------------------


def test_batches_of_more_rows_than_there_are_take_no_memory():
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"batch_size=1000000000 .*442 rows.*at most 442"):
        SGDMAPRegressor(batch_size=10**9).fit(X, Y)
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


@pytest.mark.parametrize("optimizer", ["sgd", "svrg", "newton"])
def test_any_optimizer_finds_the_mode_of_any_posterior(optimizer):
    own = CustomPosterior(Logistic(442, 5))
    exact = tuning.newton_mode(own, np.zeros(own.n_params))
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


@pytest.mark.parametrize("scale", [1e-2, 1e-4, 1e-50])
def test_a_tight_prior_of_the_intercept_does_not_hold_up_the_climb(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = 5.0 + X[:, 0] + rng.standard_normal(200)
    settings = {"intercept_prior": Normal(scale=scale), "random_state": 0}
    model = SGDMAPRegressor(**settings).fit(X, y)  # a warning would be an error
    mode = SGDMAPRegressor(**settings, optimizer="newton").fit(X, y)
    assert model.distance_ <= 0.1
    np.testing.assert_allclose(model.coef_, mode.coef_, atol=0.05)


def test_a_start_at_the_mode_of_the_noise_alone_has_a_finite_distance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = 5.0 + X[:, 0] + rng.standard_normal(200)
    model = SGDMAPRegressor(prior="laplace")
    settings, rows = model._settings(), Rows(X, RowValues(y))
    likelihood = model._likelihood()
    posterior, _ = model._bind(settings, model._model(settings, likelihood, rows), rows)
    start = posterior.start()
    assert posterior.grad(start[None])[0, -1] == 0.0  # where the distance was 0 / 0
    assert 1.0 < newton_step(posterior, start).distance < 100.0
    model = SGDMAPRegressor(prior="laplace", random_state=0).fit(X, y)
    mode = SGDMAPRegressor(prior="laplace", random_state=0, optimizer="newton").fit(X, y)
    assert model.distance_ <= 0.1
    np.testing.assert_allclose(model.coef_, mode.coef_, atol=0.05)
