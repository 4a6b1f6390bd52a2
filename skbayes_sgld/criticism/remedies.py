"""Remedies of a misfit: estimators to use instead, each fitted and scored by leave-one-out.

``REMEDIES`` is the table: the family and the misfits that each remedy is for, and what it changes.
To add a remedy, add a row. Combinations are found by applying the table again to the best remedies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from skbayes_sgld._checks import printable
from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.checks import Check, draws_to_check, find_checks
from skbayes_sgld.criticism.groups import Groups, with_labels
from skbayes_sgld.criticism.interactions import connected
from skbayes_sgld.criticism.leave_one_out import FittedRows, rows_of_fit
from skbayes_sgld.criticism.settings import can_set, takes_effects, variance_is_given
from skbayes_sgld.criticism.weights import weight_checks
from skbayes_sgld.prediction.tables import Table
from skbayes_sgld.prediction.wrappers import column_names, layers, parameter_namer, unwrap, wrapped

Data = tuple[Any, Any, dict[str, Any]]  # X, y and arguments by row

SMALL = 4.0  # difference of log densities too small to prefer a model
_DRAWS = 400  # draws of a chain of a trial: checks use a thousand of all chains
_BASES = 2  # best trials of a round that get another remedy
_ROUNDS = 3  # most remedies of a combination
MOST_ROWS = 5_000  # most rows to fit a remedy to: gains err by d / 10,000 per left-out row


@dataclass(frozen=True)
class Misfit:
    """A fitted estimator and its misfits.

    Attributes
    ----------
    estimator : estimator
        Estimator that the user fitted.
    fit : FittedRows
    checks : list of Check
        Checks that found a misfit.
    names : list of str
        Names of the model's columns.
    groups : sequence of Groups
        Groups of all rows, which checks refer to.
    X : array-like
        Rows as the outermost wrapper takes them.
    """

    estimator: Any
    fit: FittedRows
    checks: list[Check]
    names: list[str] = field(default_factory=list)
    groups: Sequence[Groups] = ()
    X: Any = None

    @property
    def kinds(self) -> set[str]:
        """Kinds of the misfits."""
        return {check.kind for check in self.checks}

    @property
    def curved(self) -> list[int]:
        """Columns along which residuals are curved, the three strongest first."""
        columns = [check.column for check in self.checks if check.kind == "curvature"]
        return list(dict.fromkeys(columns))[:3]

    @property
    def crossed(self) -> list[tuple[int, ...]]:
        """Columns that pairs connect whose products residuals hold, of the three strongest."""
        pairs = [check.columns for check in self.checks if check.kind == "interaction"]
        return connected(list(dict.fromkeys(pairs))[:3])

    def effects_of(self, slopes: bool) -> tuple[Groups, list[int]] | None:
        """Groups to give effects, and columns whose slopes vary; None if no check asks for them."""
        found = [check for check in self.checks if check.kind == "groups"]
        found = [check for check in found if bool(check.columns) is slopes]
        if not found:
            return None
        return self.groups[found[0].group], list(found[0].columns)


def with_model(estimator: Any, change: Callable[[Any], Any]) -> Any:
    """Unfitted copy of an estimator with ``change(model)`` as innermost model.

    A search is replaced by the best estimator that it found. None if the change gives None.
    """
    inner = wrapped(estimator)
    if inner is None:
        return change(clone(estimator))
    changed = with_model(inner.estimator, change)
    if inner.parameter is None or changed is None:
        return changed
    new = clone(estimator).set_params(**{inner.parameter: changed})
    if inner.is_step and hasattr(changed, "steps"):  # merge nested pipelines into one
        *before, (last, _) = new.steps
        *terms, (_, model) = changed.steps
        names = {name for name, _ in new.steps}
        terms = [(_free(name, names), step) for name, step in terms]
        new.steps = [*before, *terms, (last, model)]
    return new


def _free(name: str, names: set[str]) -> str:
    """The name, with a number if a step has it already."""
    others = (f"{name}-{number}" for number in range(2, len(names) + 3))
    return name if name not in names else next(each for each in others if each not in names)


def fit_like(estimator: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Fit the estimator with arguments of its innermost model, such as ``exposure``."""
    names = names_in_fit(estimator, params)
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{names[name]: value for name, value in params.items()})


