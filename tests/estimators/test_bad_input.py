"""Unusable input is refused by name, with what is accepted, and changes no estimator.

Every case goes through ``refuse``: an estimator that was never fitted must stay bare.
"""

import re

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor

from skbayes_sgld import (
    BayesByBackpropRegressor,
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDOrdinalClassifier,
)
from skbayes_sgld import sampling as how
from skbayes_sgld.priors import NOISE_PRIORS, PRIORS, InverseGamma, Laplace, LogNormal, Normal
from tests.sharing import share_after

# 100 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# one class of each kind, of those whose checks are the same
EVERY = (SGLDLinearRegression, SGDMAPClassifier)
SAMPLED, CLIMBED = (SGLDLogisticRegression,), (SGDMAPRegressor,)
REGRESSORS, CLASSIFIERS = (SGLDLinearRegression,), (SGLDLogisticRegression,)
NETWORKS, ORDINAL = (SGLDMLPRegressor, BayesByBackpropRegressor), (SGLDOrdinalClassifier,)
every_class = pytest.mark.parametrize("cls", EVERY)

N, D = 60, 3
X = np.random.default_rng(0).standard_normal((N, D))
Y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).standard_normal(N)


def target(cls):
    return Y if is_regressor(cls()) else (Y > 0).astype(float)


def small(cls, **params):
    is_sampled = cls.__name__.startswith("SGLD")
    short = {"n_draws": 100, "n_chains": 2} if is_sampled else {"max_iter": 200}
    return cls(**{**short, "random_state": 0, **params})


def learned(model):
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


def predictions(model):
    if is_regressor(model):
        mean_and_std = model.predict(X[:3], return_std=True)
        return np.column_stack([*mean_and_std, model.predict_interval(X[:3])])
    return np.column_stack([model.predict_proba(X[:3]), model.predict_proba_interval(X[:3])[:, 1]])


def refuse(cls, match, params, X=X, y=None, weight=None):
    """Message of the refusal; ``y`` may be a function of the good target."""
    y = target(cls) if y is None else y(target(cls)) if callable(y) else y
    model = small(cls, **params)
    with pytest.raises((ValueError, TypeError), match=match) as raised:
        model.fit(X, y, weight)
    assert learned(model) == {}
    return str(raised.value)


def case(label, match, on=EVERY, *data, **params):
    """A case for every class in ``on``: what to give to ``refuse``."""
    given = {name: params.pop(name) for name in ("X", "y", "weight") if name in params}
    given |= dict(zip(("X", "y"), data, strict=False))
    return [pytest.param(c, match, params, given, id=f"{label}-{c.__name__}") for c in on]


def put(array, value):
    changed = np.array(array)
    changed.flat[4] = value
    return changed


def listed(names):
    return ".*".join(re.escape(repr(name)) for name in sorted(names))


# ---- data, and settings that do not fit -------------------------------------------------------

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
TOO_LARGE, LEFT = r"batch_size=61.*60 rows.*at most 60", {"batch_size": 61}
LEVELS = Normal(scale=np.ones(3))
SETTINGS = [
    *case("short", r"prior\.scale.*\(2,\).*vector of 3", prior=Normal(scale=[1.0, 2.0])),
    *case("negative scale", r"prior\.scale=-1\.0.*positive", prior=Laplace(scale=-1.0)),
    *case("zero in scale", r"prior\.scale=\[1, 0, 1\].*positive", prior=Normal(scale=[1, 0, 1])),
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
    *case("period", r"period=0.*\[1", CLIMBED, optimizer=how.SVRGDescent(period=0)),
    *case("decay", r"decay=1\.0.*\[0, 1\)", CLIMBED, optimizer=how.Momentum(decay=1.0)),
    *case("batch", TOO_LARGE, SAMPLED, gradient=how.Minibatch(replacement=False), **LEFT),
    *case("climbing batch", TOO_LARGE, CLIMBED, replacement=False, **LEFT),
    *case("full", r"batch_size=61.*Full\(\).*'minibatch'", SAMPLED, gradient="full", **LEFT),
    *case("gd", r"batch_size=61.*'gd'.*'sgd'", CLIMBED, optimizer="gd", **LEFT),
    *case("too many", "n_draws=.*must be within 9007199254740992", SAMPLED, n_draws=2**60),
    *case("intercept", "fit_intercept='no' is not accepted; give True or", fit_intercept="no"),
    *case("replacement", "replacement='no'.*True or False", CLIMBED, replacement="no"),
    *case("start", "init='mode' is not known.*'auto', 'zeros'", CLIMBED, init="mode"),
    *case("starts", r"init has shape \(2,\); it must be \(5,\): coef", CLIMBED, init=[1, 2]),
    *case("axes", r"init has shape \(1, 1\)", CLIMBED, init=[[1.0]]),
    *case("nan", "init=.*not finite", CLIMBED, init=np.full(5, np.nan)),
    *case("noise", "init has the value 0 for noise_variance which", CLIMBED, init=np.zeros(5)),
    *case("no start", "init=None is not accepted|init has shape", CLIMBED, init=None),
    *case("average", r"average=1\.5.*whole number in \[1, 200\]", CLIMBED, average=1.5),
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
    *case("network batch", r"batch_size=61.*60 rows", NETWORKS, **LEFT),
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


@pytest.mark.parametrize(("given", "match"), MATRICES, ids=range(len(MATRICES)))
def test_matrices_that_are_no_metric_are_refused(given, match):
    refuse(SGLDLinearRegression, f"preconditioner.*{match}", {"preconditioner": given})


@pytest.mark.parametrize(("cls", "match", "params", "data"), DATA + SETTINGS)
def test_data_and_settings_that_cannot_be_used_are_refused(cls, match, params, data):
    refuse(cls, match, params, **data)


@every_class
def test_an_array_is_taken_as_a_preconditioner(cls):
    diagonal = np.full(4 + is_regressor(cls()), 0.02)
    model, y = small(cls, preconditioner=diagonal), target(cls)
    explicit = clone(model).set_params(preconditioner=how.Matrix(diagonal)).fit(X, y)
    np.testing.assert_array_equal(predictions(model.fit(X, y)), predictions(explicit))


@every_class
def test_predictions_write_nothing_and_refuse_another_number_of_columns(cls):
    model = small(cls).fit(X, target(cls))
    before, predicted = learned(model), predictions(model)
    interval = "predict_interval" if is_regressor(model) else "predict_proba_interval"
    for method in ("predict", "sample_y", interval):
        with pytest.raises(ValueError, match=r"X has 2 features.*expecting 3 features"):
            getattr(model, method)(X[:, :2])
    np.testing.assert_array_equal(predictions(model), predicted)
    assert learned(model) == before
    model.set_params(fit_intercept=False)  # of the next fit
    np.testing.assert_array_equal(predictions(model), predicted)


# ---- numbers ----------------------------------------------------------------------------------

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
        refuse(cls, f"{name}={re.escape(repr(value))}.*{ACCEPTED}", {name: value})


def test_a_small_step_size_does_not_lengthen_the_fit(monkeypatch):
    steps, step = [], how.SGLD.step
    monkeypatch.setattr(how.SGLD, "step", lambda self, *args: steps.append(1) or step(self, *args))
    counts = []
    for step_size in (0.5, 0.005):
        small(SGLDLogisticRegression, step_size=step_size, n_burnin=0, thin=1).fit(X, Y > 0)
        counts.append(len(steps) - sum(counts))
    assert 100 <= counts[1] <= 5 * counts[0]


# ---- components -------------------------------------------------------------------------------

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
    "optimizer": (CLIMBED, how.OPTIMIZERS),
    "projection": (CLIMBED, how.PROJECTIONS),
}


