"""Unusable input is refused by name, with what is accepted, and changes no estimator.

Three kinds of calls go through one net. Generated ones change one argument of anything public, and
``oracle.judge`` says whether the answer is right; ``python -m tests.maintainer.soak.inputs`` judges
many more of them. Settings and data of fits, and calls that once were answered by silence, a
warning of NumPy's or an error without a name, are listed with the message that they must end in.
"""

import re
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import skbayes_sgld
from skbayes_sgld import (
    BayesByBackpropClassifier,
    BayesByBackpropRegressor,
    RowBlocks,
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
    check_model,
    compare_models,
    diagnostics,
    effects,
    metrics,
    optimizers,
)
from skbayes_sgld import sampling as how
from skbayes_sgld.datasets import (
    load_cars,
    load_nba_rookies,
    make_cubic,
    make_stochastic_volatility,
)
from skbayes_sgld.kernels import Kernel
from skbayes_sgld.optimizers import Box, find_mode
from skbayes_sgld.own_models import check_gradient
from skbayes_sgld.plotting import (
    CoverageDisplay,
    PredictiveIntervalDisplay,
    ProbabilityContourDisplay,
    TraceDisplay,
)
from skbayes_sgld.priors import (
    NOISE_PRIORS,
    PRIORS,
    HalfNormal,
    InverseGamma,
    Laplace,
    LogNormal,
    Normal,
)
from skbayes_sgld.sampling import SGHMC, SGNHT, FlatDecayFlat, Minibatch
from skbayes_sgld.variational import BayesByBackprop
from tests.inputs.cases import judge_cases
from tests.inputs.good import make
from tests.inputs.refusals import (
    CLASSIFIERS,
    FRAME,
    REGRESSORS,
    RNG,
    N,
    X,
    Y,
    cases,
    refuse,
    target,
)
from tests.inputs.surface import ESTIMATORS, NORMAL, SLOW
from tests.marks import slow

pytestmark = [
    # 20 draws of two chains are too few, and fit says so
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]

# one class of each kind, of those whose checks are the same
EVERY = (SGLDLinearRegression, SGDMAPClassifier)
SAMPLED, CLIMBED = (SGLDLogisticRegression,), (SGDMAPRegressor,)
NETWORKS, ORDINAL = (SGLDMLPRegressor, BayesByBackpropRegressor), (SGLDOrdinalClassifier,)

GAP, DAY = np.where(np.arange(30) == 7, np.nan, Y), pd.Timestamp("2020-02-29")
SEEDS = r"random_state=.*in \[0, 2\*\*32 - 1\]"
every_class = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
every_linear = pytest.mark.parametrize(
    "cls", [cls for cls in ESTIMATORS if cls not in SLOW], ids=lambda cls: cls.__name__
)


# ---- generated calls -----------------------------------------------------------------------------


# 379: five counts of size 1e18 take trajectories of fifty steps, 3 s; of the others, each is right
# after a part of a second
COSTLY = [3, 99, 259, 261, 278, 295, 379]
BLOCKS = [[k for k in range(first, first + 50) if k not in COSTLY] for first in range(0, 400, 50)]


@pytest.mark.parametrize("cases", [*BLOCKS, slow(COSTLY)], ids=lambda cases: str(cases[0]))
def test_inputs_are_answered_by_a_right_result_or_by_name(cases):
    """Each public call once, and unusual data; tests/maintainer/soak judges more of them."""
    found = judge_cases(cases)
    assert {row[2]: row[3] for row in found if row[1] == "failure"} == {}


# ---- every estimator -----------------------------------------------------------------------------


@every_class
def test_every_estimator_refuses_a_setting_by_its_name(cls):
    known = cls().get_params()
    for seed in (-1, 2**32, 1.5, "a", [], [-1]):
        refuse(make(cls, random_state=seed), SEEDS)
    for value in (1e-300, 1e30):
        if "temperature" in known:
            match = rf"temperature={re.escape(repr(value))}.* in \[1e-15, 1e\+15\]"
            refuse(make(cls, temperature=value), match)
    for value in (1.5, [], "all", 0):
        if "n_jobs" in known:
            refuse(make(cls, n_jobs=value), f"n_jobs={re.escape(repr(value))}")
    if "n_draws" in known:
        match = "n_draws=2000000000000 of .* chains takes .* GB of memory, and .* are available"
        # chains that may be shortened make as many as there is room for
        given = {"schedule": "polynomial", "init": "zeros"} if "init" in known else {}
        refuse(make(cls, n_draws=2 * 10**12, **given), match, error=MemoryError)


@every_linear
def test_a_linear_model_refuses_rows_of_no_use_by_their_column(cls):
    refuse(make(cls), r"column 1 of X has values of size .*in \[1e-50, 1e\+50\]", X * [1, 1e150, 1])
    model = make(cls).fit(X, target(cls))
    with pytest.raises(ValueError, match="column 0 of X has values of size 1e"):
        model.predict(np.full((1, 3), 1e300))
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3"):
        model.log_predictive_density(X[:, :2], target(cls))
    assert model.n_features_in_ == 3


# ---- data and settings of a fit ------------------------------------------------------------------


def put(array, value):
    changed = np.array(array)
    changed.flat[4] = value
    return changed


def listed(names):
    return ".*".join(re.escape(repr(name)) for name in sorted(names))


def case(label, match, classes=EVERY, **params):
    return cases(label, match, classes, **params)