def names_in_fit(estimator: Any, params: Iterable[str]) -> dict[str, str]:
    """Names that the innermost model's arguments have in ``fit`` of the outermost estimator."""
    prefix = "".join(f"{layer.parameter}__" for _, layer in layers(estimator) if layer.is_step)
    return {name: prefix + name for name in params}


# ---- the table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remedy:
    """A row of the table; :func:`build` applies it.

    Attributes
    ----------
    name : str
    parts : set of str
        Parts of the estimator that it changes; a combination changes no part twice.
    family : str
        "numbers", "counts", "totals" or "labels"; or "" for all.
    kinds : set of str
        Kinds of misfit that it is for.
    model : str
        Class of the package to use instead, with the settings that both share; "" for the same
        class.
    settings : dict
        Settings of the model.
    positive : bool
        Whether it needs a positive target.
    target : tuple of two functions, or None
        Transformation of a positive target, and its inverse.
    sizes : bool
        Whether the weights of the fit become the sizes of averages, ``n_averaged``.
    terms : callable or None
        Makes a transformer for each column along which residuals are curved, or for columns whose
        products residuals hold.
    products : bool
        Whether the terms are for products.
    curves : bool
        Whether columns along which residuals are curved get curves whose bend is learned.
    groups : bool
        Whether groups have effects of their own.
    slopes : bool
        Whether these are slopes, too.
    """

    name: str
    parts: set[str]
    family: str
    kinds: set[str]
    model: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    positive: bool = False
    target: tuple[Callable[[Array], Array], Callable[[Array], Array]] | None = None
    sizes: bool = False
    terms: Callable[[], Any] | None = None
    products: bool = False
    curves: bool = False
    groups: bool = False
    slopes: bool = False

    @property
    def learns_scales(self) -> bool:
        """Whether scales of effects are learned: such a fit may take ten times as long."""
        return self.curves or self.groups

    def columns(self, misfit: Misfit) -> list[tuple[int, ...]]:
        """Sets of columns that a transformer each, or a curve each, is made for."""
        if self.terms is None and not self.curves:
            return []
        return misfit.crossed if self.products else [(j,) for j in misfit.curved]

    def listed(self, misfit: Misfit) -> str:
        """Columns of which it adds functions, or effects of groups."""
        names = misfit.names
        if self.groups:
            effects = misfit.effects_of(self.slopes)
            assert effects is not None
            group, slopes = effects
            return f"{group.name}: {', '.join(['intercept', *(names[j] for j in slopes)])}"
        return ", ".join(" x ".join(names[j] for j in some) for some in self.columns(misfit))


def positive_square(values: Array) -> Array:
    """Squares; 0 for numbers below 0, so that the inverse of the square root increases."""
    return np.square(np.maximum(values, 0.0))


def _squares() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    return make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))


def _products() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    products = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    return make_pipeline(StandardScaler(), products)


def _splines() -> Any:
    from sklearn.preprocessing import SplineTransformer

    return SplineTransformer(n_knots=5, knots="quantile", include_bias=False)


_UNEQUAL = {"coverage", "noise", "skew", "tails"}
_SKEWED, _WEIGHTED = _UNEQUAL | {"curvature", "interaction"}, _UNEQUAL | {"weights"}
_CROSSED, _GROUPED = {"interaction"}, {"groups"}
_MISJUDGED = {"coverage", "calibration", "tails"}
_SPREAD = {"coverage", "noise", "skew", "tails", "dispersion", "zeros"}
_LOG, _ROOT = (np.log, np.exp), (np.sqrt, positive_square)
_LINEAR, _GAMMA = "SGLDLinearRegression", "SGLDGammaRegressor"
_NEGATIVE, _BETA = "SGLDNegativeBinomialRegressor", "SGLDBetaBinomialRegressor"


def _set(part: str, family: str, kinds: set[str], **settings: Any) -> Remedy:
    """Remedy that changes one setting."""
    ((name, value),) = settings.items()
    return Remedy(f"{name}={value!r}", {part}, family, kinds, settings=settings)


