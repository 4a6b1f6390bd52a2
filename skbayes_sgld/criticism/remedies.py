"""Remedies of a misfit: estimators to use instead, each fitted and scored by leave-one-out.

``REMEDIES`` is the table: of which family and for which misfits a remedy is, what it changes, and
how to build it. To add one, add a row. Combinations are found by trying the table again on the
best remedies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

from skbayes_sgld.criticism.checks import Check, enough_draws, find_checks, misfits
from skbayes_sgld.criticism.rows import FittedRows, rows_of_fit
from skbayes_sgld.prediction.wrappers import parameter_namer, wrapped

Array = NDArray[Any]

_CLEAR = 2.0  # standard errors by which a remedy's log density must be higher
_SMALL = 4.0  # difference of log densities that chooses between no two models
MOST_ROWS = 5_000  # to fit a remedy to: the gain errs by d / 10,000 a row left out
_STEPS, _KEPT = 3, 2  # remedies of a combination at most, and combinations that get a further one
_MOST_CURVED = 3  # columns whose squares are added
_MANY = 20.0  # rows a column, from which on the prior is no remedy


def positive_square(values: Array) -> Array:
    """Squares, and 0 for numbers below 0: the increasing inverse of the square root."""
    return np.square(np.maximum(values, 0.0))


@dataclass(frozen=True)
class Misfit:
    """A fitted estimator, and what is wrong with it.

    Attributes
    ----------
    estimator : estimator
        As the user fitted it.
    fit : FittedRows
    checks : list of Check
        Checks that found a misfit.
    """

    estimator: Any
    fit: FittedRows
    checks: list[Check]

    @property
    def kinds(self) -> set[str]:
        """Kinds of the misfits."""
        return {check.kind for check in self.checks}

    @property
    def curved(self) -> list[int]:
        """Columns along which residuals are curved, the strongest first."""
        columns = [check.column for check in self.checks if check.kind == "curvature"]
        return list(dict.fromkeys(columns))[:_MOST_CURVED]

    @property
    def plain_target(self) -> bool:
        """Whether the target is not transformed yet, and all of it is positive."""
        return not self.fit.core.transformers and float(self.fit.data[1].min()) > 0.0

    def rebuilt(self, change: Callable[[Any], Any]) -> Any:
        """Unfitted estimator with the innermost model changed; None where that is not possible."""
        try:
            return with_model(self.estimator, change)
        except _NotPossibleError:
            return None


class _NotPossibleError(Exception):
    """The model has no such setting, or has it already."""


def with_model(estimator: Any, change: Callable[[Any], Any]) -> Any:
    """Unfitted copy of an estimator, whose innermost model is ``change(model)``.

    A search is replaced by the best estimator that it found.
    """
    inner = wrapped(estimator)
    if inner is None:
        return change(clone(estimator))
    changed = with_model(inner.estimator, change)
    if inner.parameter is None:
        return changed
    new = clone(estimator).set_params(**{inner.parameter: changed})
    if inner.is_step and hasattr(changed, "steps"):  # one pipeline, with the model as its last step
        *before, (last, _) = new.steps
        *terms, (_, model) = changed.steps
        taken = {name for name, _ in new.steps}
        terms = [(_free(name, taken), step) for name, step in terms]
        new.steps = [*before, *terms, (last, model)]
    return new


def _free(name: str, taken: set[str]) -> str:
    """The name, or the name and a number, that no step has yet."""
    others = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(each for each in others if each not in taken)


def fit_like(estimator: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    """The estimator, fitted with arguments such as ``exposure`` that its innermost model takes."""
    layer, prefix = wrapped(estimator), ""
    while layer is not None:
        if layer.is_step:
            prefix += f"{layer.parameter}__"
        layer = wrapped(layer.estimator)
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{prefix + name: value for name, value in params.items()})


# ---- the table ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remedy:
    """A row of the table.

    Attributes
    ----------
    name : str
    parts : set of str
        Parts of the estimator that it changes; a combination changes each part once.
    family : str
        "numbers", "counts", "totals" or "labels"; or "" for all.
    kinds : set of str
        Kinds of misfit that it is for.
    build : callable
        Unfitted estimator from a :class:`Misfit`; None where it does not apply.
    """

    name: str
    parts: set[str]
    family: str
    kinds: set[str]
    build: Callable[[Misfit], Any]


def _set(**settings: Any) -> Callable[[Any], Any]:
    """Change of a model to these settings."""

    def change(model: Any) -> Any:
        known = model.get_params(deep=False)
        if any(name not in known for name in settings):
            raise _NotPossibleError
        if all(known[name] == value for name, value in settings.items()):
            raise _NotPossibleError
        return model.set_params(**settings)

    return change


def _sibling(name: str, carries_prior: bool) -> Callable[[Any], Any]:
    """Change of a model to another of the package, with the settings that both have."""

    def change(model: Any) -> Any:
        # by name: this layer is below the estimators, and a name may not exist
        cls = getattr(import_module("skbayes_sgld"), name, None)
        if cls is None or type(model).__name__ == name:
            raise _NotPossibleError
        new = cls()
        default, known = type(model)().get_params(deep=False), new.get_params(deep=False)
        for setting, value in model.get_params(deep=False).items():
            if setting == "prior" and not carries_prior:
                continue
            if setting in known and value is not default[setting]:
                new.set_params(**{setting: value})
        return new

    return change


def _of_any_number(model: Any) -> Any:
    """The model, unchanged; not possible where it takes numbers above 0 only."""
    if "noise_distribution" not in model.get_params(deep=False):
        raise _NotPossibleError
    return model


def _transformed(
    func: Any, inverse: Any, change: Callable[[Any], Any] = lambda model: model
) -> Callable[[Misfit], Any]:
    """Remedy that models a transformation of a positive target, by a changed model."""

    def build(misfit: Misfit) -> Any:
        from sklearn.compose import TransformedTargetRegressor

        inner = misfit.rebuilt(change) if misfit.plain_target else None
        if inner is None:
            return None
        return TransformedTargetRegressor(inner, func=func, inverse_func=inverse)

    return build


def _changed(change: Callable[[Any], Any], positive: bool = False) -> Callable[[Misfit], Any]:
    """Remedy that changes the innermost model."""

    def build(misfit: Misfit) -> Any:
        return None if positive and not misfit.plain_target else misfit.rebuilt(change)

    return build


def _prior(name: str) -> Callable[[Misfit], Any]:
    """Remedy by another prior, which matters where rows are few, or for probabilities near 0."""

    def build(misfit: Misfit) -> Any:
        n, d = misfit.fit.data[0].shape
        chosen = getattr(misfit.fit.core.model.posterior_, "choices", {}).get("prior")
        if chosen is not None and chosen.value == name:  # by prior="auto"
            return None
        matters = n < _MANY * d or "calibration" in misfit.kinds
        return misfit.rebuilt(_set(prior=name)) if matters else None

    return build


def _with_terms(make: Callable[[], Any]) -> Callable[[Misfit], Any]:
    """Remedy that adds functions of the columns along which residuals are curved."""

    def build(misfit: Misfit) -> Any:
        from scipy import sparse
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import make_pipeline

        X = misfit.fit.core.X
        if not misfit.curved or sparse.issparse(X):
            return None
        frame = hasattr(X, "columns")

        def change(model: Any) -> Any:
            terms = [(f"curve{j}", make(), [X.columns[j] if frame else j]) for j in misfit.curved]
            columns = ColumnTransformer(
                terms, remainder="passthrough", verbose_feature_names_out=False
            )
            if frame:
                columns.set_output(transform="pandas")
            return make_pipeline(columns, model)

        return misfit.rebuilt(change)

    return build


def _squares() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    return make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))


def _splines() -> Any:
    from sklearn.preprocessing import SplineTransformer

    return SplineTransformer(n_knots=5, knots="quantile", include_bias=False)


_UNEQUAL = {"coverage", "noise", "skew", "tails"}
_CURVED = {"curvature"}
_MISJUDGED = {"coverage", "calibration", "tails"}
_SPREAD = {"coverage", "noise", "skew", "tails", "dispersion", "zeros"}

REMEDIES = (
    Remedy(
        "noise_model='log_linear'",
        {"noise"},
        "numbers",
        _UNEQUAL,
        _changed(_set(noise_model="log_linear")),
    ),
    Remedy(
        "noise_distribution='student_t'",
        {"tails"},
        "numbers",
        _UNEQUAL,
        _changed(_set(noise_distribution="student_t")),
    ),
    Remedy(
        "square root of the target",
        {"target"},
        "numbers",
        _UNEQUAL | _CURVED,
        _transformed(np.sqrt, positive_square),
    ),
    Remedy(
        "log of the target",
        {"target"},
        "numbers",
        _UNEQUAL | _CURVED,
        _transformed(np.log, np.exp, _of_any_number),
    ),
    Remedy(
        "SGLDLinearRegression, log of the target",
        {"target"},
        "numbers",
        _UNEQUAL | _CURVED,
        _transformed(np.log, np.exp, _sibling("SGLDLinearRegression", carries_prior=False)),
    ),
    Remedy(
        "SGLDGammaRegressor",
        {"target", "noise", "tails"},
        "numbers",
        _UNEQUAL | _CURVED,
        _changed(_sibling("SGLDGammaRegressor", carries_prior=False), positive=True),
    ),
    Remedy(
        "SGLDNegativeBinomialRegressor",
        {"target"},
        "counts",
        _SPREAD,
        _changed(_sibling("SGLDNegativeBinomialRegressor", carries_prior=True)),
    ),
    Remedy(
        "SGLDBetaBinomialRegressor",
        {"target"},
        "totals",
        _SPREAD,
        _changed(_sibling("SGLDBetaBinomialRegressor", carries_prior=True)),
    ),
    Remedy("prior='normal'", {"prior"}, "", _MISJUDGED, _prior("normal")),
    Remedy("prior='hierarchical_normal'", {"prior"}, "", _MISJUDGED, _prior("hierarchical_normal")),
    Remedy("squares of columns", {"columns"}, "", _CURVED, _with_terms(_squares)),
    Remedy("splines of columns", {"columns"}, "", _CURVED, _with_terms(_splines)),
)


# ---- trials -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A remedy, or a combination of some, that was fitted.

    Attributes
    ----------
    remedies : tuple of Remedy
        In the order in which they were found.
    estimator : estimator
        Unfitted.
    each : ndarray of shape (m,)
        Leave-one-out log density of each row looked at, minus that of the model that was checked.
    wrong : int
        Checks that find a misfit.
    checks : list of Check
    failed : str
        Why it could not be used, if so.
    columns : tuple of int
        Columns whose squares or splines were added.
    """

    remedies: tuple[Remedy, ...] = ()
    estimator: Any = None
    each: Array = field(default_factory=lambda: np.full(2, np.nan))
    wrong: int = 0
    checks: list[Check] = field(default_factory=list)
    failed: str = ""
    columns: tuple[int, ...] = ()

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
        """Log density of all rows looked at, minus that of the model that was checked."""
        return float(self.each.sum())

    @property
    def se(self) -> float:
        """Standard error of the gain."""
        return _error(self.each)

    def helps(self, other: Trial) -> bool:
        """Whether to prefer this to another: it predicts better by more than chance explains.

        Or no check finds a misfit any more, and it predicts no worse by a difference that chooses.
        """
        if self.failed or self.wrong > other.wrong:
            return False
        each = self.each - other.each
        if self.wrong == 0 < other.wrong and each.sum() > -_SMALL:
            return True
        return bool(each.sum() > max(_CLEAR * _error(each), _SMALL))


