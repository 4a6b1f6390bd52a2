"""Remedies of a misfit: estimators to use instead, each fitted and scored by leave-one-out.

``REMEDIES`` is the table: of which family and for which misfits a remedy is, and how to build it.
To add one, add a row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone

from skbayes_sgld.criticism.checks import ENOUGH_DRAWS, Check, find_checks, misfits
from skbayes_sgld.criticism.rows import FittedRows, rows_of_fit
from skbayes_sgld.prediction.wrappers import wrapped

Array = NDArray[Any]

_CLEAR = 2.0  # standard errors by which a remedy's log density must be higher
_SMALL = 4.0  # difference of log densities that chooses between no two models
_MOST_ROWS = 20_000  # to fit a remedy to
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
    return clone(estimator).set_params(**{inner.parameter: changed})


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
    family : str
        "numbers", "counts", "totals" or "labels"; or "" for all.
    kinds : set of str
        Kinds of misfit that it is for.
    build : callable
        Unfitted estimator from a :class:`Misfit`; None where it does not apply.
    """

    name: str
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


def _as_is(model: Any) -> Any:
    return model


def _transformed(
    func: Any, inverse: Any, change: Callable[[Any], Any] = _as_is
) -> Callable[[Misfit], Any]:
    """Remedy that models a transformation of a positive target."""

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


def _with_few_rows(change: Callable[[Any], Any]) -> Callable[[Misfit], Any]:
    """Remedy by another prior, which matters where rows are few, or for probabilities near 0."""

    def build(misfit: Misfit) -> Any:
        n, d = misfit.fit.data[0].shape
        matters = n < _MANY * d or "calibration" in misfit.kinds
        return misfit.rebuilt(change) if matters else None

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
_LOG_LINEAR = {"noise_model": "log_linear"}
_STUDENT = {"noise_distribution": "student_t"}

REMEDIES = (
    Remedy("noise_model='log_linear'", "numbers", _UNEQUAL, _changed(_set(**_LOG_LINEAR))),
    Remedy(
        "square root of the target",
        "numbers",
        _UNEQUAL | _CURVED,
        _transformed(np.sqrt, positive_square),
    ),
    Remedy("log of the target", "numbers", _UNEQUAL | _CURVED, _transformed(np.log, np.exp)),
    Remedy(
        "square root of the target, noise_model='log_linear'",
        "numbers",
        _UNEQUAL,
        _transformed(np.sqrt, positive_square, _set(**_LOG_LINEAR)),
    ),
    Remedy(
        "log of the target, noise_model='log_linear'",
        "numbers",
        _UNEQUAL,
        _transformed(np.log, np.exp, _set(**_LOG_LINEAR)),
    ),
    Remedy("noise_distribution='student_t'", "numbers", _UNEQUAL, _changed(_set(**_STUDENT))),
    Remedy(
        "noise_distribution='student_t', noise_model='log_linear'",
        "numbers",
        _UNEQUAL,
        _changed(_set(**_STUDENT, **_LOG_LINEAR)),
    ),
    Remedy(
        "log of the target, noise_distribution='student_t'",
        "numbers",
        {"tails"},
        _transformed(np.log, np.exp, _set(**_STUDENT)),
    ),
    Remedy(
        "SGLDGammaRegressor",
        "numbers",
        _UNEQUAL | _CURVED,
        _changed(_sibling("SGLDGammaRegressor", carries_prior=False), positive=True),
    ),
    Remedy(
        "SGLDNegativeBinomialRegressor",
        "counts",
        {"coverage", "noise", "skew", "tails", "dispersion", "zeros"},
        _changed(_sibling("SGLDNegativeBinomialRegressor", carries_prior=True)),
    ),
    Remedy(
        "SGLDBetaBinomialRegressor",
        "totals",
        {"coverage", "noise", "skew", "tails", "dispersion", "zeros"},
        _changed(_sibling("SGLDBetaBinomialRegressor", carries_prior=True)),
    ),
    Remedy("prior='normal'", "", _MISJUDGED, _with_few_rows(_set(prior="normal"))),
    Remedy(
        "prior='hierarchical_normal'",
        "",
        _MISJUDGED,
        _with_few_rows(_set(prior="hierarchical_normal")),
    ),
    Remedy("squares of columns", "", _CURVED, _with_terms(_squares)),
    Remedy("splines of columns", "", _CURVED, _with_terms(_splines)),
)


