"""The estimators as scikit-learn sees them: its own checks, and the tools that users combine."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import skbayes_sgld
from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Laplace, Normal
from skbayes_sgld.rows.scores import D2_BINOMIAL
from skbayes_sgld.rows.targets import Totals
from skbayes_sgld.sampling import SGLD, Curvature, Harmonic, Minibatch, NormClip, Polynomial
from tests.annexes import later, made

# 100 draws and fewer are too few for the summaries to be relied on, and the estimators say so
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
    # scikit-learn's checks of regressors have no counts
    pytest.mark.filterwarnings("ignore:y has the value .*, and the model is of whole counts"),
]


class Of20Trials(Totals):
    """Whole numbers of 20 trials, which are not given."""

    def with_arguments(self, arguments):
        return self  # the checks give methods no trials

    def encode(self, rows):
        others = {**rows.values.others, "trials": np.full(len(rows.y), 20.0)}
        return super().encode(rows.having(y=np.clip(np.rint(rows.y), 0, 20), others=others))


class OfAnyTarget(SGLDBetaBinomialRegressor):
    """Whole numbers of 20 trials for any y: scikit-learn's checks of regressors have no totals."""

    _score = replace(D2_BINOMIAL, per_unit=lambda y, n: np.clip(np.rint(y), 0, 20) / 20)

    def _target(self, rows):
        return Of20Trials(likelihood=self._likelihood())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # whose numbers have nearly no spread
        return tags