STRINGS = np.where(Y > 0, "high", "low")
DATA = [
    *case("nan in X", r"X contains NaN", X=put(X, np.nan)),
    *case("inf in X", r"X contains infinity.*float64", X=put(X, np.inf)),
    *case("nan in y", r"y contains NaN", y=lambda y: put(y, np.nan)),
    *case("inf in y", r"y contains infinity.*float64", y=lambda y: put(y, -np.inf)),
    *case("no rows", r"0 sample\(s\).*minimum of \d is required", X=X[:0], y=lambda y: y[:0]),
    *case("nan in sparse X", r"X contains NaN", X=sparse.csr_array(put(X, np.nan))),
    *case("one class", r"y has one class, .*7.*two classes", CLASSIFIERS, y=np.full(N, 7)),
    *case("strings", r"\by\b.*'(low|high)'.*number", REGRESSORS, y=STRINGS),
    *case("constant y", r"y is constant \(3\).*noise_variance", REGRESSORS, y=np.full(N, 3.0)),
    *case("negative weight", r"sample_weight.*-0\.5.*>= 0", weight=put(np.ones(N), -0.5)),
    *case("zero", "value 0; observations must be above 0", (SGLDGammaRegressor,), y=np.zeros(N)),
    *case("no weight", r"(?i)sample.weight.*(non-zero|positive)", weight=np.zeros(N)),
]
ON_NOISE = listed(name for name, prior in PRIORS.items() if not prior.scaled_by_noise)
NEWTON = {"optimizer": "newton"}
NONE = {"hidden_layer_sizes": ()}
TOO_LARGE, LEFT = r"batch_size=31.*30 rows.*at most 30", {"batch_size": 31}
LEVELS = Normal(scale=np.ones(3))
SETTINGS = [
    *case("short", r"prior\.scale.*\(2,\).*vector of 3", prior=Normal(scale=[1.0, 2.0])),
    *case("negative scale", r"prior\.scale=-1\.0.*positive", prior=Laplace(scale=-1.0)),
    *case(
        "zero in scale",
        r"^prior\.scale has values out of range: 0; .*positive",
        prior=Normal(scale=[1, 0, 1]),
    ),
    *case("wide", r"prior\.scale='wide' is not known; give 'auto'", prior=Normal(scale="wide")),
    *case("level", r"intercept_prior\.scale=-1\.0", REGRESSORS, intercept_prior=Normal(-1.0)),
    *case("levels", r"prior\.scale has shape \(3,", REGRESSORS, intercept_prior=LEVELS),
    *case("level noise", "=.* scaled by the noise", SAMPLED, intercept_prior="conjugate_normal"),
    *case("gap", r"gap_prior\.width=-1\.0 is out of", ORDINAL, gap_prior=LogNormal(width=-1.0)),
    *case("location", r"prior\.location=inf.*finite", prior=Normal(location=np.inf)),
    *case("shape", r"noise_prior\.shape=0.*\(0", REGRESSORS, noise_prior=InverseGamma(shape=0)),
    *case("power", r"schedule\.power=-1.*\[0", schedule=how.Polynomial(power=-1)),
    *case("threshold", r"clip\.threshold=0.*\(0", clip=how.NormClip(threshold=0)),
    *case("integrator", r"'verlet'.*'euler'", SAMPLED, sampler=how.SGLD(integrator="verlet")),
    *case("order", r"gradient\.order=3.*1 or 2", SAMPLED, gradient=how.ControlVariate(order=3)),
    *case("period", r"period=0.*\[1", CLIMBED, optimizer=optimizers.SVRGDescent(period=0)),
    *case("decay", r"decay=1\.0.*\[0, 1\)", CLIMBED, optimizer=optimizers.Momentum(decay=1.0)),
    *case("batch", TOO_LARGE, SAMPLED, gradient=how.Minibatch(replacement=False), **LEFT),
    *case("climbing batch", TOO_LARGE, CLIMBED, replacement=False, **LEFT),
    *case("full", r"batch_size=31.*Full\(\).*'minibatch'", SAMPLED, gradient="full", **LEFT),
    *case("gd", r"batch_size=31.*'gd'.*'sgd'", CLIMBED, optimizer="gd", **LEFT),
    *case("too many", "n_draws=.*must be within 9007199254740992", SAMPLED, n_draws=2**60),
    *case("intercept", "fit_intercept='no' is not accepted; give True or", fit_intercept="no"),
    *case("replacement", "replacement='no'.*True or False", CLIMBED, replacement="no"),
    *case("start", "init='mode' is not known.*'auto', 'zeros'", CLIMBED, init="mode"),
    *case("starts", r"init has shape \(2,\); it must be \(5,\): coef", CLIMBED, init=[1, 2]),
    *case("axes", r"init has shape \(1, 1\)", CLIMBED, init=[[1.0]]),
    *case("nan", "init has values .*: nan; .*finite", CLIMBED, init=np.full(5, np.nan)),
    *case("noise", "init has the value 0 for noise_variance which", CLIMBED, init=np.zeros(5)),
    *case("no start", "init=None is not accepted|init has shape", CLIMBED, init=None),
    *case("average", r"average=1\.5.*whole number in \[1, 10\]", CLIMBED, average=1.5),
    *case("verbose", r"verbose=-1 is out of range", verbose=-1),
    *case("loud", r"verbose='loud' is not", verbose="loud"),
    *case("unused prior", "'gauss' is not", REGRESSORS, noise_prior="gauss", noise_variance=1.0),
    *case("newton's step", "step_size=0.5 is not used", CLIMBED, step_size=0.5, **NEWTON),
    *case("newton's set", "projection='box' is not used", CLIMBED, projection="box", **NEWTON),
    *case("newton's clip", "clip='norm' is not used", CLIMBED, clip="norm", **NEWTON),
    *case("layers", r"sizes=\(5, 0\).*\[1", NETWORKS, hidden_layer_sizes=(5, 0)),
    *case("no layers", r"sizes=None.*number.*or a sequence", NETWORKS, hidden_layer_sizes=None),
    # of what is not used too: a typing error is found at once
    *case("activation", r"activation='sine'.*'relu', 'tanh'", NETWORKS, activation="sine", **NONE),
    *case("unused", "'beta'.*'half_normal'", NETWORKS, noise_prior="beta", noise_variance=1.0),
    *case("flat", r"Flat\(\).*improper", NETWORKS, prior="flat"),
    *case("short network", r"prior\.scale.*\(2,\)", NETWORKS, prior=Normal(scale=[1.0, 2.0])),
    *case("auto noise", r"noise_variance='auto'.*'infer'", NETWORKS, noise_variance="auto"),
    *case("network batch", r"batch_size=31.*30 rows", NETWORKS, **LEFT),
    *case("conjugate", f"prior='conj.*{ON_NOISE}", CLASSIFIERS, prior="conjugate_normal"),
]
SKEW, INDEFINITE = np.eye(5) + np.eye(5, k=1), np.diag([1.0, 1.0, -1.0, 1.0, 1.0])
MATRICES = [
    (np.ones(2), r"has shape \(2,\).*\(5,\)"),
    (np.eye(2), r"has shape \(2, 2\).*\(5,"),
    (SKEW, "symmetric"),
    (INDEFINITE, "-1.*definite"),
    (-np.ones(5), "-1.*positive"),
    ([1, 0, 1, 1, 1], "0.*positive"),
    (np.full(5, np.nan), "finite"),
    (["a"] * 5, "'a'"),
]