REMEDIES = (
    Remedy("n_averaged=sample_weight", {"weights"}, "numbers", _WEIGHTED, sizes=True),
    _set("variance", "numbers", _UNEQUAL, noise_variance="infer"),
    _set("noise", "numbers", _UNEQUAL, noise_model="log_linear"),
    _set("tails", "numbers", _UNEQUAL, noise_distribution="student_t"),
    Remedy("square root of the target", {"target"}, "numbers", _SKEWED, target=_ROOT),
    Remedy("log of the target", {"target"}, "numbers", _SKEWED, target=_LOG),
    Remedy(f"{_LINEAR}, log of the target", {"target"}, "numbers", _SKEWED, _LINEAR, target=_LOG),
    Remedy(_GAMMA, {"target", "noise", "tails"}, "numbers", _SKEWED, _GAMMA, positive=True),
    Remedy(_NEGATIVE, {"target"}, "counts", _SPREAD, _NEGATIVE),
    Remedy(_BETA, {"target"}, "totals", _SPREAD, _BETA),
    _set("weights", "labels", {"calibration"}, class_weight=None),
    _set("prior", "", _MISJUDGED, prior="normal"),
    _set("prior", "", _MISJUDGED, prior="hierarchical_normal"),
    Remedy("squares of columns", {"columns"}, "", {"curvature"}, terms=_squares),
    Remedy("curves of columns", {"columns"}, "", {"curvature"}, curves=True),
    # for a model that takes no curves
    Remedy("splines of columns", {"columns"}, "", {"curvature"}, terms=_splines),
    Remedy("effects of groups", {"groups"}, "", _GROUPED, groups=True),
    Remedy("slopes of groups", {"groups"}, "", _GROUPED, groups=True, slopes=True),
    Remedy("products of columns", {"products"}, "", _CROSSED, terms=_products, products=True),
)


def build(remedy: Remedy, misfit: Misfit) -> Any:
    """Unfitted estimator with the remedy; None if it does not apply."""
    from sklearn.compose import TransformedTargetRegressor

    unwrapped, (X, y, *_) = misfit.fit.unwrapped, misfit.fit.data
    if (remedy.positive or remedy.target) and (unwrapped.transformers or not y.min() > 0.0):
        return None
    if remedy.parts & {"noise", "tails"} and X.shape[0] <= X.shape[1]:
        return None  # a mean that fits every row has no mode, which takes 300 Newton steps to see
    of_noise = remedy.parts & {"noise", "tails"} and not remedy.model
    if variance_is_given(unwrapped.model) and (of_noise or remedy.target):
        return None  # the variance is given, or would need other units
    if remedy.sizes and "weights" not in misfit.kinds:
        return None
    if remedy.settings and not any(
        can_set(unwrapped.model, *one) for one in remedy.settings.items()
    ):
        return None
    learned = _learned_effects(unwrapped.model)
    of_terms = {j for some in remedy.columns(misfit) for j in some}
    if remedy.terms and not remedy.products and of_terms & _curved(unwrapped.model, misfit.names):
        return None  # a curve bends enough
    if remedy.terms and (not remedy.columns(misfit) or sparse.issparse(unwrapped.X)):
        return None
    if remedy.terms is _splines and takes_effects(unwrapped.model):
        return None
    if remedy.curves:
        return _with_curves(remedy, misfit)
    if remedy.groups:
        return _with_groups(remedy, misfit)
    if learned and "hierarchical" in repr(remedy.settings):
        return None  # a model has either these or learned effects
    if "prior" in remedy.settings:
        # a prior matters if rows are few, or for probabilities near 0
        few = X.shape[0] < 20 * X.shape[1]
        if not (few or "calibration" in misfit.kinds):
            return None

    def change(model: Any) -> Any:
        params = model.get_params(deep=False)
        if remedy.sizes:  # t-distributed noise takes no sizes
            normal = {"noise_distribution": "normal"}
            return model.set_params(**{k: v for k, v in normal.items() if k in params})
        if remedy.model:
            return _sibling(model, remedy)
        if remedy.target == _LOG and "noise_distribution" not in params:
            return None  # the model takes only numbers above 0
        if remedy.terms:
            return _with_terms(model, remedy.terms, unwrapped.X, remedy.columns(misfit))
        return model.set_params(**remedy.settings)

    changed = with_model(misfit.estimator, change)
    if changed is None or remedy.target is None:
        return changed
    func, inverse_func = remedy.target
    return TransformedTargetRegressor(changed, func=func, inverse_func=inverse_func)


