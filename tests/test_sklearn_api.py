"""The estimators as scikit-learn sees them: its own checks, and the tools that users combine."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbayes_sgld import (
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
)
from skbayes_sgld.posterior import ConjugateNormal, InverseGamma, Laplace, Normal
from skbayes_sgld.sampling import (
    SGLD,
    ControlVariate,
    Curvature,
    Minibatch,
    Momentum,
    NormClip,
    Polynomial,
)

ESTIMATORS = [
    SGLDLinearRegression(n_draws=250),
    SGLDLogisticRegression(n_draws=250),
    SGDMAPRegressor(),
    SGDMAPClassifier(),
]

# 200 draws and fewer are too few for the summaries to be relied on, and the estimators say so
few_draws = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def granted(estimator):
    """Return what scikit-learn grants its own SGD estimators."""
    if isinstance(estimator, (SGDMAPRegressor, SGDMAPClassifier)):
        reason = "a minibatch picks rows, not weights: as for SGDRegressor and SGDClassifier"
        return {"check_sample_weight_equivalence_on_dense_data": reason}
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=granted)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- data and settings that the tests share ---------------------------------------------------

N, D = 60, 3
rng = np.random.default_rng(0)
X = rng.standard_normal((N, D)) + [0.0, 2.0, -1.0]
Y = X @ [1.0, -2.0, 0.5] + 1.0 + rng.standard_normal(N)
LABELS = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))

# everything given: no pilot, and nothing that could differ between two fits
PLAIN = {"n_draws": 200, "n_chains": 2, "n_burnin": 40, "thin": 4, "step_size": 0.5}
FITS = {
    "linear": (SGLDLinearRegression(**PLAIN, random_state=0), Y),
    "logistic": (SGLDLogisticRegression(**PLAIN, random_state=0), LABELS),
    "softmax": (SGLDLogisticRegression(**PLAIN, random_state=0), THREE),
    "map_linear": (SGDMAPRegressor(random_state=0), Y),
    "map_logistic": (SGDMAPClassifier(random_state=0), LABELS),
}
every_fit = pytest.mark.parametrize("name", FITS)
sampled_fit = pytest.mark.parametrize("name", ["linear", "logistic", "softmax"])


def make(name, **params):
    estimator, y = FITS[name]
    return clone(estimator).set_params(**params), y


def draws(estimator):
    return estimator.posterior_.values


def predictions(estimator, rows):
    if is_classifier(estimator):
        return estimator.predict_proba(rows)
    return np.column_stack([*estimator.predict(rows, return_std=True)])


def ridge(X, y, noise_variance, scale):
    """Return mean and covariance of (coef, intercept), the noise known, coef ~ N(0, scale^2)."""
    A = np.column_stack([X, np.ones(len(X))])
    precision = A.T @ A / noise_variance + np.diag(np.r_[np.full(X.shape[1], scale**-2.0), 0.0])
    return np.linalg.solve(precision, A.T @ y / noise_variance), np.linalg.inv(precision)


def assert_same_moments(estimator, mean, sd):
    """Within 4.5 Monte Carlo standard errors, by the chains' own effective sample size."""
    table = estimator.summary()[: len(mean)]
    ess = (table["sd"] / table["mcse_mean"]) ** 2
    assert np.all(np.abs(table["mean"] - mean) < 4.5 * table["mcse_mean"])
    assert np.all(np.abs(table["sd"] / sd - 1.0) < 4.5 / np.sqrt(2.0 * ess))


# ---- pipelines and searches -------------------------------------------------------------------


