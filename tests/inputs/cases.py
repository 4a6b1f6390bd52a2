"""Cases: a public call with one argument changed, or a fit of data of unusual size and units."""

import time
import zlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

import skbayes_sgld
from tests.inputs import good, surface, values
from tests.inputs.oracle import Answer, judge, not_finite
from tests.inputs.values import pick

_LINEAR = (skbayes_sgld.SGLDLinearRegression, skbayes_sgld.SGDMAPRegressor)


@dataclass(frozen=True)
class Case:
    """One call to be judged.

    Attributes
    ----------
    family : str
        What it is counted under.
    label : str
        How to make it again.
    answer : callable
        Makes the call and judges it.
    """

    family: str
    label: str
    answer: Callable[[], Answer]

    def __repr__(self):
        return self.label


# numbers of steps, draws, units and the like, and what they are found from
_COUNTS = {"n_draws", "n_burnin", "thin", "n_chains", "max_iter", "hidden_layer_sizes", "n_samples"}
_COUNTS |= {"n_particles", "grid_resolution", "n_bins", "n_temperatures", "n_pairs", "max_lag"}
_COUNTS |= {"hold", "decay", "period", "path_length"}


# ---- one argument of a call --------------------------------------------------------------------


def one_argument(rng, call):
    """A call with one argument changed, the others good."""
    name = pick(rng, sorted(call.kinds))
    if call.kinds[name] == "array":
        good = call.good.get(name)
        what, value = values.array(rng, surface.X[:, 0] if good is None else good)
    else:
        what, value = values.setting(rng)
    if name in _COUNTS and isinstance(value, (int, float)) and 100 < value <= 2**53:
        value = int(value) % 100  # a right answer would take long
        what = repr(value)
    return Case(_family(call), f"{call.name}({name}={what})", lambda: _answer(call, name, value))


def _family(call):
    head, _, rest = call.name.partition(".")
    if "(" in head or head == "LIKELIHOODS":
        return "components"
    if head in {cls.__name__ for cls in surface.ESTIMATORS}:
        return {"": "settings", "fit": "data of fit"}.get(rest, "methods")
    return "displays" if "Display" in head else "functions"


def _answer(call, name, value):
    given = call.good | {name: value}
    names = (name, *call.also)
    if call.unchanged is None:
        # diagnostics of constant draws have no value, and some data sets have gaps
        may_lack = call.name.startswith(("diagnostics.", "datasets."))
        finite = (lambda result: None) if may_lack else not_finite
        return judge(lambda: call.function(**given), names, finite)
    model = call.unchanged()
    before = copy(vars(model))
    answer = judge(lambda: call.function(model, **given), names)
    if answer.kind == "error" and not _same(vars(model), before):
        return Answer("failure", "the estimator was changed")
    return answer


def _same(after, before):
    return after.keys() == before.keys() and all(after[k] is before[k] for k in before)


# ---- data of unusual size and units --------------------------------------------------------------