def _learned_effects(model: Any) -> set[str]:
    """Settings of learned effects that the model has: of groups and of curves."""
    given = model.get_params(deep=False)
    return {name for name in ("group_effects", "smooth_effects") if given.get(name)}


def _curved(model: Any, names: list[str]) -> set[int]:
    """Positions of the columns with curves."""
    keys = model.get_params(deep=False).get("smooth_effects") or {}
    known = [key for key in keys if not isinstance(key, str) or key in names]
    return {names.index(k) if isinstance(k, str) else int(k) % len(names) for k in known}


def _sibling(model: Any, remedy: Remedy) -> Any:
    """Model of the remedy's class with the shared settings; None if it has that class already.

    A prior is kept only if the linear predictor keeps its meaning: from counts to counts.
    """
    if type(model).__name__ == remedy.model:
        return None
    # imported by name, since this layer is below the estimators
    new = getattr(import_module("skbayes_sgld"), remedy.model)()
    default, options = type(model)().get_params(deep=False), new.get_params(deep=False)
    for setting, value in model.get_params(deep=False).items():
        stays = setting in options and value is not default[setting]
        if stays and not (setting == "prior" and remedy.family == "numbers"):
            new.set_params(**{setting: value})
    return new


def _beside_steps(
    estimator: Any, group: Groups, X: Any, names: list[str], slopes: list[Any]
) -> Any:
    """Unfitted copy whose first steps see all columns of X, and leave the labels to the model.

    ``names`` are those of the columns that the model has so far, which the labels then follow.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    inner = wrapped(estimator)
    assert inner is not None
    if not inner.is_step or len(estimator.steps) == 1:
        changed = _beside_steps(inner.estimator, group, X, names, slopes)
        if inner.parameter is None:
            return changed
        return clone(estimator).set_params(**{inner.parameter: changed})
    table = Table.of(X)
    frame = not isinstance(table.X, np.ndarray) and not sparse.issparse(table.X)
    d = len(table.names)
    columns: Any = [str(name) for name in table.names] if frame else list(range(d))
    at: Any = group.name if frame else (d if group.column < 0 else group.column)
    key: Any = group.name if frame else len(names)
    effects = {key: ["intercept", *slopes] if slopes else "intercept"}
    new = with_model(estimator, lambda model: _with_effects(model, effects))
    *steps, last = new.steps
    beside = ColumnTransformer(
        [("columns", Pipeline(steps), columns), ("groups", "passthrough", [at])],
        verbose_feature_names_out=False,
    )
    if frame:
        kind = "polars" if type(table.X).__module__.startswith("polars") else "pandas"
        beside.set_output(transform=kind)
    new.steps = [("columntransformer", beside), last]
    return new


def _with_effects(model: Any, effects: dict[Any, Any]) -> Any:
    """The model with further effects of groups."""
    given = model.get_params(deep=False)["group_effects"] or {}
    return model.set_params(group_effects={**given, **effects})


def _with_groups(remedy: Remedy, misfit: Misfit) -> Any:
    """Estimator in which groups have effects of their own; None if it takes none."""
    model, effects = misfit.fit.unwrapped.model, misfit.effects_of(remedy.slopes)
    if effects is None or not takes_effects(model):
        return None
    group, slopes = effects
    seen, named = misfit.fit.unwrapped.X, hasattr(model, "feature_names_in_")
    keys = [misfit.names[j] if named else j for j in slopes]
    has_steps = any(layer.is_step for _, layer in layers(misfit.estimator))
    if has_steps and group.name not in misfit.names:
        return _beside_steps(misfit.estimator, group, misfit.X, misfit.names, keys)
    key: Any = group.name
    if not hasattr(seen, "columns") and not hasattr(seen, "column_names"):
        key = len(misfit.names) if group.column < 0 else group.column
    if key in (model.get_params(deep=False)["group_effects"] or {}) and not slopes:
        return None
    effects_of = {key: ["intercept", *keys] if keys else "intercept"}
    return with_model(misfit.estimator, lambda model: _with_effects(model, effects_of))


def _with_curves(remedy: Remedy, misfit: Misfit) -> Any:
    """Estimator with curves of the curved columns; None if it has them, or takes none."""
    model, X = misfit.fit.unwrapped.model, misfit.fit.unwrapped.X
    if not takes_effects(model) or sparse.issparse(X):
        return None
    named, given = hasattr(model, "feature_names_in_"), model.smooth_effects or {}
    keys = [misfit.names[j] if named else j for (j,) in remedy.columns(misfit)]
    curves = {key: 10 for key in keys if key not in given}
    if not curves:
        return None
    return with_model(
        misfit.estimator, lambda model: model.set_params(smooth_effects={**given, **curves})
    )


def _with_terms(model: Any, make: Callable[[], Any], X: Any, columns: list[tuple[int, ...]]) -> Any:
    """Pipeline that adds functions of each set of columns, then the model."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    frame = hasattr(X, "columns")
    terms = [
        ("curve" + "-".join(map(str, some)), make(), [X.columns[j] if frame else j for j in some])
        for some in columns
    ]
    added = ColumnTransformer(terms, remainder="passthrough", verbose_feature_names_out=False)
    if frame:
        added.set_output(transform="pandas")
    if _learned_effects(model):
        places = clone(added).fit(X).output_indices_
        moved = {
            j: places[name].start + k
            for (name, *_), some in zip(terms, columns, strict=True)
            for k, j in enumerate(some)
        }  # a column is the first of its functions
        rest = [j for j in range(X.shape[1]) if j not in moved]
        moved |= {j: places["remainder"].start + k for k, j in enumerate(rest)}
        model = model.set_params(**_at_places(model, moved))
    return make_pipeline(added, model)