# ---- trials -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A remedy that was fitted.

    Attributes
    ----------
    name : str
    kinds : set of str
        Kinds of misfit that it is for.
    estimator : estimator
        Unfitted.
    gain : float
        Leave-one-out log density of the rows looked at, minus that of the model that was checked.
    se : float
        Standard error of the gain.
    wrong : int
        Checks that find a misfit.
    checks : list of Check
    failed : str
        Why it could not be used, if so.
    each : ndarray of shape (m,)
        The gain, row by row.
    """

    name: str
    kinds: set[str]
    estimator: Any
    gain: float = np.nan
    se: float = np.nan
    wrong: int = 0
    checks: list[Check] = field(default_factory=list)
    failed: str = ""
    each: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def helps(self) -> bool:
        """Whether it predicts better by more than chance explains."""
        return not self.failed and self.gain > max(_CLEAR * self.se, _SMALL)


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
    """Remedies that apply, fitted, in the order of the table.

    Where residuals are curved, the best of the others is tried with squares of the columns too.

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

    def attempt(name: str, kinds: set[str], estimator: Any) -> Trial:
        return _tried(name, kinds, estimator, data, at, pointwise, seed)

    data, at = _part(X, y, params, misfit.fit.counted, rows, seed)
    trials = []
    for remedy in REMEDIES:
        if remedy.family not in ("", family) or not remedy.kinds & misfit.kinds:
            continue
        estimator = remedy.build(misfit)
        if estimator is not None:
            trials.append(attempt(remedy.name, remedy.kinds, estimator))
    others = [t for t in trials if t.helps and not t.name.endswith("of columns")]
    if misfit.curved and others:
        best = max(others, key=lambda trial: trial.gain)
        for remedy in REMEDIES:
            if remedy.name.endswith("of columns"):
                curved = Misfit(best.estimator, misfit.fit, misfit.checks)
                estimator = remedy.build(curved)
                name = f"{best.name}, {remedy.name}"
                trials.append(attempt(name, best.kinds | remedy.kinds, estimator))
    return trials


def choose(trials: list[Trial], wrong: int) -> Trial | None:
    """The trial to suggest: of those near the best, the first with the fewest misfits.

    Near is a difference of at most 4, or of one standard error of the difference. The table has
    simpler remedies first. None where no trial predicts better than the model that was checked,
    without more misfits than the ``wrong`` ones of that model.
    """
    helping = [trial for trial in trials if trial.helps and trial.wrong <= wrong]
    if not helping:
        return None
    best = max(helping, key=lambda trial: trial.gain)

    def is_near(trial: Trial) -> bool:
        error = np.sqrt(len(best.each)) * np.std(best.each - trial.each)
        return bool(best.gain - trial.gain <= max(_SMALL, error))

    return min(filter(is_near, helping), key=lambda trial: trial.wrong)


def _part(
    X: Any, y: Any, params: dict[str, Any], counted: Array, rows: Array, seed: int
) -> tuple[tuple[Any, Any, dict[str, Any]], Array]:
    """Data to fit remedies to, and the positions of the rows that are left out among them."""
    n = len(counted)
    part = np.arange(n)
    if n > _MOST_ROWS:
        others = np.setdiff1d(part, rows)
        rng = np.random.RandomState(seed)
        some = rng.choice(others, max(_MOST_ROWS - len(rows), 0), replace=False)
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
    name: str,
    kinds: set[str],
    estimator: Any,
    data: tuple[Any, Any, dict[str, Any]],
    rows: Array,
    pointwise: Array,
    seed: int,
) -> Trial:
    """A remedy, fitted and scored; an estimator that raises is a failed trial."""
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
            left = fit.leave_out(rows, ENOUGH_DRAWS)
            names = [f"x{j}" for j in range(left.data[0].shape[1])]
            checks = find_checks(left, names, np.arange(len(rows)), seed)
    except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Trial(name, kinds, unfitted, failed=str(error).splitlines()[0])
    result = vars(fit.core.model).get("result_")
    failed = result.problems[0] if result is not None and result.problems else ""
    difference = left.log_density - fit.log_slope[rows] - pointwise
    se = float(np.sqrt(len(rows)) * difference.std(ddof=1))
    wrong = sum(misfits(checks))
    gain = float(difference.sum())
    return Trial(name, kinds, unfitted, gain, se, wrong, checks, failed, difference)