@few_draws
@every_fit
def test_a_pipeline_hands_the_scaled_columns_and_the_weights_on(name):
    estimator, y = make(name)
    raw, weight = X * [1e3, 1.0, 1e-3], np.linspace(0.5, 2.0, N)
    scaler = StandardScaler().fit(raw)
    by_hand = clone(estimator).fit(scaler.transform(raw), y, sample_weight=weight)
    step = type(estimator).__name__.lower()
    pipe = make_pipeline(StandardScaler(), estimator)
    pipe.fit(raw, y, **{f"{step}__sample_weight": weight})
    np.testing.assert_array_equal(pipe.predict(raw), by_hand.predict(scaler.transform(raw)))
    np.testing.assert_array_equal(
        predictions(pipe[-1], scaler.transform(raw)), predictions(by_hand, scaler.transform(raw))
    )
    if is_regressor(pipe):
        std = pipe.predict(raw, return_std=True)[1]
        assert np.all(std > np.sqrt(pipe[-1].noise_variance_))


@few_draws
@pytest.mark.parametrize(
    ("name", "scoring"), [("linear", "r2"), ("map_linear", "r2"), ("logistic", "neg_log_loss")]
)
def test_cross_val_score_scores_each_fold_by_the_fit_without_it(name, scoring):
    estimator, y = make(name)
    scores = cross_val_score(estimator, X, y, cv=KFold(3), scoring=scoring)
    for score, (train, test) in zip(scores, KFold(3).split(X), strict=True):
        fold = clone(estimator).fit(X[train], y[train])
        if scoring == "r2":
            expected = 1 - np.mean((y[test] - fold.predict(X[test])) ** 2) / np.var(y[test])
        else:
            p = fold.predict_proba(X[test])
            expected = np.log(p[np.arange(len(test)), np.searchsorted(fold.classes_, y[test])])
        assert score == pytest.approx(np.mean(expected))


@few_draws
@pytest.mark.parametrize("prior", ["laplace", Laplace(scale=3.0)], ids=["name", "instance"])
def test_grid_search_really_uses_step_size_temperature_and_prior_scale(prior):
    grid = {"step_size": [0.2, 0.5], "temperature": [0.5, 2.0], "prior__scale": [0.05, 1.0]}
    short = {"n_draws": 25, "n_chains": 2, "n_burnin": 10, "thin": 1, "random_state": 0}
    search = GridSearchCV(SGLDLinearRegression(prior=prior, **short), grid, cv=2).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    for params, score in zip(search.cv_results_["params"], scores, strict=True):
        scale = params.pop("prior__scale")
        explicit = SGLDLinearRegression(prior=Laplace(scale=scale), **params, **short)
        assert score == cross_val_score(explicit, X, Y, cv=2).mean()
    assert len(set(scores)) == len(scores) == 8
    best, chosen = search.best_estimator_, search.best_params_
    assert best.prior.scale == chosen["prior__scale"] == 1.0  # 0.05 shrinks true effects away
    assert best.step_size_ == best.step_size == chosen["step_size"]
    assert best.temperature == chosen["temperature"]
    if not isinstance(prior, str):
        assert prior.scale == 3.0


@few_draws
def test_grid_search_may_choose_the_prior_and_its_scale_together():
    grid = {"prior": ["normal", "laplace"], "prior__scale": [0.05, 1.0]}
    estimator = SGLDLinearRegression(**PLAIN, random_state=0)
    search = GridSearchCV(estimator, grid, cv=2, error_score="raise").fit(X, Y)
    expected = [
        cross_val_score(clone(estimator).set_params(prior=prior(scale=scale)), X, Y, cv=2).mean()
        for prior in (Normal, Laplace)
        for scale in (0.05, 1.0)
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)


@pytest.mark.parametrize("prior", ["normal", Normal()], ids=["name", "instance"])
def test_coefficients_shrink_with_the_prior_scale_as_ridge_does(prior):
    model = SGLDLinearRegression(prior=prior, noise_variance=1.0, random_state=0)
    norms = []
    for scale in (0.03, 0.1, 0.3, 3.0):
        model.set_params(prior__scale=scale).fit(X, Y)
        mean, covariance = ridge(X, Y, 1.0, scale)
        assert_same_moments(model, mean, np.sqrt(np.diag(covariance)))
        norms.append(np.linalg.norm(model.coef_))
    assert norms == sorted(norms)