def _at_places(model: Any, moved: dict[int, int]) -> dict[str, Any]:
    """Effects of groups and curves of a model whose columns have moved; names stay."""
    given = model.get_params(deep=False)

    def place(key: Any) -> Any:
        if isinstance(key, (tuple, list)):
            return type(key)(place(each) for each in key)
        return key if isinstance(key, str) else moved[int(key) % len(moved)]

    groups, curves = given["group_effects"], given["smooth_effects"]
    return {
        "group_effects": groups and {place(key): place(value) for key, value in groups.items()},
        "smooth_effects": curves and {place(key): value for key, value in curves.items()},
    }


# ---- trials -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A fitted remedy, or combination of remedies.

    Attributes
    ----------
    remedies : tuple of Remedy
        Remedies in the order in which they were found.
    estimator : estimator
        Unfitted estimator.
    each : ndarray of shape (m,)
        Leave-one-out log density of each checked row, minus that of the user's model.
    wrong : int
        Number of checks that find a misfit.
    checks : list of Check
    failed : str
        Reason why it cannot be used, or "".
    added : tuple of str
        Columns whose squares, splines or products each remedy adds, or effects; "" if none.
    below_zero : float
        Share of the rows whose 90 % interval goes below 0 although all y are positive.
    group : Groups or None
        Groups that have effects.
    """

    remedies: tuple[Remedy, ...] = ()
    estimator: Any = None
    each: Array = field(default_factory=lambda: np.zeros(2))
    wrong: int = 0
    checks: list[Check] = field(default_factory=list)
    failed: str = ""
    added: tuple[str, ...] = ()
    below_zero: float = 0.0
    group: Groups | None = None

    @property
    def name(self) -> str:
        """Names of the remedies."""
        return ", ".join(remedy.name for remedy in self.remedies)

    @property
    def kinds(self) -> set[str]:
        """Kinds of misfit that the remedies are for."""
        return set().union(*(remedy.kinds for remedy in self.remedies))

    @property
    def gain(self) -> float:
        """Log density of all checked rows, minus that of the user's model."""
        return float(self.each.sum())

    @property
    def se(self) -> float:
        """Standard error of the gain."""
        return _error(self.each)

    def helps(self, other: Trial) -> bool:
        """Whether to prefer this to another trial: it predicts better by more than chance explains.

        Or it has no misfit, and does not predict worse by more than a small difference.
        """
        if self.failed or self.wrong > other.wrong:
            return False
        each = self.each - other.each
        if self.wrong == 0 < other.wrong and each.sum() > -SMALL:
            return True
        return bool(each.sum() > max(2.0 * _error(each), SMALL))