def _error(each: Array) -> float:
    """Standard error of a sum over rows."""
    return float(np.sqrt(len(each)) * each.std(ddof=1))


def try_remedies(
    misfit: Misfit,
    family: str,
    rows: Array,
    pointwise: Array,
    X: Any,
    y: Any,
    params: dict[str, Any],
    seed: int,
) -> list[Trial]:
    """Remedies that apply, fitted; and, of the best that leave misfits, combinations with others.

    Parameters
    ----------
    misfit : Misfit
    family : str
    rows : ndarray of shape (m,)
        Rows that were left out, among those with a weight.
    pointwise : ndarray of shape (m,)
        Their log densities under the model that was checked, in the units of y.
    X, y : array-like
        All rows, as the estimator takes them.
    params : dict
        Arguments of the fit by row, such as ``sample_weight`` and ``exposure``.
    seed : int
    """
    data, at = _part(X, y, params, misfit.fit.counted, rows, seed)
    checked = Trial(each=np.zeros(len(rows)), wrong=len(misfit.checks))
    trials, seen, kept = list[Trial](), set[frozenset[str]](), [(checked, misfit)]
    useful = [remedy for remedy in REMEDIES if remedy.family in ("", family)]
    for _ in range(_STEPS):
        step, harmful = [], set[str]()
        for last, of_last in kept:
            for remedy in useful:
                remedies = (*last.remedies, remedy)
                names = frozenset(each.name for each in remedies)
                again = any(remedy.parts & each.parts for each in last.remedies)
                applies = not again and remedy.kinds & of_last.kinds
                estimator = remedy.build(of_last) if applies else None
                if estimator is None or names in seen:
                    continue
                seen.add(names)
                trial, left = _tried(remedies, estimator, data, at, pointwise, seed)
                added = tuple(of_last.curved) if "columns" in remedy.parts else last.columns
                trial = replace(trial, columns=added)
                trials.append(trial)
                change = trial.gain - last.gain
                if left is not None and not trial.failed and change > _SMALL:
                    step.append((trial, left))
                elif not change > -_SMALL:
                    harmful.add(remedy.name)
        useful = [remedy for remedy in useful if remedy.name not in harmful]
        step.sort(key=lambda one: -one[0].gain)
        if not step or step[0][0].wrong == 0:
            break
        kept = [one for one in step if one[0].wrong][:_KEPT]
    return trials