def test_temperature_widens_the_draws_by_its_square_root():
    fixed = {**PLAIN, "prior": "normal", "noise_variance": 1.0, "random_state": 0, "n_draws": 500}
    mode = ridge(X, Y, 1.0, 1.0)[0]
    cold, warm = (
        SGLDLinearRegression(**fixed).set_params(temperature=tau).fit(X, Y) for tau in (0.25, 4.0)
    )
    np.testing.assert_allclose(draws(warm) - mode, 4.0 * (draws(cold) - mode), atol=1e-8)


NESTED = {
    "schedule__power": ("linear", {"schedule": "polynomial"}, 0.3, Polynomial(power=0.3)),
    "clip__threshold": ("linear", {"clip": "norm"}, 5.0, NormClip(threshold=5.0)),
    "gradient__order": (
        "logistic",
        {"gradient": "control_variate", "batch_size": 20},
        1,
        ControlVariate(order=1),
    ),
    "sampler__integrator": ("linear", {}, "euler", SGLD(integrator="euler")),
    "noise_prior__shape": ("linear", {}, 40.0, InverseGamma(shape=40.0)),
    "optimizer__decay": ("map_linear", {"optimizer": "momentum"}, 0.5, Momentum(decay=0.5)),
}


@few_draws
@pytest.mark.parametrize("key", NESTED)
def test_set_params_reaches_into_a_component_given_by_name(key):
    name, params, value, instance = NESTED[key]
    head, _, parameter = key.partition("__")
    default, y = make(name, **params)
    nested = clone(default).set_params(**{key: value}).fit(X, y)
    explicit = clone(default).set_params(**{head: instance}).fit(X, y)
    assert getattr(getattr(nested, head), parameter) == value
    assert isinstance(getattr(default, head), str)
    path = (lambda m: m.coef_path_) if name.startswith("map") else draws
    np.testing.assert_array_equal(path(nested), path(explicit))
    assert not np.array_equal(path(nested), path(default.fit(X, y)))


def test_set_params_takes_a_component_and_its_parameter_at_once():
    model = SGLDLinearRegression().set_params(prior="laplace", prior__scale=0.5)
    assert isinstance(model.prior, Laplace) and model.prior.scale == 0.5


# ---- clones, copies, names --------------------------------------------------------------------

COMPONENTS = {
    "prior": ConjugateNormal(scale=2.0),
    "noise_prior": InverseGamma(shape=2.0),  # whose scale="auto" is resolved in fit
    "sampler": SGLD(integrator="euler"),
    "schedule": Polynomial(power=0.3),
    "gradient": Minibatch(replacement=False),
    "preconditioner": Curvature(),
    "clip": NormClip(threshold=50.0),
}


@few_draws
def test_clone_copies_components_and_fit_never_changes_the_users():
    model = SGLDLinearRegression(**PLAIN, **COMPONENTS, batch_size=30, random_state=0)
    before = {name: dict(vars(component)) for name, component in COMPONENTS.items()}
    copy = clone(model)
    assert repr(copy) == repr(model)
    for name, component in COMPONENTS.items():
        assert getattr(model, name) is component
        assert getattr(copy, name) is not component
    np.testing.assert_array_equal(draws(copy.fit(X, Y)), draws(model.fit(X, Y)))
    copy.set_params(prior__scale=7.0, clip__threshold=1.0)
    for name, component in COMPONENTS.items():
        assert getattr(model, name) is component
        assert vars(component) == before[name]


@few_draws
@every_fit
def test_a_pickled_model_predicts_and_remembers_the_same(name):
    model, y = make(name)
    copy = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(predictions(copy, X), predictions(model, X))
    np.testing.assert_array_equal(draws(copy), draws(model))
    pd.testing.assert_frame_equal(copy.summary(), model.summary())
    drawn = [m.sample_y(X, 3, random_state=1) for m in (copy, model)]
    np.testing.assert_array_equal(*drawn)