@pytest.mark.parametrize(("model", "match", "data"), DATA + SETTINGS)
def test_data_and_settings_that_cannot_be_used_are_refused(model, match, data):
    refuse(model, match, **data)


@pytest.mark.parametrize(("given", "match"), MATRICES, ids=range(len(MATRICES)))
def test_matrices_that_are_no_metric_are_refused(given, match):
    refuse(make(SGLDLinearRegression, preconditioner=given), f"preconditioner.*{match}")


POSITIVE = [0, np.nan, np.inf, "fast", None, True]
COUNTS = [-1, 5.0, "many", None, True]
NUMBERS = {
    "step_size": (EVERY, POSITIVE),
    "temperature": (EVERY, POSITIVE),
    "noise_variance": (REGRESSORS, [*POSITIVE, "auto"]),
    "tol": (CLIMBED, [-1.0, np.nan]),
    "n_burnin": ((*SAMPLED, SGLDMLPRegressor), COUNTS),
    **dict.fromkeys(["n_draws", "n_chains", "thin"], (SAMPLED, [0, *COUNTS])),
    "max_iter": (CLIMBED, [0, *COUNTS]),
    "batch_size": (EVERY + NETWORKS, [0, *COUNTS]),
}
RANGE = r"must be a (whole )?number in [\[(](1e-15|[01]), (inf\)|1e\+15\])"
ACCEPTED = rf"({RANGE}|give '(auto|infer)' or a .*number)"


@pytest.mark.parametrize(("name", "value"), [(k, v) for k in NUMBERS for v in NUMBERS[k][1]])
def test_numbers_out_of_range_or_of_wrong_type_are_refused(name, value):
    for cls in NUMBERS[name][0]:
        refuse(make(cls, **{name: value}), f"{name}={re.escape(repr(value))}.*{ACCEPTED}")


HEADS = {
    "prior": (EVERY, PRIORS),
    "noise_prior": (REGRESSORS, NOISE_PRIORS),
    "intercept_prior": (EVERY, PRIORS),
    "gap_prior": (ORDINAL, NOISE_PRIORS),
    "schedule": (EVERY, how.SCHEDULES),
    "clip": (EVERY, how.CLIPS),
    "preconditioner": (EVERY, how.PRECONDITIONERS),
    "sampler": (SAMPLED, how.SAMPLERS),
    "gradient": (SAMPLED, how.GRADIENTS),
    "optimizer": (CLIMBED, optimizers.OPTIMIZERS),
    "projection": (CLIMBED, optimizers.PROJECTIONS),
}


@pytest.mark.parametrize("head", HEADS)
def test_unknown_names_and_other_components_are_refused_with_the_known_names(head):
    classes, registry = HEADS[head]
    of_others = (
        optimizers.SGD() if head == "sampler" else how.SGLD()
    )  # no noise: it would sample nothing
    for cls in classes:
        names = [*registry, "auto"] if head in ("gradient", "preconditioner") else registry
        refuse(make(cls, **{head: "bogus"}), f"{head}='bogus'.*{listed(names)}")
        other = f"{head}={re.escape(repr(of_others))}.*{listed(registry)}"
        refuse(make(cls, **{head: of_others}), other)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"gradient__order": 1}, r"gradient__order=1 .*gradient='auto'.*'control_variate'"),
        ({"clip__threshold": 2.0}, r"clip__threshold=2.0 .*clip=None.*'norm'"),
    ],
)
def test_a_part_that_is_not_there_has_nothing_to_set(change, match):
    model = SGLDLogisticRegression()
    with pytest.raises(ValueError, match=match):
        model.set_params(**change)
    assert model.get_params(deep=False) == SGLDLogisticRegression().get_params(deep=False)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-150, 1e150, 1e300])