@pytest.mark.parametrize("head", HEADS)
def test_unknown_names_and_other_components_are_refused_with_the_known_names(head):
    classes, registry = HEADS[head]
    of_others = how.SGD() if head == "sampler" else how.SGLD()  # no noise: it would sample nothing
    for cls in classes:
        names = [*registry, "auto"] if head in ("gradient", "preconditioner") else registry
        refuse(cls, f"{head}='bogus'.*{listed(names)}", {head: "bogus"})
        refuse(cls, f"{head}={re.escape(repr(of_others))}.*{listed(registry)}", {head: of_others})


# ---- chains that overflow, and a library that is missing --------------------------------------

TEN = {"step_size": 10.0, "n_chains": 4}
OVERFLOWS = {
    # where the minibatches' noise, not the curvature, is what a chain cannot stand
    "one row": {**TEN, "step_size": 0.9, "gradient": "control_variate", "batch_size": 1},
    # the log of the noise variance stays finite, the noise variance does not
    "noise": {**TEN, "preconditioner": "curvature"},
}


@pytest.mark.parametrize("kind", OVERFLOWS)
def test_an_overflow_names_step_parameter_chain_and_a_step_size_that_holds(kind):
    params = OVERFLOWS[kind]
    match = (
        f"step_size={re.escape(format(params['step_size'], 'g'))}: "
        r"chain (\d) overflowed at step (\d+) in (\S+)\. "
        r"With step_size=(\S+) a run of (\d+) steps did not overflow.*step_size='auto'"
    )
    said = refuse(SGLDLinearRegression, match, params)
    model = small(SGLDLinearRegression, **params)
    _, _, parameter, shorter, n_steps = re.search(match, said).groups()
    assert float(shorter) < params["step_size"]
    as_tried = {"n_burnin": 0, "n_draws": 1, "thin": int(n_steps)}
    model.set_params(step_size=float(shorter), **as_tried).fit(X, Y)
    assert np.isfinite(model.posterior_.values).all()
    assert parameter.replace("log_", "") in model.posterior_.names


def test_an_optimizer_that_overflows_names_a_step_size_that_holds():
    match = (
        r"step_size=50: the optimizer overflowed at step \d+ in (\S+)\. "
        r"With step_size=(\S+) a run of (\d+) steps did not"
    )
    params = {"step_size": 50.0, "schedule": "constant", "noise_variance": 1.0, "max_iter": 100}
    said = refuse(SGDMAPRegressor, match, params)
    parameter, shorter, n_steps = re.search(match, said).groups()
    as_tried = {"step_size": float(shorter), "max_iter": int(n_steps)}
    model = small(SGDMAPRegressor, **params | as_tried).fit(X, Y)
    assert np.isfinite(model.coef_path_).all() and parameter in model.posterior_.names


def test_an_overflow_names_the_same_chain_whatever_the_number_of_jobs(monkeypatch):
    share_after(0.0, monkeypatch)
    model = small(SGLDLinearRegression, n_chains=4, preconditioner=None, noise_variance=1.0)
    for seed in range(50):  # look for a run in which a chain of the second half is the first
        model.set_params(n_burnin=0, thin=1, step_size=0.0316, n_draws=4000, random_state=seed)
        with pytest.raises(ValueError, match="overflowed") as raised:
            model.fit(X, Y)
        chain, step = re.search(r"chain (\d) overflowed at step (\d+)", str(raised.value)).groups()
        if int(chain) >= 2:
            break
    model.set_params(n_draws=int(step) + 1, n_jobs=2)  # and no other chain overflows before it
    with joblib.parallel_config(backend="threading"), pytest.raises(ValueError, match=f"n {chain}"):
        model.fit(X, Y)


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