@few_draws
@every_fit
def test_names_of_a_frame_are_kept_and_wrong_ones_refused(name):
    model, y = make(name)
    frame = pd.DataFrame(X, columns=["age", "height", "mass"], index=np.arange(N)[::-1])
    model.fit(frame, pd.Series(y))
    plain = clone(model).fit(X, y)
    np.testing.assert_allclose(draws(model), draws(plain), atol=1e-9)
    assert model.feature_names_in_.tolist() == ["age", "height", "mass"]
    assert not hasattr(plain, "feature_names_in_")
    prefix = "0, " if name == "softmax" else ""
    names = [f"coef[{prefix}{c}]" for c in ("age", "height", "mass")]
    assert model.summary().index[:D].tolist() == names
    coef = model.sample_posterior().coef
    flat = coef[:, 0] if name == "softmax" else coef
    for j, column in enumerate(names):
        np.testing.assert_array_equal(model.posterior_[column].ravel(), flat[:, j])
        assert model.summary().loc[column, "mean"] == pytest.approx(flat[:, j].mean())
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*weight"):
        model.predict(frame.rename(columns={"mass": "weight"}))
    with pytest.raises(ValueError, match=r"(?s)feature names.*order"):
        model.predict(frame[["height", "age", "mass"]])


# ---- weights ----------------------------------------------------------------------------------

FULL = {"linear": {}, "logistic": {}, "softmax": {}, "map_linear": {"optimizer": "gd"}}
COUNTS = np.random.default_rng(1).integers(0, 4, N)


@few_draws
@pytest.mark.parametrize("name", FULL)
def test_integer_weights_equal_repeated_rows(name):
    weighted, y = make(name, **FULL[name])
    repeated = clone(weighted).fit(np.repeat(X, COUNTS, axis=0), np.repeat(y, COUNTS))
    weighted.fit(X, y, sample_weight=COUNTS)
    np.testing.assert_allclose(draws(weighted), draws(repeated), atol=1e-7)
    np.testing.assert_allclose(predictions(weighted, X), predictions(repeated, X), atol=1e-7)
    assert not np.allclose(predictions(clone(weighted).fit(X, y), X), predictions(weighted, X))


@few_draws
def test_automatic_burn_in_and_thinning_do_not_hang_on_the_last_bit():
    # the same posterior, summed in another order
    for seed in range(8):
        r = np.random.default_rng(seed)
        data, target, counts = r.standard_normal((N, D)), r.standard_normal(N), r.integers(0, 4, N)
        model = SGLDLinearRegression(n_draws=50, random_state=0)
        weighted = clone(model).fit(data, target, sample_weight=counts)
        repeated = model.fit(np.repeat(data, counts, axis=0), np.repeat(target, counts))
        settings = [(m.n_burnin_, m.thin_) for m in (weighted, repeated)]
        assert settings[0] == settings[1], f"seed {seed}"


@few_draws
@every_fit
def test_zero_weights_equal_removed_rows(name):
    model, y = make(name)
    keep = COUNTS > 0
    removed = clone(model).fit(X[keep], y[keep])
    zeroed = model.fit(X, y, sample_weight=keep.astype(float))
    np.testing.assert_array_equal(draws(zeroed), draws(removed))


def test_fractional_weights_temper_the_likelihood():
    weight = np.random.default_rng(2).uniform(0.1, 2.0, N)
    settings = {"prior": Normal(scale=2.0), "random_state": 0}
    model = SGLDLinearRegression(noise_variance=0.7, **settings, **PLAIN)
    for factor in (2.0, 0.4):  # weight 2 is half the noise variance
        tempered = clone(model).fit(X, Y, sample_weight=np.full(N, factor))
        other = clone(model).set_params(noise_variance=0.7 / factor).fit(X, Y)
        np.testing.assert_allclose(draws(tempered), draws(other), atol=1e-8)
    # and row by row: the likelihood to the power w is that of a row times sqrt(w)
    root = np.sqrt(weight)
    model.set_params(fit_intercept=False)
    scaled = clone(model).fit(X * root[:, None], Y * root)
    np.testing.assert_allclose(
        draws(model.fit(X, Y, sample_weight=weight)), draws(scaled), atol=1e-8
    )