def _error(each: Array) -> float:
    """Standard error of a sum over rows."""
    return float(np.sqrt(len(each)) * each.std(ddof=1))


def try_remedies(
    misfit: Misfit,
    family: str,
    rows: Array,
    pointwise: Array,
    data: Data,
    seed: int,
    begin: Callable[[str, int], None],
) -> list[Trial]:
    """Fit the remedies that apply, and combine the best with others while misfits remain.

    Combinations have at most three remedies; in each round the best two trials get another one.
    Remedies whose scales are learned come after the others of a round, and are added to one trial.
    A round of combinations begins with functions of columns, which take least time, and ends with
    the first trial without a misfit that is the best so far.

    Parameters
    ----------
    misfit : Misfit
    family : str
    rows : ndarray of shape (m,)
        Positions of the left-out rows among those with a weight.
    pointwise : ndarray of shape (m,)
        Their log densities under the user's model, in the units of y.
    data : tuple
        X and y, all rows as the estimator takes them, and a dict of arguments of the fit by row,
        such as ``sample_weight`` and ``exposure``.
    seed : int
    begin : callable
        Called with the name of each remedy before its fit, and the number known so far.
    """
    of_rows = [group.take(misfit.fit.counted[rows]) for group in misfit.groups]
    data, at, part = _part(data, misfit.fit.counted, rows, seed)
    baseline = Trial(each=np.zeros(len(rows)), wrong=len(misfit.checks))
    trials, tried, best = list[Trial](), set[frozenset[str]](), [(baseline, misfit)]
    useful = [remedy for remedy in REMEDIES if remedy.family in ("", family)]
    for number in range(_ROUNDS):
        candidates, harmful = list[tuple[Trial, Trial]](), set[str]()
        step = list[tuple[Trial, Misfit]]()
        for last, last_misfit in best:
            for remedy in useful:
                remedies = (*last.remedies, remedy)
                names = frozenset(one.name for one in remedies)
                again = any(remedy.parts & one.parts for one in last.remedies)
                if again or names in tried or not remedy.kinds & last_misfit.kinds:
                    continue
                estimator = build(remedy, last_misfit)
                if estimator is None:
                    continue
                tried.add(names)
                added, group = (*last.added, remedy.listed(last_misfit)), last.group
                if remedy.groups:
                    (group, _) = last_misfit.effects_of(remedy.slopes) or (None, [])
                one = Trial(remedies, estimator, added=added, group=group)
                candidates.append((last, one))
        total = len(trials) + len(candidates)
        candidates.sort(key=lambda pair: _delay(pair[1].remedies))
        for last, one in candidates:
            if _is_settled(one, last, trials):
                continue
            if one.remedies[-1].learns_scales and (
                _has_better_base(one, last, best, trials)
                or (number + 1 < _ROUNDS and _can_wait(one, last, step))
            ):
                continue
            begin(one.name, total)
            of_fit = _with_sizes(data) if any(each.sizes for each in one.remedies) else data
            if one.group is not None:
                of_fit = with_labels(of_fit[0], one.group.take(part)), *of_fit[1:]
            each, checks, failed, fit, below_zero, columns = _scored(
                one.estimator, of_fit, at, pointwise, seed, of_rows
            )
            wrong = [check for check in checks if check.verdict == "misfit"]
            trial = replace(
                one,
                each=each,
                wrong=len(wrong),
                checks=checks,
                failed=failed,
                below_zero=below_zero,
            )
            trials.append(trial)
            change = trial.gain - last.gain
            # another noise may need further remedies
            opens = "noise_variance" in one.remedies[-1].settings
            if not failed and change > (-SMALL if opens else SMALL):
                found = replace(misfit, estimator=one.estimator, fit=fit, checks=wrong)
                step.append((trial, replace(found, names=columns)))
                if number and not wrong and trial.gain == max(each.gain for each, _ in step):
                    break
            elif not change > -SMALL:
                harmful.add(one.remedies[-1].name)
        useful = [remedy for remedy in useful if remedy.name not in harmful]
        step.sort(key=lambda one: -one[0].gain)
        if not step or step[0][0].wrong == 0:
            break
        best = [one for one in step if one[0].wrong][:_BASES]
    return trials