UNITS = {"hidden_layer_sizes": (5,)}  # whatever the size, the interface is the same
FEW = {"n_draws": 20, "n_burnin": 30, "thin": 1, "n_chains": 2, **UNITS}
# a step so short that its bias is known without a pilot, which takes longer than the run
GIVEN_STEP = {"n_draws": 40, "n_burnin": 40, "thin": 2, "step_size": 0.1}
# this one has all checks, in every run
OF_THE_BASE = [SGLDLinearRegression(**GIVEN_STEP)]
OTHERS = [
    SGLDLogisticRegression(**GIVEN_STEP),
    SGLDPoissonRegressor(**GIVEN_STEP),
    SGLDOrdinalClassifier(**GIVEN_STEP),
    OfAnyTarget(**GIVEN_STEP),
]
# these have a target of those above; test_families.py has their likelihoods, with weights
OF_SUCH_TARGETS = [
    SGLDLinearRegression(noise_distribution="student_t", **GIVEN_STEP),
    SGLDGammaRegressor(**GIVEN_STEP),
    SGLDNegativeBinomialRegressor(**GIVEN_STEP),
]
OF_PARAMETERS = {
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
# checks of what the others do not share with these: parameters, tags, target, likelihood, and what
# fit sets (test_persistence.py pickles every kind, and test_concurrency.py looks for state that
# predictions change)
OWN = OF_PARAMETERS | {
    "check_classifiers_classes",
    "check_classifiers_regression_target",
    "check_decision_proba_consistency",
    "check_dont_overwrite_parameters",
    "check_positive_only_tag_during_fit",
    "check_regressors_int",
    "check_sample_weight_equivalence_on_dense_data",
    "check_supervised_y_2d",
}


@pytest.fixture(autouse=True)
def the_same_seeds(monkeypatch):
    """Some checks leave random_state at None: seeds then come from NumPy's global generator."""
    monkeypatch.setattr(np.random.mtrand, "_rand", np.random.RandomState(0))


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """Training and burn-in of networks cut to a part."""
    if find_spec("skbayes_sgld.neural_network"):
        monkeypatch.setattr("skbayes_sgld.neural_network.estimators._TRAINING_STEPS", 100)
        monkeypatch.setattr("skbayes_sgld.neural_network.ensemble._ROUNDS", 3)


def with_slow_ones(estimators, is_slow):
    """Scikit-learn's checks of the estimators, some of which are marked as slow."""
    checks = parametrize_with_checks(estimators)
    arguments, cases = checks.args
    marked = [
        pytest.param(*case, marks=pytest.mark.slow) if is_slow(case[1].func.__name__) else case
        for case in cases
    ]
    return pytest.mark.parametrize(arguments, marked, **checks.kwargs)


# sparse arrays have all formats too
@with_slow_ones(OF_THE_BASE, lambda name: name == "check_estimator_sparse_matrix")
def test_the_linear_model_passes_scikit_learns_checks(estimator, check):
    check(estimator)


# pilots of few rows a column take four times as long
@with_slow_ones([SGLDLinearRegression(n_draws=40)], lambda name: name != "check_fit_idempotent")
def test_automatic_settings_pass_scikit_learns_checks(estimator, check):
    check(estimator)


# a check that is slow runs code of the bases alone, which the test above enters
@with_slow_ones(OTHERS, lambda name: name not in OWN)
def test_the_other_estimators_pass_scikit_learns_checks(estimator, check):
    check(estimator)


@with_slow_ones(OF_SUCH_TARGETS, lambda name: name not in OF_PARAMETERS)
def test_estimators_of_such_targets_pass_scikit_learns_checks(estimator, check):
    heavy_tails = getattr(estimator, "noise_distribution", None) == "student_t"
    if heavy_tails and check.func.__name__ == "check_sample_weight_equivalence_on_sparse_data":
        # they differ by as much where y changes by 1e-15
        pytest.skip("sums in single precision: predictions near 0 differ by 1e-8, and may by 1e-9")
    check(estimator)


# ---- data and settings that the tests share ---------------------------------------------------

N, D = 60, 3
X = np.random.default_rng(0).standard_normal((N, D)) + [0.0, 2.0, -1.0]
Y = X @ [1.0, -2.0, 0.5] + 1.0 + np.random.default_rng(1).standard_normal(N)
LABELS = np.where(np.median(Y) > Y, "no", "yes")
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
WEIGHT = np.random.default_rng(3).uniform(0.1, 2.0, N)

# everything given: no pilot, and nothing that could differ between two fits
PLAIN = {"n_draws": 100, "n_chains": 2, "n_burnin": 20, "thin": 2, "step_size": 0.5}
FITS = {
    "linear": (SGLDLinearRegression(**PLAIN, random_state=0), Y),
    "logistic": (SGLDLogisticRegression(**PLAIN, random_state=0), LABELS),
    "softmax": (SGLDLogisticRegression(**PLAIN, random_state=0), THREE),
    "map_linear": (later("SGDMAPRegressor", max_iter=300, random_state=0), Y),
    "map_logistic": (later("SGDMAPClassifier", max_iter=300, random_state=0), LABELS),
    "network_linear": (later("SGLDMLPRegressor", **FEW, random_state=0), Y),
    "network_labels": (later("SGLDMLPClassifier", **FEW, random_state=0), LABELS),
    "backprop_linear": (
        later("BayesByBackpropRegressor", max_iter=100, **UNITS, random_state=0),
        Y,
    ),
    "backprop_labels": (
        later("BayesByBackpropClassifier", max_iter=100, **UNITS, random_state=0),
        LABELS,
    ),
}
assert_equal = np.testing.assert_array_equal


def make(name, **params):
    estimator, y = FITS[name]
    return clone(made(estimator)).set_params(**params), y


def draws(estimator):
    return estimator.posterior_.values


def predictions(estimator, rows):
    if is_classifier(estimator):
        return estimator.predict_proba(rows)
    return np.column_stack([*estimator.predict(rows, return_std=True)])


# ---- searches and nested parameters -----------------------------------------------------------


def test_grid_search_really_uses_what_it_searches():
    estimator, y = make("linear", prior=Normal(1.0))
    grid = {"temperature": [1.0, 0.1], "prior__scale": [1.0, 0.1]}
    found = GridSearchCV(estimator, grid, cv=2).fit(X, y).cv_results_
    for params, score in zip(found["params"], found["mean_test_score"], strict=True):
        explicit = clone(estimator).set_params(**params)
        assert score == cross_val_score(explicit, X, y, cv=2).mean()
    assert len(set(found["mean_test_score"])) == 4
    assert estimator.prior.scale == 1.0


def test_set_params_reaches_into_components_given_by_name():
    from skbayes_sgld import SGDMAPRegressor as mode
    from skbayes_sgld.optimizers import Box, SVRGDescent

    for model, key, component in (
        (SGLDLinearRegression(schedule="polynomial"), "schedule__power", Polynomial(power=0.3)),
        (SGLDLinearRegression(clip="norm"), "clip__threshold", NormClip(threshold=0.1)),
        (SGLDLinearRegression(gradient="minibatch"), "gradient__replacement", Minibatch(False)),
        (SGLDLinearRegression(sampler="sgld"), "sampler__integrator", SGLD(integrator="euler")),
        (SGLDLinearRegression(), "noise_prior__shape", InverseGamma(shape=40.0)),
        (SGLDLinearRegression(intercept_prior="normal"), "intercept_prior__scale", Normal(7.0)),
        (
            skbayes_sgld.SGDMAPRegressor(optimizer="svrg"),
            "optimizer__period",
            SVRGDescent(period=3),
        ),
        (mode(projection="box"), "projection__low", Box(low=0.5)),
    ):
        head, _, parameter = key.partition("__")
        model.set_params(**{key: getattr(component, parameter)})
        assert repr(getattr(model, head)) == repr(component)
        assert model.get_params()[key] == getattr(component, parameter)
    model.set_params(prior="laplace", prior__scale=0.5)
    assert repr(model.prior) == repr(Laplace(0.5))


# ---- clones, copies, names --------------------------------------------------------------------

COMPONENTS = {
    "prior": ConjugateNormal(scale=2.0),
    "noise_prior": InverseGamma(shape=2.0),  # whose scale="auto" is resolved in fit
    "sampler": SGLD(integrator="euler"),
    "schedule": Harmonic(t0=2.0),
    "gradient": Minibatch(replacement=False),
    "preconditioner": Curvature(),
    "clip": NormClip(threshold=50.0),
}


def test_clone_copies_components_and_fit_never_changes_the_users():
    model = SGLDLinearRegression(**PLAIN, **COMPONENTS, batch_size=30, random_state=0)
    before = {name: dict(vars(component)) for name, component in COMPONENTS.items()}
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert_equal(draws(copy.fit(X, Y)), draws(model.fit(X, Y)))
    copy.set_params(prior__scale=7.0, clip__threshold=1.0)
    for name, component in COMPONENTS.items():
        assert getattr(model, name) is component and getattr(copy, name) is not component
        assert vars(component) == before[name]


FRAME = pd.DataFrame(X, columns=["age", "height", "mass"], index=np.arange(N)[::-1])


@pytest.mark.parametrize(
    ("name", "parameter", "of"),
    [
        ("linear", "coef[height]", lambda drawn: drawn.coef[:, 1]),
        ("softmax", "coef[2, height]", lambda drawn: drawn.coef[:, 2, 1]),
        ("network_labels", "weight[0, height, 3]", lambda drawn: drawn.coefs[0][:, 1, 3]),
        ("backprop_linear", "weight[0, height, 3]", lambda drawn: drawn.coefs[0][:, 1, 3]),
    ],
)
def test_names_of_a_frame_name_the_parameters_and_wrong_ones_are_refused(name, parameter, of):
    model, y = make(name)
    plain = clone(model).fit(X, y)
    np.testing.assert_allclose(draws(model.fit(FRAME, pd.Series(y))), draws(plain), atol=1e-9)
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    assert not hasattr(plain, "feature_names_in_")
    drawn = of(model.sample_posterior())
    assert_equal(model.posterior_[parameter].ravel(), drawn)
    assert model.summary().loc[parameter, "mean"] == pytest.approx(drawn.mean())
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*weight"):
        model.predict(FRAME.rename(columns={"mass": "weight"}))
    with pytest.raises(ValueError, match=r"(?s)feature names.*order"):
        model.predict(FRAME[["height", "age", "mass"]])


# ---- weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step_size", ["auto", 0.5])
def test_automatic_burn_in_and_thinning_do_not_hang_on_the_last_bit(step_size):
    settings = []
    for seed in range(4):  # every time the same posterior, summed in another order
        order = np.random.default_rng(seed).permutation(N)
        model, y = make("logistic", step_size=step_size, n_burnin="auto", thin="auto", n_draws=20)
        model.fit(X[order], y[order])
        settings.append((model.n_burnin_, model.thin_))
    assert len(set(settings)) == 1


def test_fractional_weights_temper_the_likelihood():
    model, y = make("linear", prior=Normal(scale=2.0), noise_variance=0.7)
    for factor in (2.0, 0.4):  # weight 2 is half the noise variance
        tempered = draws(clone(model).fit(X, y, sample_weight=np.full(N, factor)))
        other = draws(clone(model).set_params(noise_variance=0.7 / factor).fit(X, y))
        np.testing.assert_allclose(tempered, other, atol=1e-8)
    # row by row: a likelihood to the power w is that of the row times sqrt(w)
    root = np.sqrt(WEIGHT)
    model.set_params(fit_intercept=False)
    scaled = draws(clone(model).fit(X * root[:, None], y * root))
    np.testing.assert_allclose(draws(model.fit(X, y, sample_weight=WEIGHT)), scaled, atol=1e-8)


def test_balanced_classes_equal_the_weights_they_stand_for():
    # scikit-learn's checks have no weights beside those of the classes
    model, y = make("softmax")
    data, y, weight = X[15:], y[15:], WEIGHT[15:]
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weights=weight)
    by_class = counts.sum() / (len(classes) * counts)
    explicit = draws(clone(model).fit(data, y, sample_weight=by_class[codes] * weight))
    for class_weight in ("balanced", dict(zip(classes, by_class, strict=True))):
        model.set_params(class_weight=class_weight).fit(data, y, sample_weight=weight)
        assert_equal(draws(model), explicit)