@few_draws
@pytest.mark.parametrize("name", ["logistic", "softmax", "map_logistic"])
@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, N)], ids=["alone", "weighted"])
def test_balanced_classes_equal_the_weights_they_stand_for(name, weight):
    model, y = make(name)
    data, y = X[15:], y[15:]  # no longer the same number of each class
    weight = None if weight is None else weight[15:]
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weights=weight)
    assert np.ptp(counts) > 0
    by_class = (counts.sum() / (len(classes) * counts))[codes]
    given = by_class if weight is None else by_class * weight
    explicit = clone(model).fit(data, y, sample_weight=given)
    balanced = clone(model).set_params(class_weight="balanced").fit(data, y, sample_weight=weight)
    np.testing.assert_array_equal(draws(balanced), draws(explicit))
    as_dict = dict(zip(classes, counts.sum() / (len(classes) * counts), strict=True))
    by_dict = model.set_params(class_weight=as_dict).fit(data, y, sample_weight=weight)
    np.testing.assert_array_equal(draws(by_dict), draws(explicit))


# ---- where the data lie, and what the draws depend on -----------------------------------------


@few_draws
@every_fit
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_read_only_memory_map_fits_as_the_array_does(name, dtype, tmp_path):
    model, y = make(name)
    y = y.astype(dtype) if is_regressor(model) else y
    joblib.dump(X.astype(dtype), tmp_path / "X")
    joblib.dump(y, tmp_path / "y")
    data, target = (joblib.load(tmp_path / f, mmap_mode="r") for f in ("X", "y"))
    assert isinstance(data, np.memmap) and not data.flags.writeable
    in_memory = clone(model).fit(X.astype(dtype), y)
    np.testing.assert_array_equal(draws(model.fit(data, target)), draws(in_memory))
    np.testing.assert_array_equal(predictions(model, data), predictions(in_memory, X.astype(dtype)))


@few_draws
@every_fit
def test_the_draws_depend_on_random_state_alone(name):
    model, y = make(name)
    first, again, other = (
        draws(clone(model).set_params(random_state=s).fit(X, y)) for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)
    model.set_params(random_state=np.random.RandomState(3))
    one, two = draws(model.fit(X, y)), draws(model.fit(X, y))
    np.testing.assert_array_equal(one, first)
    assert not np.any(one == two)


WIDE = np.random.default_rng(5).standard_normal((90, 70))
WIDE_Y = WIDE[:, :5].sum(axis=1) + np.random.default_rng(6).standard_normal(90)
SHORT = {"n_draws": 20, "random_state": 0}
FAST = {**SHORT, "step_size": 0.1, "n_burnin": 5, "thin": 2, "batch_size": 13}
CHAINS = {
    "linear-auto": (SGLDLinearRegression(**SHORT), WIDE_Y),
    "logistic-auto": (SGLDLogisticRegression(**SHORT), WIDE_Y > 0),
    "logistic-minibatch": (SGLDLogisticRegression(**FAST, gradient="minibatch"), WIDE_Y > 0),
    "linear-control-variate": (SGLDLinearRegression(**FAST), WIDE_Y),
    "softmax-control-variate": (SGLDLogisticRegression(**FAST), np.digitize(WIDE_Y, [-1, 1])),
}
every_kind_of_chain = pytest.mark.parametrize("kind", CHAINS)


@few_draws
@every_kind_of_chain
def test_a_chain_is_the_same_to_the_bit_beside_any_number_of_others(kind):
    model, y = CHAINS[kind]
    one, two, five = (draws(clone(model).set_params(n_chains=c).fit(WIDE, y)) for c in (1, 2, 5))
    np.testing.assert_array_equal(one, five[:1])
    np.testing.assert_array_equal(two, five[:2])
    assert not np.any(five[0] == five[1])


