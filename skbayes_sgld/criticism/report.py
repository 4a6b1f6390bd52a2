"""Report on a fitted model: checks, tried remedies, and the estimator to use instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skbayes_sgld._checks import check_flag, printable
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._progress import stages
from skbayes_sgld._random import draw_seed
from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.checks import (
    Check,
    draws_to_check,
    find_checks,
    interval_name,
    noise_of_measurement,
    noiseless,
    prior_check,
    unknown_rows,
)
from skbayes_sgld.criticism.groups import categorical_groups, groups_given
from skbayes_sgld.criticism.leave_one_out import rows_of_fit
from skbayes_sgld.criticism.new_rows import draws_of_data_sets, with_shared_parameters
from skbayes_sgld.criticism.remedies import (
    MOST_ROWS,
    SMALL,
    Misfit,
    Trial,
    choose,
    names_in_fit,
    names_of,
    near_ties,
    try_remedies,
)
from skbayes_sgld.criticism.settings import variance_is_given
from skbayes_sgld.criticism.weights import weight_checks
from skbayes_sgld.prediction.tables import Table
from skbayes_sgld.prediction.wrappers import parameter_namer

_NAME = 54  # columns for the name of a check or remedy, of 100 in a line
_SHOWN = 6  # most remedies that the report shows
_TIES = 3  # most near ties that the reason names
_DOMINANT = 0.5  # share of a gain beyond which its row is named
_ROWS = 5  # most influential rows that the reason names
_NO_MEAN = 1.0  # Pareto k beyond which a row's weights have no mean
_NO_NOISE = (
    "No row is half a standard deviation from its prediction: y is a function of the columns "
    "without noise, and the noise of the model is what its prior allows at least. No model of the "
    "noise is right then; "
)


@dataclass(frozen=True, repr=False)
class ModelCheck:
    """Result of a model check; it prints as a report.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each check: ``check``, ``about`` (a column, or labels of rows), ``measured``,
        ``expected`` and its standard error ``se`` under the model, ``p_value``, ``verdict``
        ("fits", "misfit", "unknown" if the figure is nan, "look at it" or "-") and ``remedy``, the
        one that helps most.
    remedies : pandas.DataFrame
        A row for each remedy that was tried, the best first: ``difference`` is its leave-one-out
        log density minus that of the model, and ``se_difference`` the standard error;
        ``coverage_50`` and ``coverage_90`` are the coverages of its intervals, ``misfits`` is the
        number of its misfits, and ``failed`` the reason of a failure, or empty.
    suggestion : estimator or None
        Unfitted estimator or pipeline to use instead; None if nothing is wrong or no remedy
        predicts better.
    reason : str
        Reason of the suggestion.
    n_data_points : int
        Rows with a weight above 0.
    rows : ndarray of shape (n_rows,)
        Positions of the left-out rows, or of the checked new rows.
    below, most : ndarray of shape (n_rows,) or None
        Probabilities of an observation below each row's own, and of one at most as large, under the
        posterior without it; None for labels.
    mean : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Fitted mean of the model's target, or probabilities of the classes.
    name : str
        Class of the model.
    held_out : bool
        Whether the rows are new; none is then left out.
    """

    table: pd.DataFrame
    remedies: pd.DataFrame
    suggestion: Any
    reason: str
    n_data_points: int
    rows: Array
    below: Array | None
    most: Array | None
    mean: Array
    name: str
    held_out: bool = False
    _checks: list[Check] = field(default_factory=list)
    _trials: list[Trial] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        """Whether no check found a misfit, and no test is unknown."""
        return self._n_misfits == 0 and not self._n_unknown

    @property
    def verdict(self) -> str:
        """Verdict on the model: the most serious verdict of its checks."""
        found = set(self.table["verdict"])
        return next((each for each in ("misfit", "unknown", "look at it") if each in found), "fits")

    @property
    def _which(self) -> str:
        """Description of the checked rows."""
        n = f"{len(self.rows)} of {self.n_data_points}"
        return f"{n} new rows" if self.held_out else f"{n} rows left out, one at a time"

    @property
    def _n_misfits(self) -> int:
        return int((self.table["verdict"] == "misfit").sum())

    @property
    def _n_unknown(self) -> int:
        return int((self.table["verdict"] == "unknown").sum())

    @property
    def _answer(self) -> str:
        """First lines of the report: the verdict and its reason."""
        n, unknown = self._n_misfits, self._n_unknown
        rest = f" {unknown} ha{'ve' if unknown > 1 else 's'} no figure." if unknown else ""
        if n:
            return f"misfit: {n} check{'s find' if n > 1 else ' finds'} one.{rest}"
        if unknown:
            return f"unknown: of {len(self.table)} checks{rest}"
        doubts = [check for check in self._checks if check.verdict == "look at it"]
        if not doubts:
            return "fits: no check finds a misfit."
        named = " and the ".join(check.name.split(" (")[0].split(",")[0] for check in doubts)
        return f"look at it: no check finds a misfit, but see the {named}."

    def __repr__(self) -> str:
        """Report."""
        lines = [
            f"Does the model fit? {self._answer}",
            f"{self.name}, {self._which}",
            "",
            f"  {'check':{_NAME}s}{'measured':>10s}{'expected':>18s}   verdict",
        ]
        for check in self._checks:
            about = f": {check.about}" if check.about else ""
            measured, expected = format(check.measured, check.fmt), ""
            if np.isfinite(check.error):
                expected = f"{check.expected:{check.fmt}} +- {check.error:{check.fmt}}"
            lines += _row(check.name + about, f"{measured:>10s}{expected:>18s}   {check.verdict}")
        if self._trials:
            cell = "remedy that was tried"
            if self.n_data_points > MOST_ROWS:
                cell += f", on {MOST_ROWS:,} rows"
            hold = "" if self.below is None else "90 % hold"  # labels have no intervals
            lines += ["", f"  {cell:{_NAME}s}{'log density':>16s}{hold:>12s}".rstrip()]
        for trial in self._trials[:_SHOWN]:
            gain, after = f"{trial.gain:+.1f} +- {trial.se:.1f}", _coverage_of(trial.checks, 0.9)
            held = "" if np.isnan(after) else f"{after:.1%}"
            if trial.failed:
                lines += [*_row(trial.name, f"{'failed':>16s}"), *_wrapped(trial.failed, "    ")]
            else:
                lines += _row(trial.name, f"{gain:>16s}{held:>12s}")
        return "\n".join([*lines, "", *_wrapped(self.reason)])


@numpy_defaults
def check_model(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: Any = None,
    remedies: bool = True,
    n_rows: int | None = 2000,
    held_out: bool = False,
    random_state: Any = 0,
    groups: Any = None,
    **by_row: Any,
) -> ModelCheck:
    """Check a fitted model against its own rows, each left out, and try remedies of misfits.

    Leave-one-out predictive distributions come from the draws of the fit by smoothed importance
    weights (Vehtari, Gelman & Gabry 2017). All tests together find a misfit in at most 5 % of data
    sets from the model itself (Holm 1979). If they find one, the remedies that apply are
    fitted to at most 5,000 of the rows, and ranked by leave-one-out log density in the units of y.
    Remedies that help are combined with others while a misfit remains. There may be twenty fits,
    each with 400 draws of a chain and about as long as the user's: after two seconds, lines on
    standard error name the remedy that is being fitted.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator of this package with draws, or a pipeline, a search or a transformed target
        around one.
    X : array-like of shape (n_samples, n_features)
        Rows of the fit, in any order, as the outermost wrapper takes them; with
        ``held_out=True`` new rows.
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the fit.
    remedies : bool, default=True
        Whether to try remedies of a misfit. Remedies are fitted to the rows of the fit, so none is
        tried with new rows.
    n_rows : int or None, default=2000
        Number of rows to leave out, one at a time, chosen at random. None: all rows. In a model
        with ``group_effects`` rows whose label has no more rows than effects are never chosen.
    held_out : bool, default=False
        Whether the rows are new; none is then left out. The errors of the figures then include the
        uncertainty of the parameters, which all new rows share.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice of rows, and of the transform of counts.
    groups : array-like of shape (n_samples,), str or int, default=None
        Labels of the rows, such as subjects or shops, or the column of X that has them. Residuals
        are checked for what they have in common within groups; so they are for every column of X
        that holds text or categories, whatever a pipeline makes of it.
    **by_row : dict
        Arguments by row of the fit, such as ``exposure``.

    Returns
    -------
    check : ModelCheck
        Prints as a report. ``table`` is a frame, and ``suggestion`` the estimator to use
        instead.

    Raises
    ------
    ValueError
        If the rows are not those of the fit, and ``held_out`` is False. A fit keeps the number
        of its rows and sums over them, but not the rows. Or if no row may be left out.

    See Also
    --------
    compare_models : Comparison of models by leave-one-out log density.
    skbayes_sgld.plotting.ModelCheckDisplay : The checks as a picture.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDLinearRegression, check_model
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(0, 2, (300, 1))
    >>> y = 5 + X[:, 0] + np.exp(X[:, 0] - 1) * rng.standard_normal(300)
    >>> check = check_model(SGLDLinearRegression(random_state=0).fit(X, y), X, y)
    >>> check.fits
    False
    >>> check.suggestion
    SGLDLinearRegression(noise_model='log_linear', random_state=0)
    """
    check_flag(remedies, "remedies")
    check_flag(held_out, "held_out")
    fit = rows_of_fit("check_model", estimator, X, y, sample_weight, by_row, held_out)
    grouped = categorical_groups(X)
    if groups is not None:
        given = groups_given(groups, X, Table.of(X).n_rows)
        grouped = [*(one for one in grouped if one.column != given.column), given]
    rows, seed = fit.choose(n_rows, random_state), draw_seed(random_state)
    alone = fit.decide_alone(rows)
    if np.sum(~alone) < 2:
        raise ValueError(
            f"X has {len(rows)} rows, and all but {np.sum(~alone)} have a label in group_effects "
            "with no more rows than effects: nothing is known of its effects without the row. Give "
            "rows that were not in the fit: check_model(model, X, y, held_out=True)."
        )
    rows = rows[~alone]
    labels = _row_labels(X, y, fit.counted[rows])
    far = fit.far(rows, draws_to_check(len(rows)))
    unknown = [unknown_rows(labels, np.flatnonzero(far))] if far.any() else []
    if np.sum(~far) < 2:
        raise ValueError(
            f"X has {np.sum(~far)} rows whose prediction is finite, and check_model needs two; "
            "check the units of its columns, and the exposure."
        )
    rows, labels = rows[~far], labels[~far]
    loo = fit.leave_out(rows, draws_to_check(len(rows)))
    names = names_of(estimator, loo.data[0].shape[1])
    classes = getattr(fit.unwrapped.model, "classes_", None)
    more = weight_checks(fit, rows, loo)
    find = partial(
        find_checks,
        names=names,
        labels=labels,
        seed=seed,
        classes=classes,
        more=more,
        groups=[group.take(fit.counted[rows]) for group in grouped],
        numbers=fit.numbers,
    )
    checks = find(loo)
    if held_out and any(check.verdict == "misfit" for check in checks):
        some = fit.some_draws(draws_of_data_sets(len(rows)))
        rng = np.random.RandomState(seed)
        checks = with_shared_parameters(checks, some, loo.data, find, rng)
    checks += unknown + prior_check(fit.unwrapped.model, parameter_namer(estimator))
    wrong = [check for check in checks if check.verdict == "misfit"]
    trials = list[Trial]()
    exact = loo.family == "numbers" and noiseless(loo.numbers.most)
    exact = exact and not variance_is_given(fit.unwrapped.model)
    if wrong and remedies and not held_out and not exact and hasattr(fit.unwrapped.model, "coef_"):
        pointwise = loo.log_density - fit.log_slope[rows]
        data = X, y, {"sample_weight": sample_weight, **by_row}
        misfit = Misfit(estimator, fit, wrong, names, grouped, X)
        with stages("check_model", "remedy") as begin:
            trials = try_remedies(misfit, loo.family, rows, pointwise, data, seed, begin)
    choice = choose(trials, len(wrong))
    trials.sort(key=lambda trial: -trial.gain if np.isfinite(trial.gain) else np.inf)
    n_bad = sum(int(check.measured) for check in checks if check.kind == "influence")
    doubt = (
        f" {n_bad} of {len(rows)} rows cannot be left out reliably (Pareto k), so all figures are "
        "uncertain; compare models by cross-validation."
    ) * (n_bad > 0.1 * len(rows))
    below, most = (None, None) if loo.family == "labels" else loo.numbers[:2]
    return ModelCheck(
        _table(checks, len(wrong), trials),
        _trials(trials),
        None if choice is None else choice.estimator,
        (
            f"{_NO_NOISE}{noise_of_measurement(loo.likelihood)}."
            if exact and wrong
            else _reason(checks, len(wrong), trials, choice, remedies, held_out)
        )
        + _row_of_gain(choice or next((t for t in trials if not t.failed), None), labels)
        + (_rows_of_fit(loo.pareto_k, labels) if wrong and not held_out else "")
        + _of_class_weight(fit.unwrapped.model, wrong, choice)
        + (
            _sizes_in_fit(choice)
            or _arguments_of_fit(choice, estimator, {"sample_weight": sample_weight, **by_row})
        )
        + _labels_in_fit(choice, X)
        + doubt,
        len(fit.counted),
        fit.counted[rows],
        below,
        most,
        loo.fitted(),
        type(fit.unwrapped.model).__name__,
        held_out,
        checks,
        trials,
    )


def _table(checks: list[Check], wrong: int, trials: list[Trial]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "check": check.name,
            "about": check.about,
            "measured": float(check.measured),
            "expected": float(check.expected),
            "se": float(check.error),
            "p_value": float(check.p_value),
            "verdict": check.verdict,
            "remedy": _best_for(check.kind, trials, wrong) if check.verdict == "misfit" else "",
        }
        for check in checks
    )


def _best_for(kind: str, trials: list[Trial], wrong: int) -> str:
    """Name of the best remedy for a kind of misfit, with its gain."""
    best = choose([trial for trial in trials if kind in trial.kinds], wrong)
    if best is None:
        return ""
    return f"{best.name} ({best.gain:+.1f} +- {best.se:.1f})"


def _trials(trials: list[Trial]) -> pd.DataFrame:
    columns = {
        "difference": [trial.gain for trial in trials],
        "se_difference": [trial.se for trial in trials],
        "coverage_50": [_coverage_of(trial.checks, 0.5) for trial in trials],
        "coverage_90": [_coverage_of(trial.checks, 0.9) for trial in trials],
        "misfits": [trial.wrong for trial in trials],
        "failed": [trial.failed for trial in trials],
    }
    names = pd.Index([trial.name for trial in trials], name="remedy", dtype=object)
    return pd.DataFrame(columns, names)


def _coverage_of(checks: list[Check], coverage: float) -> float:
    """Measured coverage of all rows; nan for labels."""
    name = interval_name(coverage)
    return next((float(check.measured) for check in checks if check.name == name), np.nan)


def _reason(
    checks: list[Check],
    wrong: int,
    trials: list[Trial],
    choice: Trial | None,
    has_trials: bool,
    held_out: bool,
) -> str:
    doubts = sum(check.verdict == "look at it" for check in checks)
    unknown = sum(int(check.measured) for check in checks if check.kind == "range")
    if unknown and not wrong:
        return (
            f"{unknown} rows have no finite prediction, and were not judged; check the units of "
            "their columns, and the exposure. Nothing is wrong with the others."
        )
    if not wrong and doubts:
        return "No check finds a misfit, so there is nothing to suggest."
    if not wrong:
        return "Nothing is wrong, so there is nothing to suggest."
    if held_out:
        return "No remedy was tried on new rows; check_model with the rows of the fit tries them."
    if choice is None:
        if not has_trials:
            return "No remedy was tried; set remedies=True."
        if not trials:
            return "No suggestion: there is no remedy for this model."
        better = [
            each for each in trials if not each.failed and each.gain > max(2.0 * each.se, SMALL)
        ]
        listed = "; ".join(f"{one.name} ({one.gain:+.1f}{_misfits(one.wrong)})" for one in better)
        return (
            f"No suggestion: none of {len(trials)} remedies predicts better by more than chance "
            f"explains{', with no more misfits' * bool(better)}, or as well and without a misfit."
            + f" With more than the {wrong} of the model: {listed}."
            * bool(better)
        )
    before, after = (_thirds_of(each) for each in (checks, choice.checks))
    held = f" 90 % intervals hold {after} of the rows; before, {before}." if after else ""
    n = choice.wrong
    rest = f" {n} check{'s' * (n > 1)} still find{'s' * (n == 1)} a misfit." if n else ""
    if any(check.kind == "coverage" and check.verdict == "misfit" for check in choice.checks):
        rest += " Its intervals do not hold either."
    if choice.below_zero > 0.01:
        rest += (
            f" Its 90 % intervals go below 0 in {choice.below_zero:.0%} of the rows, and every y "
            "is positive."
        )
    near = near_ties(trials, choice)
    if near:
        listed = "; ".join(
            f"{each.name} ({each.gain:+.1f}{_misfits(each.wrong)})" for each in near[:_TIES]
        )
        more = f"; and {len(near) - _TIES} more" if len(near) > _TIES else ""
        rest += f" Near ties, which other draws or rows may prefer: {listed}{more}."
    what = ", ".join(
        each.name + f" ({added})" * bool(added)
        for each, added in zip(choice.remedies, choice.added, strict=True)
    )
    way = "higher" if choice.gain >= 0 else "lower"
    return (
        f"Suggestion: {what}. Its leave-one-out log density is {way} by "
        f"{abs(choice.gain):.1f} (standard error {choice.se:.1f}).{held}{rest}"
    )


def _row_of_gain(trial: Trial | None, labels: Any) -> str:
    """Sentence on a row that brings most of the gain of the suggested, or best, remedy."""
    if trial is None or not trial.gain > SMALL:
        return ""
    row = int(trial.each.argmax())
    share = float(trial.each[row]) / trial.gain
    if not share > _DOMINANT:
        return ""
    much = "more than all" if share > 1.0 else f"{100 * share:.0f} %"
    return f" Row {printable(labels[row])} has {much} of the gain of {trial.name}: look at it."


def _rows_of_fit(pareto_k: Array, labels: Any) -> str:
    """Sentence on a few rows, if any, that determine the fit more than all others."""
    rows = np.flatnonzero(pareto_k > _NO_MEAN)
    if not 0 < len(rows) <= _ROWS:
        return ""
    rows = rows[np.argsort(-pareto_k[rows])]
    each = ", ".join(f"{printable(labels[row])} (Pareto k {pareto_k[row]:.2g})" for row in rows)
    if len(rows) == 1:
        return f" The fit depends on row {each} more than on any other: look at it."
    return f" The fit depends on rows {each} more than on any others: look at them."


def _misfits(n: int) -> str:
    return f", {n} misfit{'s' * (n > 1)}" if n else ""


def _of_class_weight(model: Any, wrong: list[Check], choice: Trial | None) -> str:
    """Sentence on class weights, which change the shares that the model predicts."""
    weights = getattr(model, "class_weight", None)
    shares = any(check.name.startswith("share of class") for check in wrong)
    told = choice is not None and "class_weight" in choice.name
    if weights is None or not shares:
        return ""
    because = (
        f" class_weight={weights!r} weighs the classes, so that the probabilities are of shares "
        "that the rows do not have."
    )
    return because if told else f"{because} Fit without it for probabilities of these rows."


def _arguments_of_fit(choice: Trial | None, estimator: Any, by_row: dict[str, Any]) -> str:
    """Sentence on the call of ``fit``, if arguments by row have other names in the suggestion."""
    given = [name for name, value in by_row.items() if value is not None]
    names = {} if choice is None else names_in_fit(choice.estimator, given)
    if not names or names == names_in_fit(estimator, given):
        return ""
    arguments = ", ".join(f"{long}={short}" for short, long in names.items())
    return f" Fit it by fit(X, y, {arguments})."


def _sizes_in_fit(choice: Trial | None) -> str:
    """Sentence on the call of ``fit``, if weights should be given as sizes of averages."""
    if choice is None or not any(remedy.sizes for remedy in choice.remedies):
        return ""
    (name,) = names_in_fit(choice.estimator, ["n_averaged"]).values()
    return f" Fit it by fit(X, y, {name}=sample_weight), without weights."


def _labels_in_fit(choice: Trial | None, X: Any) -> str:
    """Sentence on the rows of ``fit``, if labels that are not in X have effects."""
    if choice is None or choice.group is None or choice.group.column >= 0:
        return ""
    frame = hasattr(X, "columns") or hasattr(X, "column_names")
    where = f"column {choice.group.name!r}" if frame else "last column"
    return f" Fit it to X with the labels of the groups as its {where}."


def _thirds_of(checks: list[Check]) -> str:
    """Coverage of 90 % intervals for all rows and by thirds of the mean; empty for labels."""
    each = [check for check in checks if check.name.startswith(interval_name(0.9))]
    if not each:
        return ""
    thirds = ", ".join(f"{check.measured:.0%}" for check in each[1:])
    return f"{each[0].measured:.0%}" + f" ({thirds} by thirds of the mean)" * bool(thirds)


def _row_labels(X: Any, y: Any, rows: Array) -> Any:
    """Labels of rows: from the index of a frame or series, or positions."""
    for each in (X, y):
        index = getattr(each, "index", None)
        if isinstance(index, pd.Index):
            return index[rows]
    return rows


def _row(name: str, figures: str) -> list[str]:
    """Line of a table in the report; figures after a long name go on the next line."""
    over = len(name) - _NAME
    # the name may use the blanks before the figures
    if over < 0 or not figures[: over + 1].strip():
        return [f"  {name:{_NAME}s}{figures[max(over, 0) :]}".rstrip()]
    return [*_wrapped(name, "  "), f"  {'':{_NAME}s}{figures}".rstrip()]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(text, 100, initial_indent=indent, subsequent_indent=indent)
