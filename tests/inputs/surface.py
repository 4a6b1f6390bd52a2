"""Everything public, with good arguments: what the generated cases change one argument of.

``surface()`` is a list of ``Call``; ``UNTRIED`` names what is public and not called, and why.
"""

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

import skbayes_sgld
from skbayes_sgld import datasets, diagnostics, metrics, plotting, posterior, sampling, variational
from skbayes_sgld.inference.settings import Settings

N, D = 20, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X @ [1.0, -2.0] + 0.5 + RNG.standard_normal(N)
LABELS = (Y + RNG.standard_normal(N) > 0).astype(float)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.5)).astype(float)
WEIGHT = RNG.uniform(0.5, 2.0, N)

FEW = {
    "SGDMAP": {"max_iter": 10},
    "SGLDMLP": {"hidden_layer_sizes": (2,), "n_draws": 10, "n_burnin": 10, "thin": 1},
    "BayesByBackprop": {"hidden_layer_sizes": (2,), "max_iter": 10, "n_draws": 20},
    "SGLD": {"n_draws": 20, "n_chains": 2},
}


class SGLDBetaBinomialRegressor(skbayes_sgld.SGLDBetaBinomialRegressor):
    """Totals of 100 trials where none are given: the other families are given X and y alone."""

    def _target_of_fit(self, X, y, weight, n_trials=None):
        return super()._target_of_fit(X, y, weight, 100 if n_trials is None else n_trials)

    def _row_values(self, X, row_data):
        return super()._row_values(X, row_data if row_data.get("n_trials") is not None else TRIALS)


TRIALS = {"n_trials": 100}
OF_TRIALS = {"SGLDBetaBinomialRegressor": SGLDBetaBinomialRegressor}
ESTIMATORS = [
    OF_TRIALS.get(name, getattr(skbayes_sgld, name))
    for name in skbayes_sgld.__all__
    if hasattr(getattr(skbayes_sgld, name), "fit")
]
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
    shared: Mapping[str, Any] = field(default_factory=dict)


def make(cls, **params):
    """An estimator of a few draws."""
    few = next(values for start, values in FEW.items() if cls.__name__.startswith(start))
    return cls(**{"random_state": 0, **few, **params})


def is_positive(cls):
    """Whether y must not be negative: counts are what all such families take."""
    return cls().__sklearn_tags__().target_tags.positive_only


def of_support(cls, numbers):
    """Numbers, or counts where the family takes no others; 1 and more for a Gamma model."""
    counts = np.rint(np.minimum(np.abs(numbers), 50.0))
    return counts + (cls is skbayes_sgld.SGLDGammaRegressor) if is_positive(cls) else numbers


def target(cls):
    """Good y."""
    if is_classifier(cls()):
        return LABELS
    return of_support(cls, COUNTS if is_positive(cls) else Y)