_LABELS = {
    "words": ("no", "yes", "maybe"),
    "numbers": (0, 1, 2),
    "negative": (-1, 1, 7),
    "fractions": (0.5, 1.5, 2.5),
    "bools": (False, True, True),
    "bytes": (b"a", b"b", b"c"),
    "tuples": ((0, 1), (1, 0), (1, 1)),
    "sets": (frozenset("a"), frozenset("b"), frozenset("c")),
    "mixed": (0, "a", 1.5),
    "none": (None, "a", "b"),
    "dates": tuple(np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")),
    "large": (10**30, 1, 2),
    "text objects": (np.str_("a"), "b", "c"),
}
_POWERS = (-300, -150, -50, -20, -12, -6, -3, *[0] * 30, 3, 6, 12, 20, 50, 150, 300)


def unusual_data(rng):
    """A fit of few rows or columns, in units far apart, with copies, constants and offsets."""
    linear = [cls for cls in surface.ESTIMATORS if cls not in surface.SLOW]
    cls = pick(rng, linear * 6 + surface.SLOW)
    n, d = pick(rng, [0, 1, 2, 3, 5, 8, *[20] * 8]), pick(rng, [0, 1, 2, 2, 2, 4])
    powers = [pick(rng, _POWERS) for _ in range(d)]
    offsets = [pick(rng, [0.0, 0.0, 1.0, 1e4, 1e8]) for _ in range(d)]
    X = rng.standard_normal((n, d))
    eta = X.sum(axis=1) + rng.standard_normal(n)
    with np.errstate(all="ignore"):
        X = (X + np.array(offsets)) * 10.0 ** np.array(powers, dtype=float)
    text = [f"n={n}, powers={powers}, offsets={offsets}"]
    if d > 1 and rng.integers(5) == 0:
        X[:, 1] = X[:, 0]
        text.append("copied")
    if n and d and rng.integers(5) == 0:
        X[:, 0] = X[0, 0]
        text.append("constant")
    y, what = _unusual_target(rng, cls, eta)
    text.append(what)
    weight = None
    if rng.integers(4) == 0:
        what, weight = pick(rng, list(_unusual_weights(rng, eta).items()))
        text.append(f"weights {what}")
    closed = cls in _LINEAR and rng.integers(2)  # the model that has a closed form
    params = {"prior": "conjugate_normal"} if closed else {}
    if rng.integers(3) == 0:
        params = pick(rng, _settings(cls))
        text.append(str(params))
    if rng.integers(3) == 0:
        with np.errstate(all="ignore"):
            X = X.astype(np.float32)
        text.append("float32")
    label = f"{cls.__name__}: {', '.join(text)}"
    return Case("unusual data", label, lambda: _answer_fit(cls, params, X, y, weight))


def _unusual_target(rng, cls, eta):
    if is_classifier(cls()):
        kind, K = pick(rng, sorted(_LABELS)), pick(rng, [1, 2, 2, 2, 3])
        codes = np.clip(np.digitize(eta, [-0.3, 0.5]) % max(K, 1), 0, K - 1)
        y = np.empty(len(eta), dtype=object)
        y[:] = [_LABELS[kind][k] for k in codes]
        if rng.integers(2) and kind not in ("sets", "mixed", "none", "large", "tuples"):
            y = np.array(y.tolist())
        return y, f"{K} classes of {kind}, {y.dtype}"
    if good.is_positive(cls):
        power = pick(rng, [0, 0, 3, 10, 18, -3, -30])
        return np.rint(np.exp(np.clip(eta, -2, 2))) * 10.0**power, f"y times 1e{power}"
    power, level = pick(rng, _POWERS), pick(rng, [0.0, 0.0, 1e8])
    with np.errstate(all="ignore"):
        return (eta + level) * 10.0**power, f"y times 1e{power}, offset {level}"


def _unusual_weights(rng, eta):
    n = len(eta)
    return {
        "one class 0": (eta > 0).astype(float),
        "mostly 0": (np.arange(n) < 3).astype(float),
        "1e-6": np.full(n, 1e-6),
        "1e6": np.full(n, 1e6),
        "spread": 10.0 ** rng.uniform(-5, 5, n),
    }


def _settings(cls):
    every = [
        {"prior": "normal"},
        {"prior": "conjugate_normal"},
        {"prior": "laplace"},
        {"prior": "student_t"},
        {"prior": "flat"},
        {"fit_intercept": False},
        {"intercept_prior": "normal"},
        {"class_weight": "balanced"},
        {"noise_variance": 1.0},
        {"noise_prior": "flat"},
        {"noise_prior": "half_cauchy"},
        {"temperature": 1e-8},
        {"temperature": 1e3},
        {"preconditioner": None, "step_size": 1e-3},
        {"gradient": "minibatch", "batch_size": 2},
        {"sampler": "hmc"},
        {"schedule": "polynomial"},
        {"optimizer": "adam"},
        {"parameterization": "centered"},
        {"activation": "relu"},
        {"noise_model": "log_linear"},
    ]
    names = cls().get_params(deep=False)
    if issubclass(cls, tuple(surface.SLOW)):
        every = [p for p in every if "step_size" not in p]
    return [params for params in every if params.keys() <= names.keys()]


_MAY_NAME = ("X", "y", "sample_weight", "noise_prior", "noise_variance", "intercept_prior", "prior")
_MAY_NAME += ("step_size", "batch_size", "class_weight", "temperature", "noise_model", "projection")


def _answer_fit(cls, params, X, y, weight):
    model = good.make(cls, **params)
    before = copy(vars(model))
    answer = judge(lambda: model.fit(X, y, weight), _MAY_NAME)
    if answer.kind == "error":
        return answer if _same(vars(model), before) else Answer("failure", "estimator changed")
    if answer.kind == "failure":
        return answer
    for wrong in (_wrong_prediction(model, X), _wrong_posterior(model, X, y, weight, params)):
        if wrong:
            return Answer("failure", wrong)
    return answer


def _wrong_prediction(model, X):
    method = "predict_proba_interval" if is_classifier(model) else "predict_interval"

    def predict():
        return [getattr(model, method)(X[:3]), model.summary()]

    answer = judge(predict, ("X",))
    # rates of a few rows of little weight may be beyond the range of numbers, as the error says
    refused = answer.kind == "error" and good.is_positive(type(model))
    right = answer.kind == "result" or refused
    return None if right else f"predictions: {answer.kind} {answer.reason}"


def _wrong_posterior(model, X, y, weight, params):
    """Contradiction of the closed form of the conjugate model, or ""."""
    w = np.ones(len(y)) if weight is None else weight
    conjugate = isinstance(model, _LINEAR) and params == {"prior": "conjugate_normal"}
    # with few rows the noise decides how far the tails reach, and 20 draws tell little of them
    if not conjugate or min(w.sum(), (w > 0).sum()) < X.shape[1] + 5:
        return None
    mean, sd = closed_form(model, np.asarray(X, float), np.asarray(y, float), weight)
    away = np.abs(model.coef_ - mean) / sd
    # 40 draws: their mean is within an sd however they are correlated; a climb ends within tol
    if getattr(model, "distance_", 0.0) > 1.0:  # which a warning has told
        return None
    if not np.all(away < 2.0):
        return f"coef_ is {away.max():.2g} sds from the closed form"
    spread = model.posterior_.flat[:, : len(sd)].std(axis=0) / sd
    if not np.all((spread > 0.3) & (spread < 3.0)):
        return f"sds are {spread} times those of the closed form"
    return None


def closed_form(model, X, y, weight):
    """Mean and sd of the coefficients of the conjugate model, from the numbers of its priors.

    The columns are taken in units of the prior's scale, so that no square overflows.
    """
    w = np.ones(len(y)) if weight is None else weight
    scale = np.broadcast_to(np.asarray(model.prior_.scale, float), X.shape[1])
    center, level = np.average(X, axis=0, weights=w), np.average(y, weights=w)
    unit = np.abs(y - level).max()
    Z, z = (X - center) * scale, (y - level) / unit
    precision = Z.T @ (w[:, None] * Z) + np.eye(X.shape[1])
    moment = Z.T @ (w * z)
    mean = np.linalg.solve(precision, moment)
    shape = model.noise_prior_.shape + 0.5 * (w.sum() - 1.0)
    rate = model.noise_prior_.scale / unit / unit + 0.5 * max(w @ z**2 - moment @ mean, 0.0)
    covariance = np.linalg.inv(precision)
    variance = rate / max(shape - 1.0, 0.5 * shape)
    return mean * scale * unit, np.sqrt(variance * np.diag(covariance)) * scale * unit


def judge_cases(numbers, seed=0):
    """Family, kind of answer, label, reason and seconds of the cases of these numbers and a seed.

    One in four is of unusual data. The others are of each public call in turn, and the same for a
    call whatever other calls there are.
    """
    found, calls = [], surface.surface()
    for number in numbers:
        turn, kind = divmod(number, 4)
        if kind == 3:
            case = unusual_data(np.random.default_rng([seed, turn]))
        else:
            times, place = divmod(3 * turn + kind, len(calls))
            name = zlib.crc32(calls[place].name.encode())
            case = one_argument(np.random.default_rng([seed, name, times]), calls[place])
        before = time.process_time()
        answer = case.answer()
        seconds = time.process_time() - before
        found.append((case.family, answer.kind, case.label, answer.reason, seconds))
    return found