# ---- draws for the user, and going on from them -----------------------------------------------


@pytest.mark.parametrize("name", ["linear", "softmax", "map_logistic"])
def test_sample_posterior_returns_rows_of_the_draws(name):
    model, y = make(name)
    table = model.fit(X, y).posterior_.flat
    everything, some = model.sample_posterior(), model.sample_posterior(50, random_state=0)
    assert everything.coef.shape == (len(table), *((3, D) if name == "softmax" else (D,)))
    rows = []
    for drawn in (everything, some):
        linear = np.concatenate([drawn.coef, drawn.intercept[..., None]], axis=-1)
        noise = [drawn.noise_variance] if name == "linear" else []
        rows.append(np.column_stack([linear.reshape(len(linear), -1), *noise]))
    assert_equal(rows[0], table)
    assert len(rows[1]) == len({*map(tuple, rows[1])} & {*map(tuple, table)}) == 50
    assert_equal(model.sample_posterior(50, random_state=0).coef, some.coef)
    other = model.sample_posterior(50, random_state=1).coef
    assert not np.array_equal(other, some.coef)
    assert_equal(model.set_params(random_state=1).sample_posterior(50).coef, some.coef)


@pytest.mark.parametrize(("name", "sampler"), [("linear", "mala"), ("softmax", "sgld")])
def test_a_warm_start_goes_on_where_the_last_fit_stopped(name, sampler):
    model, y = make(name, sampler=sampler, n_burnin=0, thin=1, warm_start=True)
    last = model.fit(X, y).result_.positions  # SGLD's draws are corrected positions
    model.set_params(preconditioner=None, step_size=1e-10, n_draws=1)
    near, far = draws(model.fit(X, y))[:, 0], draws(clone(model).fit(X, y))[:, 0]
    assert np.all(np.abs(near - last) < 10.0 * np.sqrt(2e-10))
    assert np.all(np.abs(far - last) > 10.0 * np.sqrt(2e-10))


def test_a_warm_start_draws_new_random_numbers():
    # the same noise again would pull the chains onto the path of the first fit
    model, y = make("logistic", n_burnin=0, warm_start=True)
    first, second = draws(model.fit(X, y)), draws(model.fit(X, y))
    for a, b in zip(first.T, second.T, strict=True):
        assert abs(np.corrcoef(a[50:].ravel(), b[50:].ravel())[0, 1]) < 0.5


def test_a_warm_start_that_cannot_go_on_burns_in():
    model, y = make("linear", n_burnin="auto", warm_start=True)
    model.fit(X, y).set_params(n_chains=4).fit(X, y)
    assert model.n_burnin_ == clone(model).fit(X, y).n_burnin_ > 0