def choose(trials: list[Trial], wrong: int) -> Trial | None:
    """The trial to suggest: of those near the best, the first with the fewest misfits.

    Near is a difference of at most 4, or of one standard error of the difference. Simpler remedies
    come first. None where no trial helps a model with ``wrong`` misfits.
    """
    if not trials:
        return None
    checked = Trial(each=np.zeros_like(trials[0].each), wrong=wrong)
    helping = [trial for trial in trials if trial.helps(checked)]
    if not helping:
        return None
    best = max(helping, key=lambda trial: trial.gain)

    def is_near(trial: Trial) -> bool:
        return best.gain - trial.gain <= max(_SMALL, _error(best.each - trial.each))

    return min(filter(is_near, helping), key=lambda trial: trial.wrong)


def _part(
    X: Any, y: Any, params: dict[str, Any], counted: Array, rows: Array, seed: int
) -> tuple[tuple[Any, Any, dict[str, Any]], Array]:
    """Data to fit remedies to, and the positions of the rows that are left out among them."""
    n = len(counted)
    part = np.arange(n)
    if n > MOST_ROWS:
        others = np.setdiff1d(part, rows)
        rng = np.random.RandomState(seed)
        some = rng.choice(others, max(MOST_ROWS - len(rows), 0), replace=False)
        part = np.sort(np.concatenate([rows, some]))
    chosen = counted[part]
    by_row = {
        name: value if value is None or np.ndim(value) == 0 else np.asarray(value)[chosen]
        for name, value in params.items()
    }
    return (_taken(X, chosen), _taken(y, chosen), by_row), np.searchsorted(part, rows)