@few_draws
@every_kind_of_chain
def test_two_processes_draw_the_same_to_the_bit(kind):
    model, y = CHAINS[kind]
    alone, shared = (clone(model).set_params(n_jobs=n, n_chains=3) for n in (None, 2))
    np.testing.assert_array_equal(draws(shared.fit(WIDE, y)), draws(alone.fit(WIDE, y)))
    assert shared.clipped_fraction_ == alone.clipped_fraction_


# ---- draws for the user -----------------------------------------------------------------------


@few_draws
@every_fit
def test_sample_posterior_returns_rows_of_the_draws(name):
    model, y = make(name)
    table = model.fit(X, y).posterior_.flat
    shape = (3, D) if name == "softmax" else (D,)
    everything = model.sample_posterior()
    assert everything.coef.shape == (len(table), *shape)
    for drawn in (everything, model.sample_posterior(50, random_state=0)):
        linear = np.concatenate([drawn.coef, drawn.intercept[..., None]], axis=-1)
        rows = linear.reshape(len(linear), -1)
        if is_regressor(model):
            rows = np.column_stack([rows, drawn.noise_variance])
        assert set(map(tuple, rows)) <= set(map(tuple, table))
        if drawn is everything:
            np.testing.assert_array_equal(rows, table)
        else:
            assert len(rows) == len(set(map(tuple, rows))) == 50
    again = model.sample_posterior(50, random_state=0).coef
    np.testing.assert_array_equal(again, drawn.coef)
    assert not np.array_equal(again, model.sample_posterior(50, random_state=1).coef)


# ---- warm start -------------------------------------------------------------------------------

CREEP = {"n_draws": 20, "n_chains": 3, "n_burnin": 0, "thin": 1, "step_size": 1e-8}


@few_draws
@sampled_fit
def test_a_warm_start_goes_on_where_the_last_fit_stopped(name):
    model, y = make(name, **{**CREEP, "step_size": 0.3, "warm_start": True})
    last = draws(model.fit(X, y))[:, -1]
    near = draws(model.set_params(step_size=CREEP["step_size"]).fit(X, y))[:, 0]
    far = draws(clone(model).fit(X, y))[:, 0]
    sd = model.set_params(**PLAIN).fit(X, y).posterior_.flat.std(axis=0)
    step = 10.0 * np.sqrt(2.0 * CREEP["step_size"]) * sd
    assert np.all(np.abs(near - last) < step)
    assert np.all(np.abs(far - last).max(axis=0) > step)


@few_draws
@sampled_fit
def test_a_warm_start_draws_new_random_numbers(name):
    # the same noise again would pull the chains onto the path of the first fit
    model, y = make(name, n_burnin=0, warm_start=True)
    first, second = draws(model.fit(X, y)), draws(model.fit(X, y))
    for a, b in zip(first.T, second.T, strict=True):
        assert abs(np.corrcoef(a[100:].ravel(), b[100:].ravel())[0, 1]) < 0.5


@few_draws
def test_a_warm_start_that_cannot_go_on_burns_in():
    model, y = make("linear", n_burnin="auto", warm_start=True)
    model.fit(X, y).set_params(n_chains=4).fit(X, y)
    assert model.n_burnin_ == clone(model).fit(X, y).n_burnin_ > 0


# ---- what scikit-learn is told ----------------------------------------------------------------


@every_fit
def test_tags_say_what_the_estimator_is(name):
    estimator, y = make(name)
    tags = get_tags(estimator)
    regressor = "linear" in name
    assert tags.estimator_type == ("regressor" if regressor else "classifier")
    assert is_regressor(estimator) == regressor != is_classifier(estimator)
    assert tags.target_tags.required and not tags.input_tags.sparse
    if not regressor:
        assert tags.classifier_tags.multi_class


@every_fit
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_input_is_refused_with_the_remedy(name, kind):
    estimator, y = make(name)
    with pytest.raises(TypeError, match="Sparse data was passed for X.*toarray"):
        estimator.fit(kind(X), y)