@cache
def fitted(cls):
    """A fitted estimator, which no call may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(cls).fit(X, target(cls))


# ---- estimators -----------------------------------------------------------------------------


def _fit(cls):
    good = {"X": X, "y": target(cls), "sample_weight": WEIGHT}
    good |= {
        name: of for name, of in BY_ROW.items() if name in inspect.signature(cls.fit).parameters
    }
    if is_classifier(cls()):
        good.pop("n_trials", None)  # these are labels
    also = (
        "noise_prior",
        "intercept_prior",
        "noise_variance",
        "columns",
        "sample_weight",
        "y",
        "X",
    )
    return Call(
        f"{cls.__name__}.fit",
        lambda model, **data: model.fit(**data),
        good,
        dict.fromkeys(good, "array"),
        also,
        lambda: make(cls),
    )


def _settings_of(cls):
    names = [name for name in cls().get_params(deep=False) if name not in _ELSEWHERE]
    return Call(
        cls.__name__,
        lambda **params: make(cls, **params).fit(X, target(cls)),
        {},
        dict.fromkeys(names, "setting"),
        tuple(cls().get_params(deep=False)),
    )


BY_ROW = {"exposure": WEIGHT, "n_trials": np.full(N, 30)}
_GOOD = {
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


def _methods_of(cls):
    for name in dir(cls):
        method = inspect.unwrap(getattr(cls, name))
        if name.startswith(("_", "set_")) or name in _NO_METHODS or not callable(method):
            continue
        taken = [p for p in inspect.signature(method).parameters if p != "self"]
        good = {p: _GOOD[p] for p in taken if p in _GOOD}
        if "y" in taken and (name != "sample_prior" or target(cls) is Y):
            good["y"] = target(cls)[:4]
        if name == "predict_quantiles" and is_classifier(cls()):
            good.pop("kind", None)
        if is_classifier(cls()):
            good.pop("n_trials", None)
        if name == "partial_fit":
            good |= {"X": X, "y": target(cls), "sample_weight": WEIGHT}
            good |= {name: of for name, of in BY_ROW.items() if name in good}
        kinds = {
            p: "array" if p in ("X", "y", "sample_weight", *BY_ROW) else "setting" for p in good
        }
        yield Call(
            f"{cls.__name__}.{name}",
            lambda model, name=name, **given: getattr(model, name)(**given),
            good,
            kinds,
            ("X", "y", "noise_prior", "noise_variance", *(["*"] * (name == "score"))),
            partial(_subject, cls, name),
        )


def _subject(cls, method):
    """The estimator whose method is called."""
    if method == "sample_prior":
        proper = {name: prior for name, prior in _PROPER.items() if name in cls().get_params()}
        return make(cls, **proper)
    return clone(fitted(cls)) if method == "partial_fit" else fitted(cls)


# ---- components ------------------------------------------------------------------------------

_HOLDERS = {
    "sampler": (skbayes_sgld.SGLDLinearRegression, sampling.SAMPLERS),
    "gradient": (skbayes_sgld.SGLDLogisticRegression, sampling.GRADIENTS),
    "preconditioner": (skbayes_sgld.SGLDLogisticRegression, sampling.PRECONDITIONERS),
    "clip": (skbayes_sgld.SGLDLogisticRegression, sampling.CLIPS),
    "schedule": (skbayes_sgld.SGLDLinearRegression, sampling.SCHEDULES),
    "temperature": (skbayes_sgld.SGLDLogisticRegression, sampling.SCHEDULES),
    "prior": (skbayes_sgld.SGLDLinearRegression, posterior.PRIORS),
    "prior ": (skbayes_sgld.SGLDLinearRegression, posterior.HIERARCHICAL_PRIORS),
    "intercept_prior": (skbayes_sgld.SGDMAPRegressor, posterior.PRIORS),
    "noise_prior": (skbayes_sgld.SGLDLinearRegression, posterior.NOISE_PRIORS),
    "noise_model": (skbayes_sgld.SGLDLinearRegression, posterior.NOISE_MODELS),
    "optimizer": (skbayes_sgld.SGDMAPRegressor, sampling.OPTIMIZERS),
    "projection": (skbayes_sgld.SGDMAPRegressor, sampling.PROJECTIONS),
}


def _components():
    for head, (cls, registry) in _HOLDERS.items():
        head = head.strip()
        for part in registry.values():
            kinds = dict.fromkeys(part().get_params(deep=False), "setting")
            if head == "temperature":
                kinds.pop("power", None)  # with a small one it settles after millions of steps
            if kinds:
                yield Call(
                    f"{cls.__name__}({head}={part.__name__})",
                    lambda cls=cls, head=head, part=part, **given: make(
                        cls, **{head: part(**given)}
                    ).fit(X, target(cls)),
                    {},
                    kinds,
                    (head, f"{head}.", "step_size", "batch_size"),
                )
    for part in posterior.likelihoods.LIKELIHOODS.values():
        kinds = dict.fromkeys(part().get_params(deep=False), "setting")
        if kinds:
            yield Call(
                f"LIKELIHOODS.{part.__name__}",
                lambda part=part, **given: part(**given).check(),
                {},
                kinds,
                ("noise_variance",),
            )
    for name, family in variational.FAMILIES.items():
        kinds = dict.fromkeys(family().get_params(deep=False), "setting")
        if kinds:
            yield Call(
                f"BayesByBackprop(family={name})",
                lambda family=family, **given: _approximate(family=family(**given)),
                {},
                kinds,
            )


# ---- functions -------------------------------------------------------------------------------

NORMAL = posterior.FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
DRAWS = RNG.standard_normal((2, 20, 3))
PROBA = RNG.uniform(0.1, 0.9, N)
INTERVAL = np.column_stack([Y - 1.0, Y + 1.0])


def _approximate(**params):
    params = {"max_iter": 10, "random_state": 0, **params}
    start = params.pop("start", np.zeros(2))
    scale = params.pop("scale", 1.0)
    return variational.BayesByBackprop(**params).fit(NORMAL, start, scale)


def _mode(**given):
    return sampling.find_mode(**{"posterior": ROWS, "max_iter": 10, **given}).theta


ROWS = posterior.GLMPosterior(X, LABELS, posterior.Bernoulli(), posterior.Normal(2.5))
# good values of arguments by their names, and of a function's own
_BY_NAME = {
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
    "model": NORMAL,
    "posterior": NORMAL,
    "theta": np.zeros(2),
}
_OWN = {
    metrics.crps: {"draw_weights": np.array([1.0, 2.0, 3.0])},
    metrics.brier_score: {"y_true": LABELS},
    metrics.calibration_error: {"y_true": LABELS},
    metrics.get_scorer: {"name": "neg_crps"},
    diagnostics.effective_sample_size: {"kind": "bulk"},
}
_NOT_CALLED = {"get_scorer_names", "load_sp500_returns", "loo"}
_ARRAYS = {"y_true", "y_draws", "y_quantiles", "y_proba", "interval", "log_likelihood", "draws"}
_ARRAYS |= {"sample_weight", "draw_weights", "labels", "theta", "start", "scale", "X", "coef"}
_WEIGHTED = [metrics.crps, metrics.interval_score, metrics.pinball_loss, metrics.brier_score]
_WEIGHTED += [metrics.calibration_error, metrics.interval_coverage, metrics.interval_width]


def _plain_functions():
    """Functions of arrays and numbers, with good values of their required arguments and more."""
    found = [posterior.as_posterior, posterior.check_gradient]
    for module in (metrics, datasets, diagnostics):
        found += [getattr(module, n) for n in module.__all__ if n not in _NOT_CALLED]
    for function in filter(inspect.isfunction, found):
        taken = inspect.signature(function).parameters.values()
        good = {p.name: p.default for p in taken if p.default not in (p.empty, None)}
        good.pop("argument", None)  # a name for errors
        good |= {p.name: _BY_NAME[p.name] for p in taken if p.name in _BY_NAME}
        weight = {"sample_weight": WEIGHT} if function in _WEIGHTED else {}
        yield _function(function, good | weight | _OWN.get(function, {}))


def _function(function, good, **more):
    kinds = {name: "array" if name in _ARRAYS else "setting" for name in good}
    module = function.__module__.split(".")[1].lstrip("_")
    return Call(f"{module}.{function.__name__}", function, good, kinds, **more)


def _functions():
    yield from _plain_functions()
    few = {"n_draws": 20, "n_chains": 2, "random_state": 0, "check_gradient": False}
    names = [name for name in Settings.__dataclass_fields__ if name not in _ELSEWHERE]
    kinds = dict.fromkeys([*names, "posterior", "check_gradient"], "setting")
    kinds.pop("warm_start")
    yield Call(
        "sample",
        lambda **given: skbayes_sgld.sample(**{"posterior": ROWS, **few, **given}),
        {},
        kinds,
        tuple(kinds),
    )
    names = list(inspect.signature(sampling.find_mode).parameters)
    yield Call("find_mode", _mode, {}, _kinds(names), tuple(names))
    names = [*inspect.signature(variational.BayesByBackprop).parameters, "start", "scale"]
    yield Call("BayesByBackprop", _approximate, {}, _kinds(names), tuple(names))
    yield Call(
        "CustomPosterior",
        lambda **given: posterior.CustomPosterior(**{"model": NORMAL, **given}).n_params,
        {},
        _kinds(["model", "transforms", "start"]),
    )
    for wrapper in ("predict_interval", "predict_quantiles", "sample_y", "predict_proba_interval"):
        cls = skbayes_sgld.SGLDLinearRegression
        if "proba" in wrapper:
            cls = skbayes_sgld.SGLDLogisticRegression
        function = getattr(skbayes_sgld, wrapper)
        taken = inspect.signature(function).parameters
        good = {name: _GOOD[name] for name in taken if name in _GOOD}
        yield _function(function, {"estimator": None} | good, shared={"estimator": cls})

    good = {"estimator": None, "X": X[:4], "columns": [0], "kind": "at_mean", "coverage": 0.9}
    good |= {"step": 1.0, "exposure": WEIGHT[:4]}
    shared = {"estimator": skbayes_sgld.SGLDPoissonRegressor}
    yield _function(skbayes_sgld.effects, good, shared=shared)
    good = {"estimator": None, "X": X, "y": Y, "n_rows": 2, "sample_weight": WEIGHT}
    shared = {"estimator": skbayes_sgld.SGLDLinearRegression}
    yield _function(metrics.loo, good | {"random_state": 0}, shared=shared)
    good = {"model": None, "X": X, "y": Y, "sample_weight": WEIGHT, "remedies": False}
    shared = {"model": skbayes_sgld.SGLDLinearRegression}
    yield _function(skbayes_sgld.check_model, good | {"random_state": 0}, shared=shared)

    def compare_models(model, **rest):
        return skbayes_sgld.compare_models({"model": model}, **rest)

    good = {"model": None, "X": X, "y": Y, "sample_weight": WEIGHT, "n_rows": 5}
    yield _function(compare_models, good | {"random_state": 0}, shared=shared)


def _kinds(names):
    return {name: "array" if name in _ARRAYS else "setting" for name in names}


def _displays():
    linear, logistic = skbayes_sgld.SGLDLinearRegression, skbayes_sgld.SGLDLogisticRegression
    rows = {"X": X, "y": Y}
    given = {
        plotting.TraceDisplay: (linear, {"parameters": ["coef[x0]"]}),
        plotting.RankDisplay: (linear, {"parameters": ["coef[x0]"]}),
        plotting.ForestDisplay: (linear, {"parameters": ["coef[x0]"], "coverage": 0.9}),
        plotting.DensityDisplay: (linear, {"parameters": ["coef[x0]"], "coverage": 0.9}),
        plotting.AutocorrelationDisplay: (linear, {"parameters": ["coef[x0]"], "max_lag": 5}),
        plotting.CoverageDisplay: (linear, rows | {"coverage": [0.5, 0.9], "band": 0.9}),
        plotting.PredictiveIntervalDisplay: (linear, {"X": X[:, :1], "coverage": 0.9}),
        plotting.PartialDependenceDisplay: (
            linear,
            {"X": X, "column": 0, "kind": "at_mean", "coverage": 0.9, "grid_resolution": 3},
        ),
        plotting.ModelCheckDisplay: (linear, rows | {"n_bins": 3, "n_groups": 2, "band": 0.9}),
        plotting.ReliabilityDisplay: (
            logistic,
            {"X": X, "y": LABELS, "n_bins": 3, "strategy": "uniform", "coverage": 0.9},
        ),
        plotting.ProbabilityContourDisplay: (
            logistic,
            {"X": X, "y": LABELS, "coverage": 0.9, "grid_resolution": 3},
        ),
    }
    for display, (cls, good) in given.items():
        if display is plotting.PredictiveIntervalDisplay:
            good = {"X": X, "y": Y, "coverage": 0.9}
        yield Call(
            f"{display.__name__}.from_estimator",
            lambda display=display, **given: _shown(display, **given),
            {"estimator": None} | good,
            {name: "array" if name in ("X", "y") else "setting" for name in ["estimator", *good]},
            shared={"estimator": cls},
        )


def _shown(display, **given):
    import matplotlib.pyplot as plt

    try:
        display.from_estimator(**given)
    finally:
        plt.close("all")


@cache
def surface():
    """All calls."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    calls = []
    for cls in ESTIMATORS:
        calls += [_fit(cls), _settings_of(cls), *_methods_of(cls)]
    return [*calls, *_components(), *_functions(), *_displays()]