def _taken(values: Any, rows: Array) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(values, rows)


def _tried(
    remedies: tuple[Remedy, ...],
    estimator: Any,
    data: tuple[Any, Any, dict[str, Any]],
    rows: Array,
    pointwise: Array,
    seed: int,
) -> tuple[Trial, Misfit | None]:
    """Remedies, fitted and scored, and what they leave wrong; None where the estimator raises."""
    X, y, params = data
    unfitted = clone(estimator)
    weight = params.get("sample_weight")
    rest = {key: value for key, value in params.items() if key != "sample_weight"}
    given = {key: value for key, value in params.items() if value is not None}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a remedy is judged by its checks, not by what it says
            fitted = fit_like(estimator, X, y, given)
            fit = rows_of_fit("check_model", fitted, X, y, weight, rest)
            left = fit.leave_out(rows, enough_draws(len(rows)))
            names = [f"x{j}" for j in range(left.data[0].shape[1])]
            checks = find_checks(left, names, np.arange(len(rows)), seed)
    except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
        nothing = np.full(len(rows), np.nan)
        return Trial(remedies, unfitted, nothing, failed=str(error).splitlines()[0]), None
    result = vars(fit.core.model).get("result_")
    failed = ""
    if result is not None and result.problems:
        failed = parameter_namer(fitted)(result.problems[0])
    difference = left.log_density - fit.log_slope[rows] - pointwise
    wrong = [check for check, bad in zip(checks, misfits(checks), strict=True) if bad]
    trial = Trial(remedies, unfitted, difference, len(wrong), checks, failed)
    return trial, Misfit(unfitted, fit, wrong)