def _delay(remedies: tuple[Remedy, ...]) -> tuple[bool, bool]:
    """Key by which trials of a round are sorted, stably."""
    *before, last = remedies
    return last.learns_scales, bool(before) and last.terms is None


def _is_settled(one: Trial, last: Trial, trials: list[Trial]) -> bool:
    """Whether squares of the columns have left no curvature, so that curves have none to find."""
    remedy = one.remedies[-1]
    if not (remedy.curves or remedy.terms is _splines):
        return False
    names = {"squares of columns", *(each.name for each in last.remedies)}
    squared = [trial for trial in trials if {each.name for each in trial.remedies} == names]
    return any(
        trial.helps(last)
        and not {check.kind for check in trial.checks if check.verdict == "misfit"} & remedy.kinds
        for trial in squared
    )


def _can_wait(one: Trial, last: Trial, step: list[tuple[Trial, Misfit]]) -> bool:
    """Whether a remedy of the trial ``last`` is better tried in the next round.

    It is if a trial of this round is clearly better than ``last``, will be one of those that get
    another remedy, and can get this one: log-linear noise takes no effects of groups.
    """
    remedy, ahead = one.remedies[-1], sorted(step, key=lambda each: -each[0].gain)[:_BASES]
    return any(
        not any(remedy.parts & each.parts for each in trial.remedies)
        and trial.gain - last.gain > max(SMALL, 2.0 * _error(trial.each - last.each))
        and not (remedy.kinds & misfit.kinds and build(remedy, misfit) is None)
        for trial, misfit in ahead
    )


def _has_better_base(
    one: Trial, last: Trial, bases: list[tuple[Trial, Misfit]], trials: list[Trial]
) -> bool:
    """Whether another base is the better one for a remedy whose scales are learned.

    It is if it is better with a simpler remedy of the same part, such as squares for curves; or,
    without one, by itself.
    """
    remedy = one.remedies[-1]

    def gain(base: Trial) -> float:
        simpler = [
            trial.gain
            for trial in trials
            if trial.remedies[:-1] == base.remedies and trial.remedies[-1].parts & remedy.parts
        ]
        return max([each for each in simpler if np.isfinite(each)], default=base.gain)

    return any(gain(base) > gain(last) for base, _ in bases)


def near_ties(trials: list[Trial], choice: Trial) -> list[Trial]:
    """Trials within 4, or within two standard errors, of the choice."""
    return [
        trial
        for trial in trials
        if trial is not choice
        and not trial.failed
        and abs(choice.gain - trial.gain) <= max(SMALL, 2.0 * _error(choice.each - trial.each))
    ]


def choose(trials: list[Trial], wrong: int) -> Trial | None:
    """Trial to suggest: among those near the best, the first with the fewest misfits.

    Near means within 4, or within one standard error of the difference. Simpler remedies come
    first. None if no trial helps a model with ``wrong`` misfits.
    """
    if not trials:
        return None
    baseline = Trial(each=np.zeros_like(trials[0].each), wrong=wrong)
    helping = [trial for trial in trials if trial.helps(baseline)]
    if not helping:
        return None
    best = max(helping, key=lambda trial: trial.gain)

    def is_near(trial: Trial) -> bool:
        return trial is best or best.gain - trial.gain <= max(SMALL, _error(best.each - trial.each))

    return min(filter(is_near, helping), key=lambda trial: trial.wrong)


