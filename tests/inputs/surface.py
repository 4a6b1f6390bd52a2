"""Public calls with good arguments, of which the generated cases change one.

Estimators, their methods, components and functions are found by themselves; the good values of
arguments are known by their names.
"""

import inspect
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

import skbayes_sgld
from skbayes_sgld import (
    datasets,
    diagnostics,
    kernels,
    likelihoods,
    metrics,
    optimizers,
    own_models,
    plotting,
    posterior,
    priors,
    sampling,
    variational,
)
from skbayes_sgld._numpy_errors import arguments_of
from skbayes_sgld.inference.settings import Settings
from tests.inputs.good import (
    LABELS,
    NAMES,
    RNG,
    WEIGHT,
    N,
    X,
    Y,
    estimator,
    make,
    target,
)

ESTIMATORS = [estimator(name) for name in NAMES]
SLOW = [cls for cls in ESTIMATORS if "MLP" in cls.__name__ or "Backprop" in cls.__name__]
# settings that write files, ask another process or show a bar have tests of their own
_ELSEWHERE = {"checkpoint", "resume_from", "verbose", "n_jobs", "max_time", "target_ess"}


@dataclass(frozen=True)
class Call:
    """A public function with good arguments, all given by their names.

    Attributes
    ----------
    name : str
    function : callable
    good : dict
        Good arguments.
    kinds : dict
        ``"array"`` or ``"setting"`` by argument; only these are changed.
    also : tuple of str
        Further names that an error may mention; ``"*"`` where scikit-learn's own metrics answer.
    unchanged : callable or None
        Makes the estimator that a failed call must leave as it was, the first argument of
        ``function``.
    """

    name: str
    function: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]
    also: tuple[str, ...] = ()
    unchanged: Callable[[], Any] | None = None