def test_sizes_whose_squares_leave_the_range_of_numbers_are_refused(size):
    large = FRAME.assign(bmi=FRAME["bmi"] * size)
    within = r"has values of size .*in \[1e-50, 1e\+50\]"
    refuse(make(SGLDLinearRegression), f"column 'bmi' of X {within}", large)
    for cls in (SGLDLinearRegression, SGDMAPRegressor):
        refuse(make(cls), f"y {within}", y=Y * size)
    counts = np.abs(Y) * size
    refuse(make(SGLDPoissonRegressor), r"y has values of size .*in \[1e-20, 1e\+20\]", y=counts)


@pytest.mark.parametrize("weight", [1e-30, 1.5e20])
def test_weights_that_count_no_rows_are_refused(weight):
    by_class = make(SGLDLogisticRegression, class_weight={False: 1.0, True: weight})
    refuse(by_class, r"class_weight=\{.* 0 or in \[1e-20, 1e\+20\]")
    refuse(make(SGDMAPClassifier), r"sample_weight gives .* 0 or in", weight=np.full(30, weight))


@pytest.mark.parametrize("cls", [BayesByBackpropRegressor, BayesByBackpropClassifier])
def test_an_approximation_that_overflows_names_its_step_size(cls):
    refuse(make(cls, step_size=1e3), "step_size=.*overflowed.*smaller step_size")