def _part(data: Data, counted: Array, rows: Array, seed: int) -> tuple[Data, Array, Array]:
    """Data to fit remedies to, positions of the left-out rows in them, and theirs in all rows."""
    X, y, params = data
    n = len(counted)
    part = np.arange(n)
    if n > MOST_ROWS:
        others = np.setdiff1d(part, rows)
        rng = np.random.RandomState(seed)
        some = rng.choice(others, max(MOST_ROWS - len(rows), 0), replace=False)
        part = np.sort(np.concatenate([rows, some]))
    positions = counted[part]
    by_row = {
        name: value if value is None or np.ndim(value) == 0 else np.asarray(value)[positions]
        for name, value in params.items()
    }
    data = _safe_indexing(X, positions), _safe_indexing(y, positions), by_row
    return data, np.searchsorted(part, rows), positions


def _with_sizes(data: Data) -> Data:
    """Data with the weights as sizes of averages."""
    X, y, params = data
    return X, y, {**params, "sample_weight": None, "n_averaged": params["sample_weight"]}


def _scored(
    estimator: Any,
    data: Data,
    rows: Array,
    pointwise: Array,
    seed: int,
    groups: Sequence[Groups],
) -> tuple[Array, list[Check], str, Any, float, list[str]]:
    """Fit a copy of an estimator and score it by leave-one-out.

    Returns the differences of log density, the checks, the reason of a failure or "", the fitted
    rows, the share of rows whose 90 % interval goes below 0 although all y are positive, and the
    names of the columns.
    """
    X, y, params = data
    rest = {key: value for key, value in params.items() if key != "sample_weight"}
    row_data = {key: value for key, value in params.items() if value is not None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a remedy is judged by its checks, not by its warnings
            fitted = _fit_shortly(estimator, X, y, row_data)
            fit = rows_of_fit("check_model", fitted, X, y, params.get("sample_weight"), rest)
            # rows that the remedied model cannot leave out count as no gain
            able = np.flatnonzero(~fit.decide_alone(rows))
            if len(able) < 2:
                raise ValueError("Each row has a label of its own, and none can be left out.")
            loo = fit.leave_out(rows[able], draws_to_check(len(rows)))
            names = names_of(fitted, loo.data[0].shape[1])
            more = weight_checks(fit, rows[able], loo)
            of_able, numbers = [group.take(able) for group in groups], fit.numbers
            checks = find_checks(
                loo, names, np.arange(len(able)), seed, None, more, of_able, numbers
            )
    except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
        return np.full(len(rows), np.nan), [], printable(str(error).splitlines()[0]), None, 0.0, []
    problems = _problems(fitted)
    failed = printable(parameter_namer(fitted)(problems[0])) if problems else ""
    each = np.zeros(len(rows))
    each[able] = loo.log_density - fit.log_slope[rows[able]] - pointwise[able]
    if not failed and not np.isfinite(each).all():
        failed = "The log density of some row is not finite."
    below_zero = 0.0
    if loo.family == "numbers" and not fit.unwrapped.transformers and loo.y.min() > 0.0:
        below_zero = float(np.mean(loo.zero() > 0.05))
    return each, checks, failed, fit, below_zero, names


def _fit_shortly(estimator: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """Copy that is fitted with few draws, or with all if the few are not usable."""

    def shorten(model: Any) -> Any:
        n_draws = model.get_params(deep=False).get("n_draws", 0)
        return model.set_params(n_draws=_DRAWS) if n_draws > _DRAWS else model

    fitted = fit_like(with_model(estimator, shorten), X, y, params)
    if not _problems(fitted):
        return fitted
    return fit_like(clone(estimator), X, y, params)


def _problems(fitted: Any) -> Sequence[str]:
    """Reasons not to rely on the draws of a fitted estimator."""
    result = vars(unwrap(fitted).model).get("result_")
    return () if result is None else result.problems


def names_of(fitted: Any, n_columns: int) -> list[str]:
    """Names of the columns of the model inside the wrappers, as they can be printed."""
    names = column_names(fitted)
    return [f"x{j}" for j in range(n_columns)] if names is None else [printable(n) for n in names]