@cache
def fitted(cls, weighted=False):
    """A fitted estimator, which no call may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(cls).fit(X, target(cls), WEIGHT if weighted else None)


ARRAYS = {
    *("X", "y", "sample_weight", "exposure", "n_trials", "y_true", "y_draws", "y_quantiles"),
    *("y_proba", "interval", "log_likelihood", "draws", "draw_weights", "labels", "theta"),
    *("start", "scale", "coef"),
}


def kinds_of(names):
    """Whether each argument is an array or a setting."""
    return {name: "array" if name in ARRAYS else "setting" for name in names}


def settings(names):
    return dict.fromkeys(names, "setting")


# ---- estimators -----------------------------------------------------------------------------

BY_ROW = {"exposure": WEIGHT, "n_trials": np.full(N, 30)}
_FEW_ROWS = {
    "X": X[:4],
    "q": [0.1, 0.9],
    "coverage": 0.9,
    "kind": "mean",
    "n_samples": 3,
    "random_state": 0,
    "return_std": True,
    **{name: of[:4] for name, of in BY_ROW.items()},
    "sample_weight": WEIGHT[:4],
    "classes": [0.0, 1.0],
}
_NO_METHODS = {"fit", "get_metadata_routing", "get_params", "set_callbacks", "set_params"}
_NO_METHODS |= {"to_arviz", "diagnose"}  # which take the same rows, and are slow to make
_PROPER = {"prior": "normal", "intercept_prior": "normal", "noise_prior": "half_normal"}


def _rows_of(cls, taken):
    """Good arguments of a fit, or of a batch."""
    good = {"X": X, "y": target(cls), "sample_weight": WEIGHT, **BY_ROW}
    labels = {"n_trials"} if is_classifier(cls()) else set()
    return {name: value for name, value in good.items() if name in taken and name not in labels}


def _calls_of(cls):
    """The fit of an estimator, its settings and its methods."""
    good = _rows_of(cls, arguments_of(cls.fit, cls))
    names = list(cls().get_params(deep=False))
    also = (*names, "columns", "sample_weight", "y", "X")
    fit = lambda model, **data: model.fit(**data)  # noqa: E731
    yield Call(f"{cls.__name__}.fit", fit, good, kinds_of(good), also, lambda: make(cls))
    fit_with = lambda **params: make(cls, **params).fit(X, target(cls))  # noqa: E731
    changed = settings(name for name in names if name not in _ELSEWHERE)
    yield Call(cls.__name__, fit_with, {}, changed, tuple(names))
    for name in dir(cls):
        method = inspect.unwrap(getattr(cls, name))
        if name.startswith(("_", "set_")) or name in _NO_METHODS or not callable(method):
            continue
        taken = set(arguments_of(method, cls))
        good = {p: value for p, value in _FEW_ROWS.items() if p in taken}
        if "y" in taken and (name != "sample_prior" or target(cls) is Y):
            good["y"] = target(cls)[:4]
        if is_classifier(cls()):
            good.pop("n_trials", None)  # these are labels
        if name == "partial_fit":
            good |= _rows_of(cls, taken)
        yield Call(
            f"{cls.__name__}.{name}",
            lambda model, name=name, **given: getattr(model, name)(**given),
            good,
            kinds_of(good),
            (*also, *(["*"] * (name == "score"))),
            partial(_subject, cls, name),
        )


def _subject(cls, method):
    """The estimator whose method is called."""
    if method == "sample_prior":
        proper = {name: prior for name, prior in _PROPER.items() if name in cls().get_params()}
        return make(cls, **proper)
    return clone(fitted(cls)) if method == "partial_fit" else fitted(cls)


# ---- components ------------------------------------------------------------------------------

LINEAR, LOGISTIC = skbayes_sgld.SGLDLinearRegression, skbayes_sgld.SGLDLogisticRegression
_HOLDERS = [
    ("sampler", LINEAR, sampling.SAMPLERS),
    ("gradient", LOGISTIC, sampling.GRADIENTS),
    ("preconditioner", LOGISTIC, sampling.PRECONDITIONERS),
    ("clip", LOGISTIC, sampling.CLIPS),
    ("schedule", LINEAR, sampling.SCHEDULES),
    ("temperature", LOGISTIC, sampling.SCHEDULES),
    ("prior", LINEAR, priors.PRIORS),
    ("prior", LINEAR, priors.HIERARCHICAL_PRIORS),
    ("intercept_prior", skbayes_sgld.SGDMAPRegressor, priors.PRIORS),
    ("noise_prior", LINEAR, priors.NOISE_PRIORS),
    ("noise_model", LINEAR, posterior.NOISE_MODELS),
    ("optimizer", skbayes_sgld.SGDMAPRegressor, optimizers.OPTIMIZERS),
    ("projection", skbayes_sgld.SGDMAPRegressor, optimizers.PROJECTIONS),
]


def _components():
    for head, cls, registry in _HOLDERS:
        for part in registry.values():
            names = set(part().get_params(deep=False))
            if head == "temperature":
                names.discard("power")  # with a small one it settles after millions of steps
            if names:
                yield Call(
                    f"{cls.__name__}({head}={part.__name__})",
                    lambda cls=cls, head=head, part=part, **given: make(
                        cls, **{head: part(**given)}
                    ).fit(X, target(cls)),
                    {},
                    settings(names),
                    (head, f"{head}.", "step_size", "batch_size"),
                )
    for part in likelihoods.LIKELIHOODS.values():
        names = part().get_params(deep=False)
        if names:
            check = lambda part=part, **given: part(**given).check()  # noqa: E731
            yield Call(
                f"LIKELIHOODS.{part.__name__}", check, {}, settings(names), ("noise_variance",)
            )
    for name, family in variational.FAMILIES.items():
        names = family().get_params(deep=False)
        if names:
            fit = lambda family=family, **given: _approximate(family=family(**given))  # noqa: E731
            yield Call(f"BayesByBackprop(family={name})", fit, {}, settings(names))


# ---- functions -------------------------------------------------------------------------------

NORMAL = own_models.FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
DRAWS = RNG.standard_normal((2, 20, 3))
PROBA = RNG.uniform(0.1, 0.9, N)
INTERVAL = np.column_stack([Y - 1.0, Y + 1.0])
ROWS = posterior.GLMPosterior(X, LABELS, likelihoods.Bernoulli(), priors.Normal(2.5))


def _approximate(**params):
    params = {"max_iter": 10, "random_state": 0, **params}
    start = params.pop("start", np.zeros(2))
    scale = params.pop("scale", 1.0)
    return variational.BayesByBackprop(**params).fit(NORMAL, start, scale)


def _mode(**given):
    return optimizers.find_mode(**{"posterior": ROWS, "max_iter": 10, **given}).theta


def _sample(**given):
    few = {"n_draws": 20, "n_chains": 2, "random_state": 0, "check_gradient": False}
    return skbayes_sgld.sample(**{"posterior": ROWS, **few, **given})


def _run_kernel(n_draws=5, **given):
    kernel = kernels.Kernel(NORMAL, "hmc", step_size=0.5)
    return kernel.run(np.zeros((2, 2)), n_draws, **given).draws


def _custom(**given):
    return own_models.CustomPosterior(**{"model": NORMAL, **given}).n_params


def compare_models(model, X, y, sample_weight=None, n_rows=5, random_state=0):
    return skbayes_sgld.compare_models(
        {"model": model},
        X,
        y,
        sample_weight=sample_weight,
        n_rows=n_rows,
        random_state=random_state,
    )


# good values of arguments by their names, and of a function's own
_BY_NAME = {
    "X": X[:4],
    "y_true": Y,
    "y_draws": np.stack([Y, Y + 1.0, Y - 2.0], axis=1),
    "y_quantiles": INTERVAL,
    "q": [0.1, 0.9],
    "interval": INTERVAL,
    "coverage": 0.9,
    "log_likelihood": -np.abs(DRAWS[0]),
    "y_proba": PROBA,
    "labels": [0.0, 1.0],
    "n_bins": 5,
    "strategy": "uniform",
    "norm": "l1",
    "draws": DRAWS,
    "names": ["a", "b", "c"],
    "n_samples": 9,
    "coef": [1.0, 2.0],
    "random_state": 0,
    "posterior": NORMAL,
    "theta": np.zeros(2),
}
_NOT_CALLED = {"get_scorer_names", "gather_warnings", "load_sp500_returns", "sample", "loo"}
_WEIGHTED = [metrics.crps, metrics.interval_score, metrics.pinball_loss, metrics.brier_score]
_WEIGHTED += [metrics.calibration_error, metrics.interval_coverage, metrics.interval_width]


def _own():
    """Further good arguments of single functions."""
    rows = {"X": X, "y": Y, "sample_weight": WEIGHT}
    weighted = fitted(LINEAR, weighted=True)
    few = {name: _FEW_ROWS[name] for name in ("kind", "n_samples", "coverage")}
    of_numbers = "predict_interval", "predict_quantiles", "sample_y", "summary"
    wrapped = dict.fromkeys(of_numbers, LINEAR)
    wrapped |= dict.fromkeys(("predict_proba_interval", "predict_proba_quantiles"), LOGISTIC)
    return {
        metrics.crps: {"draw_weights": np.array([1.0, 2.0, 3.0])},
        metrics.brier_score: {"y_true": LABELS},
        metrics.calibration_error: {"y_true": LABELS},
        metrics.get_scorer: {"name": "neg_crps"},
        diagnostics.effective_sample_size: {"kind": "bulk"},
        own_models.check_gradient: {"model": NORMAL},
        own_models.as_posterior: {"model": NORMAL},
        skbayes_sgld.effects: {
            **{"estimator": fitted(skbayes_sgld.SGLDPoissonRegressor), "columns": [0]},
            **{"kind": "at_mean", "step": 1.0},
        },
        skbayes_sgld.diagnose: {"estimator": fitted(LINEAR), "X": None, "y": None},
        skbayes_sgld.check_model: {"estimator": weighted, **rows, "remedies": False},
        compare_models: {"model": weighted, **rows},
        metrics.loo: {"estimator": weighted, **rows, "n_rows": 2},
        **{
            getattr(skbayes_sgld, name): {"estimator": fitted(cls), **few}
            for name, cls in wrapped.items()
        },
    }


def functions():
    """Functions with good values of their required arguments, and of some others."""
    own = _own()
    found = [own_models.as_posterior, own_models.check_gradient, compare_models, metrics.loo]
    for module in (skbayes_sgld, metrics, datasets, diagnostics):
        found += [getattr(module, n) for n in module.__all__ if n not in _NOT_CALLED]
    found.remove(skbayes_sgld.compare_models)
    for function in filter(inspect.isfunction, found):
        taken = inspect.signature(function).parameters.values()
        taken = [p for p in taken if p.kind is not p.VAR_KEYWORD]
        weight = {"sample_weight": WEIGHT} if function in _WEIGHTED else {}
        known = _BY_NAME | weight | own.get(function, {})
        good = {p.name: p.default for p in taken if p.default not in (p.empty, None)}
        good |= {p.name: known[p.name] for p in taken if p.name in known}
        good.pop("argument", None)  # a name for errors
        missing = [p.name for p in taken if p.default is p.empty and p.name not in good]
        assert not missing, f"{function.__name__}: give a good value of {missing}"
        module = function.__module__.split(".")[1].lstrip("_")
        also = [name for name in good if name in ARRAYS]  # of which one is too short
        also += ["estimator", "posterior"] if "model" in good else []
        yield Call(f"{module}.{function.__name__}", function, good, kinds_of(good), tuple(also))


def _free():
    """What takes settings and arrays by any of its names."""
    run = [name for name in Settings.__dataclass_fields__ if name not in _ELSEWHERE]
    names = set(run) | {"posterior", "check_gradient"}
    yield Call("sample", _sample, {}, settings(sorted(names)), tuple(names))
    names = list(inspect.signature(optimizers.find_mode).parameters)
    yield Call("find_mode", _mode, {}, kinds_of(names), tuple(names))
    names = [*inspect.signature(variational.BayesByBackprop).parameters, "start", "scale"]
    yield Call("BayesByBackprop", _approximate, {}, kinds_of(names), tuple(names))
    yield Call("Kernel.run", _run_kernel, {}, settings(["n_draws", "n_burnin", "thin"]))
    names = ["model", "transforms", "start"]
    yield Call("CustomPosterior", _custom, {}, kinds_of(names))


# good arguments of displays by their names
_SHOWN = {
    "X": X,
    "parameters": ["coef[x0]"],
    "coverage": 0.9,
    "max_lag": 5,
    "band_coverage": 0.9,
    "column": 0,
    "kind": "at_mean",
    "grid_resolution": 3,
    "n_bins": 3,
    "n_groups": 2,
    "strategy": "uniform",
}
_OPTIONS = {  # handed to the constructor
    "ReliabilityDisplay": ("n_bins", "strategy", "coverage"),
    "ForestDisplay": ("coverage",),
    "DensityDisplay": ("coverage",),
    "AutocorrelationDisplay": ("max_lag",),
}
_OF_GROUPS = ("GroupEffectsDisplay", "ShrinkageDisplay")  # of a model with labels in X
_OF_LABELS = ("ReliabilityDisplay", "ProbabilityContourDisplay")


def _displays():
    for name in plotting.__all__:
        display = getattr(plotting, name)
        if not hasattr(display, "from_estimator") or name in _OF_GROUPS:
            continue
        cls = LOGISTIC if name in _OF_LABELS else LINEAR
        taken = {*inspect.signature(display.from_estimator).parameters, *_OPTIONS.get(name, ())}
        good = {p: value for p, value in (_SHOWN | {"y": target(cls)}).items() if p in taken}
        good["estimator"] = fitted(cls)
        if name == "PredictiveIntervalDisplay":
            good["kind"] = "mean"  # of an interval; the other is of an effect
        yield Call(f"{name}.from_estimator", partial(_show, display), good, kinds_of(sorted(good)))


def _show(display, **given):
    import matplotlib.pyplot as plt

    try:
        display.from_estimator(**given)
    finally:
        plt.close("all")


@cache
def surface():
    """All calls."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    calls = [call for cls in ESTIMATORS for call in _calls_of(cls)]
    return [*calls, *_components(), *functions(), *_free(), *_displays()]