LABELS = {
    "bytes": (b"no", b"yes"),
    "mixed": (1, "yes"),
    "none": (None, "yes"),
    "complex": (1j, 2j),
    "sets": (frozenset([1]), frozenset([2])),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_have_no_order_are_refused(kind):
    no, yes = LABELS[kind]
    labels = np.empty(30, dtype=object)
    labels[:] = [yes if value > 0 else no for value in Y]
    refuse(make(SGLDLogisticRegression), r"\by\b.*(string|label|NaN, first in)", y=labels)
    if kind == "bytes":
        refuse(make(SGDMAPClassifier), r"\by\b.*string", y=labels.astype("S"))


def test_infinities_of_both_signs_in_single_precision_are_refused_without_a_warning():
    rows = X.astype(np.float32)
    rows[:2, 0] = np.inf, -np.inf
    for cls in (SGLDLinearRegression, BayesByBackpropRegressor):
        refuse(make(cls), "X contains infinity", rows)


@pytest.mark.parametrize("cls", [SGLDLogisticRegression, SGLDPoissonRegressor])
def test_columns_of_other_names_are_an_error_of_X(cls):
    classes = {"classes": [False, True]} if is_classifier(cls()) else {}
    model = make(cls).partial_fit(FRAME, target(cls), **classes)
    with pytest.raises(ValueError, match="^X: The feature names"):
        model.partial_fit(FRAME.rename(columns={"age": "z"}), target(cls))


def predictions(model):
    if is_regressor(model):
        mean_and_std = model.predict(X[:3], return_std=True)
        return np.column_stack([*mean_and_std, model.predict_interval(X[:3])])
    return np.column_stack([model.predict_proba(X[:3]), model.predict_proba_interval(X[:3])[:, 1]])


def learned(model):
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


@pytest.mark.parametrize("cls", EVERY)
def test_predictions_write_nothing_and_refuse_another_number_of_columns(cls):
    model = make(cls).fit(X, target(cls))
    before, predicted = learned(model), predictions(model)
    interval = "predict_interval" if is_regressor(model) else "predict_proba_interval"
    for method in ("predict", "sample_y", interval):
        with pytest.raises(ValueError, match=r"X has 2 features.*expecting 3 features"):
            getattr(model, method)(X[:, :2])
    np.testing.assert_array_equal(predictions(model), predicted)
    assert learned(model) == before
    model.set_params(fit_intercept=False)  # of the next fit
    np.testing.assert_array_equal(predictions(model), predicted)


# ---- calls that were answered wrongly once -------------------------------------------------------


def of_linear(X, y, **params):
    return make(SGLDLinearRegression, **params).fit(X, y)


def student_t(X, y, **params):
    return of_linear(X, y, noise_distribution="student_t", **params)


@cache
def fitted(cls):
    return make(cls).fit(X, np.ones(30) if cls is SGLDPoissonRegressor else target(cls))


def linear(**params):
    cls = SGLDLinearRegression
    return make(cls, **params).fit(X, Y) if params else fitted(cls)


def logistic(**params):
    cls = SGLDLogisticRegression
    return make(cls, **params).fit(X, Y > 0) if params else fitted(cls)


def counter():
    return fitted(SGLDPoissonRegressor)


def counts(y, **data):
    return make(SGLDPoissonRegressor).fit(X, y, **data)


def fit(cls, *data, **more):
    return make(cls).fit(*data, **more)


LINEAR, LABELLER = SGLDLinearRegression, SGLDLogisticRegression
RIDGE, BESIDE = Ridge().fit(X, Y), np.column_stack([Y, -Y])
LECTURE = "conjugate_normal"
PROPER = {"intercept_prior": "normal", "noise_prior": "half_normal"}
HUGE, ONES, THIRD = np.full(30, 1e300), np.ones(30), np.arange(30) % 3
RAGGED, BOTH = [[1.0], [1.0, 2.0]], np.array([np.inf, -np.inf])
BEYOND = r"y has values of size 1e\+300; it must be 0 or in"
FOUND = [
    # scores, diagnostics and data sets
    (lambda: metrics.interval_score(Y, np.c_[Y, Y], sample_weight=True), "sample_weight"),
    (lambda: metrics.interval_coverage(Y, 1e20), "interval"),
    (lambda: metrics.log_predictive_density([[np.inf, 0.0]]), "log_likelihood has the value inf"),
    (lambda: metrics.get_scorer(np.eye(2)), "name="),
    (
        lambda: metrics.loo(linear(), RowBlocks(lambda: [(X, Y)]), Y),
        "X is RowBlocks, and loo takes arrays.* a random part",
    ),
    (lambda: diagnostics.potential_scale_reduction(""), "draws="),
    (lambda: diagnostics.effective_sample_size(np.zeros((2, 9, 1)), 0.5), "kind=0.5"),
    (lambda: diagnostics.summarize(np.zeros((2, 9, 2)), 17), "names=17 must be 2"),
    (lambda: make_stochastic_volatility(sigma=1e16, random_state=0), r"sigma=1e\+16"),
    (lambda: load_nba_rookies(as_frame=16), "as_frame=16"),
    (lambda: load_cars(return_X_y=16), "return_X_y=16"),
    (lambda: metrics.interval_coverage(BOTH, np.zeros((2, 2))), "y_true contains infinity"),
    (
        lambda: metrics.pinball_loss(Y, np.zeros((30, 3)), [0.1, 0.9]),
        "q has 2 levels, and y_quantiles 3 columns; give one for each",
    ),
    (lambda: metrics.loo(linear(), X, Y, sample_weight=HUGE), "sample_weight has values of size"),
    (
        lambda: compare_models({"a": linear()}, 1e20 * X, Y),
        r"estimators\['a'\]: X and y are not the rows of the fit",
    ),
    (lambda: skbayes_sgld.effects(linear(), X, columns=np.array(2.5)), "columns=.*2.5"),
    (
        lambda: metrics.interval_score(Y, np.zeros((30, 2, 3)), coverage=0.9),
        "interval has .* of 3 coverages",
    ),
    (lambda: metrics.interval_coverage(Y, np.zeros((30, 3))), "interval has shape"),
    (lambda: metrics.pinball_loss(Y, np.zeros((30, 2)), [0.5]), "has 1 levels"),
    (
        lambda: metrics.interval_score(Y, np.c_[Y + 1.0, Y]),
        "interval has the lower end .* above the upper end .* in row 0",
    ),
    (
        lambda: metrics.interval_width(np.array([[[0, 0], [1, 1]], [[0, 3], [1, 2]]])),
        "interval has the lower end 3 above the upper end 2 in row 1",
    ),
    (lambda: metrics.brier_score([0, 1], [[0.2, 0.5]] * 2), "y_proba adds up to 0.7 in row 0"),
    (lambda: metrics.calibration_error(THIRD, np.ones((30, 3))), "y_proba adds up to 3 in row 0"),
    (
        lambda: metrics.brier_score([0, 1], [[0.2, 0.3, 0.5]] * 2, labels=[0, 1, 1]),
        r"labels=\[0, 1, 1\] has a label twice",
    ),
    (lambda: metrics.calibration_error([0, 1], [0.2, 0.8], n_bins=10**9), "n_bins=1000000000"),
    (lambda: metrics.brier_score([0, 1], [0.2, 1.2]), "outside"),
    (lambda: metrics.brier_score([0, 1], [[0.2, 0.3, 0.5]] * 2), "3 classes and there are 2"),
    (lambda: metrics.brier_score([0, 7], [0.2, 0.2], labels=[0, 1]), "not in labels"),
    (lambda: metrics.get_scorer("crps"), "choose one of 'log_predictive_density'"),
    (
        lambda: metrics.get_scorer("neg_interval_score", alpha=0.1),
        "no option alpha; it takes coverage",
    ),
    (
        lambda: metrics.get_scorer("neg_interval_width", coverage=[0.5, 0.9]),
        r"coverage=\[.*not a number",
    ),
    (
        lambda: metrics.get_scorer("neg_coverage_error", coverage=1.5),
        r"coverage=1\.5 is out of range",
    ),
    # rows left out, and models beside each other
    (lambda: metrics.loo(linear(), X, None), "y is None; give an array"),
    (lambda: metrics.loo(linear(), X, Y, n_rows=1), "n_rows=1 "),
    (lambda: metrics.loo(RIDGE, X, Y), "loo needs .*: Ridge has no log_likelihood"),
    (lambda: metrics.loo(linear(), X, Y, exposure=Y), "loo has no argument 'exposure'"),
    (
        lambda: metrics.loo(linear(), X, Y, sample_weight=np.eye(30)[0]),
        "X has 1 rows with a .* above 0; loo needs two",
    ),
    (
        lambda: metrics.loo(linear(n_draws=12), X, Y),
        "the fit has 24 draws; leaving rows out needs at least 25",
    ),
    (
        lambda: metrics.loo(of_linear(X, BESIDE), X, BESIDE),
        "y has 2 outputs, and loo takes one",
    ),
    (
        lambda: compare_models(
            {"a": of_linear(X, ONES + (X[:, 0] > 0)), "b": counter()}, X, ONES, held_out=True
        ),
        "not comparable: a is of numbers, b is of counts",
    ),
    (
        lambda: compare_models({"a": RIDGE}, X, Y),
        "compare_models needs .*: Ridge has no log_likelihood",
    ),
    (lambda: compare_models({"a": linear()}, X, None), "y is None; give an array"),
    (lambda: compare_models([linear()], X, Y), "give a dict of fitted estimators"),
    (
        lambda: compare_models(
            {"z-a": counter(), "[b": linear()}, X, ONES, held_out=True, exposure=ONES
        ),
        r"^estimators\['\[b'\]: compare_models has no argument 'exposure' for SGLDLinearRegress",
    ),
    # effects
    (lambda: effects(linear(), X, columns=[0, 4]), "columns=4 is not a column of X, which"),
    (
        lambda: effects(linear(), X, columns=pd.Series(np.arange(200.0))),
        r"^columns=[^\n]{60,77}\.\.\. is not a column of X.*; give the name or position of one",
    ),
    (
        lambda: effects(linear(), X, columns=[[0, 1]]),
        r"columns=\[0, 1\] is not a column .*; give the name or position of one column",
    ),
    (
        lambda: effects(counter(), X, n_trials=ONES),
        "effects has no argument 'n_trials' for SGLDPoissonRegressor, whose .* exposure",
    ),
    (
        lambda: effects(linear(), X, n_averaged=-ONES),
        "n_averaged has the value -1",
    ),
    (
        lambda: effects(linear(), X, kind="median"),
        "kind='median' is not known; choose one of 'average'",
    ),
    (lambda: effects(linear(), X, step=0), "step=0 is out of range"),
    (lambda: effects(linear(), X, step="sd"), "step='sd' is not a number"),
    (lambda: effects(linear(), X, coverage=90), "coverage=90 is out of range"),
    (lambda: effects(counter(), X, exposure=np.ones(3)), "X has 30, exposure has 3"),
    # seeds
    (lambda: make_cubic(random_state=-1), SEEDS),
    (lambda: linear().sample_y(X, random_state=1.5), SEEDS),
    (lambda: linear().sample_posterior(3, random_state="a"), SEEDS),
    (lambda: linear().sample_prior(X, random_state=-1), SEEDS),
    (lambda: skbayes_sgld.sample_y(linear(), X, random_state=-1), SEEDS),
    (lambda: Kernel(NORMAL, "hmc", step_size=0.5).run(np.ones((2, 2)), 5, thin=0), "thin=0"),
    (lambda: CoverageDisplay.from_estimator(linear(), X, 1e300 * Y), "^y has values of size"),
    (lambda: check_gradient(NORMAL, random_state=np.float32(0.5)), SEEDS),
    # posteriors of one's own
    (lambda: find_mode(NORMAL, "__"), "start='__'"),
    (lambda: BayesByBackprop(max_iter=5).fit(NORMAL, np.zeros(2), np.ones(20)), "scale has shape"),
    (lambda: skbayes_sgld.sample(NORMAL, check_gradient=np.ones(3)), "check_gradient="),
    # settings
    (lambda: logistic(gradient=Minibatch(replacement=np.ones(2))), "gradient.replacement="),
    (lambda: linear(sampler=SGHMC(friction=4e-109)), r"sampler.friction=4e-109.*\[0.001, 1\]"),
    (lambda: linear(sampler=SGNHT(inertia=0.025)), r"sampler.inertia=0.025.*\[0.1, inf\)"),
    (lambda: linear(noise_prior=HalfNormal(5e-324)), r"noise_prior.scale=5e-324.*\[1e-100, 1e\+10"),
    (lambda: logistic(temperature=FlatDecayFlat(hold=1e20)), r"settles after 1e\+21 steps"),
    (lambda: linear(noise_variance=1j), "noise_variance=1j is not a number"),
    (lambda: linear(prior=Normal(scale=RAGGED)), r"prior.scale=\[\[1.0\], \[1.0, 2.0\]\] is not"),
    (
        lambda: make(SGDMAPRegressor, projection=Box(low=RAGGED)).fit(X, Y),
        r"projection.low=\[\[1.0\], \[1.0, 2.0\]\] is not",
    ),
    (
        lambda: make(SGLDMLPRegressor, hidden_layer_sizes=np.array(2.0)).fit(X, Y),
        r"hidden_layer_sizes=array\(2.\) is not accepted",
    ),
    (lambda: make(SGLDMLPRegressor, step_size=1e20).fit(X, Y), r"^step_size=1e\+20: chain"),
    (lambda: linear(n_draws=2 * 10**9), "n_draws=2000000000: .* give at most 25000000"),
    (
        lambda: make(SGDMAPRegressor, temperature=1e8).fit(X, Y),
        r"temperature=1e\+08 the draws of noise_variance leave the range",
    ),
    (
        lambda: logistic(class_weight={0: "a"}),
        r"class_weight=\{0: 'a'\} gives class 0 the weight 'a'; weights must be numbers, 0 or more",
    ),
    (
        lambda: make(LABELLER, class_weight={7: 2.0}).fit(X, (Y > 0).astype(int)),
        r"class_weight=\{7: 2.0\} has 7, which is not among the classes of y, \[0, 1\]",
    ),
    # arguments of predictions
    (lambda: skbayes_sgld.predict_interval(linear(), X, RAGGED), "coverage=.* is not a number"),
    (lambda: linear().predict(X, return_std=np.array(["a", "b"])), "return_std"),
    (lambda: linear().predict_interval(X, kind=np.array(["a", "b"])), "kind="),
    (
        lambda: linear().predict_interval(X, coverage=[]),
        r"coverage=\[\] is empty; give .* in \(0, 1\)",
    ),
    (lambda: linear().predict_interval(X, coverage=0), r"coverage=0 .* in \(0, 1\)"),
    (lambda: logistic().predict_proba_interval(X, coverage="a"), r"coverage='a' is not a number"),
    (
        lambda: linear().predict_quantiles(X, q=[0.5, 1.2]),
        r"^q has values out of range: 1.2; .* in \(0, 1\)",
    ),
    (lambda: linear().predict_interval(X, np.linspace(0, 1, 99)), "coverage .* range: 0.0, 1.0;"),
    (
        lambda: linear().predict_quantiles(X, q=np.arange(0.5, 9.0)),
        r"^q has values out of range: 1.5, 2.5, 3.5, 4.5, 5.5 and 3 more; .* in \(0, 1\)",
    ),
    (lambda: linear().predict_quantiles(X, q=[0.5, np.nan]), "^q has values out of range: nan;"),
    (lambda: linear().sample_y(X, n_samples=2.5), "n_samples=2.5 is not a whole number"),
    (lambda: linear().summary(coverage=Fraction(1, 2)), r"Fraction\(1, 2\) is not a number"),
    (lambda: counter().predict_quantiles(X, q=[]), r"q=\[\] is empty; give a number in \(0, 1\)"),
    (lambda: logistic().predict_proba_quantiles(X, q=[]), r"q=\[\] is empty"),
    (lambda: skbayes_sgld.predict_quantiles(linear(), X, q=[]), r"q=\[\] is empty"),
    (
        lambda: make_pipeline(logistic()).predict(X, return_std=True),
        r"^SGLDLogisticRegression.predict\(\) got an unexpected keyword argument 'return_std'; it "
        "takes X, out, n_trials; the uncertainty of a probability is in predict_proba_interval",
    ),
    (
        lambda: linear().sample_y(X, kind=1),
        r"^SGLDLinearRegression.sample_y\(\) got .* 'kind'; it takes X, n_samples, random_state",
    ),
    (
        lambda: fit(LINEAR, X, Y, exposure=1.0),
        r"fit\(\) got .* 'exposure'; it takes X, y, sample_weight",
    ),
    # displays
    (lambda: TraceDisplay.from_estimator(linear(), parameters=1.0), "parameters=1.0"),
    (lambda: TraceDisplay.from_estimator(linear(), parameters=[["a"]]), r"parameters=\[\['a'\]"),
    (lambda: TraceDisplay.from_estimator(linear(), parameters=dict), "parameters=<class 'dict'>"),
    (lambda: TraceDisplay.from_estimator(linear(), parameters=""), "parameters='' names none"),
    (lambda: ProbabilityContourDisplay.from_estimator(logistic(), -0.0), r"\bX\b"),
    (
        lambda: ProbabilityContourDisplay.from_estimator(dict, X[:, :2]),
        "^estimator is of type type; give",
    ),
    (
        lambda: ProbabilityContourDisplay.from_estimator(
            fit(LABELLER, X[:, :2], Y > 0), X[:2, :2], np.array([None, 1.0])
        ),
        "^y: '<' not supported",
    ),
    (lambda: make(LINEAR, **PROPER, prior="normal").sample_prior(X[:2], y=["a", "b"]), "^y: "),
    (lambda: ProbabilityContourDisplay.from_estimator("model", X[:, :2]), "estimator"),
    (
        lambda: PredictiveIntervalDisplay.from_estimator(linear(), X, feature=0),
        "PredictiveIntervalDisplay has no argument 'feature'.* kind",
    ),
    # rows
    (lambda: fit(LINEAR, np.where(X[5, 1] == X, np.nan, X), Y), "NaN in column 1, first in row 5;"),
    (
        lambda: fit(SGDMAPRegressor, csr_array(np.where(X[5, 1] == X, np.inf, X)), Y),
        "X contains infinity.* in column 1, first in row 5;",
    ),
    (
        lambda: fit(SGLDMLPRegressor, FRAME.assign(bmi=np.nan, bp=np.nan), Y),
        "X contains NaN in column 'bmi', first in row 0, and in 1 other column; leave",
    ),
    (
        lambda: fit(LINEAR, FRAME, Y).predict(FRAME.assign(bp=np.nan)),
        "X contains NaN in column 'bp', first in row 0;",
    ),
    (lambda: fit(LINEAR, FRAME["age"], Y), "X: Expected a 2-dimensional container"),
    (lambda: fit(LABELLER, FRAME[[]], Y > 0), r"X is a data frame with 0 feature.*\(30, 0\)"),
    (lambda: fit(LINEAR, X[:1], Y[:1]), "^X: Found array with 1 sample"),
    # targets, weights and exposures
    (lambda: linear().log_likelihood(X, np.zeros(30, "m8[s]")), "y has dtype timedelta64"),
    (lambda: counter().log_likelihood(X, np.zeros(30, "M8[s]")), "y has dtype datetime64"),
    (lambda: counts(ONES, exposure=[[1.0], [1.0, 2.0]]), "exposure: "),
    (
        lambda: counts(ONES, exposure=np.where(np.arange(30) == 3, 0.0, 1.0)),
        "exposure has the value 0 in row 3",
    ),
    (lambda: counts(ONES, exposure=-1.0), "value -1 in row 0.*positive and finite"),
    (lambda: counts(ONES, exposure=np.inf * ONES), "exposure has the value inf in row 0"),
    (lambda: counts(ONES, exposure=np.nan * ONES), "exposure has the value nan in row 0"),
    (lambda: counts(ONES, exposure=np.ones(3)), r"exposure has shape \(3,\).*30 numbers"),
    (
        lambda: counts(ONES, exposure=["a"] * 30),
        "exposure has shape .* dtype <U1",
    ),
    (lambda: counter().predict(X, exposure=0.0), "exposure has the value 0"),
    (lambda: counter().sample_y(X, exposure=0.0), "exposure has the value 0"),
    (lambda: counter().score(X, ONES, exposure=0.0), "exposure has the value 0"),
    (lambda: counts(-ONES), "y has the value -1; counts must be 0 or more"),
    (lambda: counts(ONES, exposure=1e-150), "exposure gives a row the weight 1e-150"),
    (
        lambda: counts(np.ones((30, 2))),
        r"y has shape \(30, 2\); give one count a row.*exposure.*MultiOutputRegressor",
    ),
    (lambda: counts([[1.0]] * 29 + [[1.0, 2.0]]), "^y: "),
    (
        lambda: make(SGLDPoissonRegressor, prior="flat").fit(THIRD[:, None] == 0, THIRD),
        r"zero where y is not.*prior='normal'",
    ),
    (
        lambda: counter().log_likelihood(X, np.full(30, 2.5)),
        "y has the value 2.5; .* Give the counts as y, and the time, area or .* as exposure",
    ),
    (lambda: fit(LINEAR, X, Y, np.full(30, 1j)), "sample_weight has dtype complex128"),
    (
        lambda: fit(LABELLER, X, np.ones((30, 2))),
        r"y has shape \(30, 2\); .* columns of successes and failures.*n_trials",
    ),
    (
        lambda: fit(SGDMAPClassifier, X, np.eye(3)[np.arange(30) % 3]),
        r"y has shape \(30, 3\); .* give y.argmax\(axis=1\)",
    ),
    (lambda: fit(LABELLER, X, Y), "^y: Unknown label type"),
    (lambda: make(LINEAR, **PROPER).sample_prior(X, y=1e300 * Y), "y has values of size"),
    (
        lambda: make(SGLDOrdinalClassifier).partial_fit(X, ONES, classes=0),
        "^classes: Expected array-like",
    ),
    (lambda: fit(LINEAR, X, 1j * Y), "^y: Complex data not supported"),
    # scores
    (lambda: counter().score(X, HUGE), BEYOND),
    (lambda: counter().score(X, HUGE, exposure=2.0 * ONES), BEYOND),
    (lambda: counter().score(X, -ONES), "y has the value -1; counts must be 0 or more"),
    (lambda: linear().score(X, HUGE), BEYOND),
    (lambda: linear().score(X, np.full(30, np.nan)), "y contains NaN"),
    (lambda: fitted(SGLDMLPRegressor).score(X, HUGE), r"y has values of size 1e\+300"),
    (lambda: fitted(SGLDMLPRegressor).log_likelihood(X, HUGE), r"y has values of size 1e\+300"),
    (lambda: fit(SGLDBetaBinomialRegressor, X, ONES), "n_trials is None; give the trials of each"),
    (
        lambda: fit(SGLDBetaBinomialRegressor, RowBlocks(lambda: [(X, ONES)])),
        r"n_trials is None; .* or blocks of \(X, y, weight, n_trials\)",
    ),
    (
        lambda: of_linear(X, Y, noise_distribution="cauchy"),
        "noise_distribution='cauchy' is not known.*'student_t'",
    ),
    (lambda: student_t(X, Y, noise_variance=2.0), r"noise_variance=2\.0 fixes the noise.*'infer'"),
    (lambda: student_t(X, Y, prior=LECTURE), f"^prior='{LECTURE}' is conjugate to normal"),
    (
        lambda: student_t(X, Y, intercept_prior=LECTURE),
        "intercept_prior=.* conjugate to normal",
    ),
    (
        lambda: student_t(RowBlocks(lambda: [(X, Y)]), None, noise_model="log_linear"),
        "noise_model='log_linear' has no sums",
    ),
    (lambda: check_model(X, Y, linear()), "^estimator is of type ndarray; give a fitted est"),
    (lambda: of_linear(X, GAP), "y contains NaN, first in row 7; leave such rows out"),
    (lambda: of_linear(FRAME.assign(day=DAY), Y), "'day' .*'2020.* days since some date"),
    (lambda: of_linear(X * np.inf, Y), "replace these by NaN and fill them in"),
    (
        lambda: of_linear(RNG.standard_normal((30, 40)), Y, noise_model="log_linear"),
        "82 parameters of 30 rows.*any noise; set noise_model='constant'",
    ),
    (
        lambda: of_linear(RNG.standard_normal((30, 20)), Y, noise_model="log_linear"),
        "42 parameters of 30 rows.*at most 7 of them by LogLinearNoise",
    ),
    *(
        (lambda y=y: linear().predict_cdf(X, y), r"^y=.*0\.5.* is a single value; .* 1 or 2 dim")
        for y in (0.5, "0.5", np.float32(0.5), np.array(0.5))
    ),
    # rows in blocks
    (lambda: effects(linear(), RowBlocks(lambda: [(X, Y)])), "effects, take an array of some of"),
    (lambda: linear().log_likelihood(RowBlocks(lambda: [(X, Y)]), Y), "RowBlocks are no array"),
    (lambda: linear().to_arviz(RowBlocks(lambda: [(X, Y)]), Y), "RowBlocks are no array"),
]


@pytest.mark.parametrize(("call", "match"), FOUND, ids=range(len(FOUND)))
def test_what_was_found_is_refused_by_name(call, match):
    with pytest.raises((ValueError, TypeError), match=match):
        call()
