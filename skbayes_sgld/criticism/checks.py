"""Checks of a model against rows that were left out; those that are tests have p-values.

The probability integral transform of an observation is an interval, ``(below, most)``: the
probabilities of a smaller observation and of one at most as large. The two are equal if y is
continuous. Residuals are normal scores of the transform (Dunn & Smyth 1996), randomised for counts:
under the true model they are standard normal in every family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

import numpy as np
from scipy import sparse, stats
from scipy.special import bdtr, bdtrc, ndtri

from skbayes_sgld._checks import printable
from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.groups import (
    Groups,
    Within,
    intraclass_correlation,
    varying_slopes,
)
from skbayes_sgld.criticism.interactions import product_tests
from skbayes_sgld.criticism.leave_one_out import LeftOut, good_k
from skbayes_sgld.diagnostics import moments_of_draws
from skbayes_sgld.posterior.conflict import prior_conflict

LEVEL = 0.05  # probability of any finding if the model is true
_TINY = 1e-16  # smallest transform: residuals are at most 8.2
_FEWEST = 20  # rows below which moments are not approximately normal
_FAR = 3.0  # sds at which a column is clipped before it is squared
_FEW_SMALL = 5.0  # variance of a count of rows below which it is not approximately normal
_PARTS = "", "lowest third", "middle third", "highest third"  # of rows by predicted mean
_NAMED = 5  # most rows whose labels are shown


@dataclass(frozen=True)
class Check:
    """One check: a row of the report.

    Attributes
    ----------
    name : str
    kind : str
        Kind of misfit, for the choice of remedies: "coverage", "skew", "tails", "noise",
        "dispersion", "zeros", "curvature", "interaction", "groups", "calibration", "range",
        "influence", "prior" or "weights".
    measured, expected, error : float
        Figure, and its expectation and standard error under the model.
    p_value : float
        P-value of a departure at least as large, in either direction; nan if the check is no
        test.
    about : str
        Subject of the figure, such as a column or the labels of rows.
    fmt : str
        Format of the figures.
    column : int
        Column of the check; -1 for all.
    columns : tuple of int
        The two columns of a check of their product; those whose slopes vary between groups.
    group : int
        Position, among the groups of the check, of those that it is about; -1 for none.
    verdict : str
        For a test "fits" or "misfit", once all tests are known, or "unknown" if its figure is nan;
        otherwise "-" or "look at it".
    """

    name: str
    kind: str
    measured: float
    expected: float = 0.0
    error: float = np.nan
    p_value: float = np.nan
    about: str = ""
    fmt: str = ".2f"
    column: int = -1
    columns: tuple[int, ...] = ()
    group: int = -1
    verdict: str = "-"


def draws_to_check(n_rows: int) -> int:
    """Number of draws to check ``n_rows`` rows with; their error is far below that of the rows."""
    return min(1000, max(2**19 // n_rows, 250))


def find_checks(
    loo: LeftOut,
    names: list[str],
    labels: Any,
    seed: int,
    classes: Any = None,
    more: Sequence[Check] = (),
    groups: Sequence[Groups] = (),
    numbers: Array | None = None,
) -> list[Check]:
    """All checks for the family of the model, with their verdicts.

    Parameters
    ----------
    loo : LeftOut
        Rows that were left out.
    names : list of str
        Names of the columns.
    labels : sequence
        Labels of the rows.
    seed : int
        Seed of the randomised transforms and of the replicates.
    classes : sequence or None, default=None
        Labels of the classes; None for their codes.
    more : sequence of Check, default=()
        Further checks, which are judged together with these.
    groups : sequence of Groups, default=()
        Groups of the rows, within which residuals may have something in common.
    numbers : ndarray of int or None, default=None
        Positions of the columns of numbers, if others hold labels.
    """
    at = np.arange(loo.data[0].shape[1]) if numbers is None else numbers
    X = _columns(loo.data[0] if numbers is None else loo.data[0][:, numbers])
    found = _found(loo, X, [printable(names[j]) for j in at], labels, seed, classes, more, groups)
    return found if numbers is None else [_renumbered(check, at) for check in found]


def _renumbered(check: Check, at: Array) -> Check:
    """The check with positions of columns among all of them."""
    column = check.column if check.column < 0 else int(at[check.column])
    return replace(check, column=column, columns=tuple(int(at[j]) for j in check.columns))


def _found(
    loo: LeftOut,
    X: Array | None,
    names: list[str],
    labels: Any,
    seed: int,
    classes: Any,
    more: Sequence[Check],
    groups: Sequence[Groups],
) -> list[Check]:
    """Checks with verdicts; ``X`` has the columns of numbers, None if they are too many."""
    rng = np.random.RandomState(seed)
    influence = [] if loo.held_out else [_influence(loo, labels)]
    if loo.family == "labels":
        of_labels = [*_label_checks(loo, X, names, classes)]
        of_labels += _groups(_label_scores(loo, rng, classes) if groups else [], X, names, groups)
        return judged([*of_labels, *influence])
    z = residuals(loo, rng)
    checks = [*_coverage(loo), *_shape(z)]
    if np.isnan(z).any():
        checks.append(unknown_rows(labels, np.flatnonzero(np.isnan(z))))
    if X is not None:
        checks += _noise(z, X, loo.fitted(), names)
    if loo.likelihood.whole:
        checks += _counts(loo, rng)
    if X is not None:
        each = [(z, loo.slope() / np.sqrt(loo.numbers.variance), "")]
        checks += [*_curvature(each, X, names), *_interactions(each, X, names, normal=True)]
    checks += _groups([(z, "")], X, names, groups)
    return judged([*checks, *more, *influence])


def judged(checks: list[Check]) -> list[Check]:
    """Checks with verdicts: for a true model 95 % of data sets have no misfit (Holm 1979)."""
    verdicts = [replace(c, verdict="unknown") if np.isnan(c.measured) else c for c in checks]
    tests = [j for j, c in enumerate(verdicts) if np.isfinite(c.p_value) and c.verdict != "unknown"]
    tests.sort(key=lambda j: checks[j].p_value)
    wrong = True
    for k, j in enumerate(tests):
        wrong = wrong and checks[j].p_value * (len(tests) - k) < LEVEL
        verdicts[j] = replace(checks[j], verdict="misfit" if wrong else "fits")
    return verdicts


# ---- transforms ----------------------------------------------------------------------------------


def share_inside(below: Array, most: Array, coverage: float) -> Array:
    """Share ``(m,)`` of each observation's transform in the central interval of ``coverage``.

    It is 0 or 1 if y is continuous. Under the true model the mean share of counts is ``coverage``,
    whereas intervals with whole ends contain more than their nominal share.
    """
    return share_between(below, most, 0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage)


def share_between(below: Array, most: Array, low: float, high: float) -> Array:
    """Share ``(m,)`` of each observation's transform between two numbers; nan if that is nan."""
    if below is most:  # of a continuous y
        return np.where(np.isnan(most), np.nan, (low <= most) & (most <= high))
    width = most - below
    part = np.minimum(most, high) - np.maximum(below, low)
    whole = (low <= most) & (most <= high)
    share = np.where(width > 0, np.clip(part, 0.0, None) / np.where(width > 0, width, 1.0), whole)
    return np.where(np.isnan(width), np.nan, share)


def two_tailed(at_most: float, at_least: float) -> float:
    """Two-sided p-value, from the probabilities of a figure at most and at least as large."""
    return min(1.0, 2.0 * float(min(at_most, at_least)))


def binomial_p_value(total: float, n: int, p: float) -> float:
    """P-value of ``total`` of n rows inside, if each is inside with probability p.

    It is twice the probability of a total at least as far out. Fractional shares, as of counts,
    make the spread smaller; the total is rounded towards its expectation.
    """
    if np.isnan(total):
        return np.nan
    least = floor(total)
    above = float(bdtrc(least - 1, n, p)) if least > 0 else 1.0
    return two_tailed(bdtr(ceil(total), n, p), above)


def bernstein_p_value(total: float, variance: float) -> float:
    """Bound on the p-value of a sum of independent variables of mean 0 and size at most 1."""
    return float(min(1.0, 2.0 * np.exp(-0.5 * total**2 / max(variance + abs(total) / 3.0, _TINY))))


def by_mean(mean: Array, n_groups: int = 3) -> list[Array]:
    """Positions of the rows in groups of equal size, by increasing predicted mean."""
    return np.array_split(np.argsort(mean, kind="stable"), n_groups)


def pearson(y: Array, mean: Array, variance: Array) -> Array:
    """Squared distance of each observation from its mean, over its variance ``(m,)``."""
    return np.square(y - mean) / variance


def residuals(loo: LeftOut, rng: np.random.RandomState) -> Array:
    """Normal scores of the transform ``(m,)``; for counts at random points of the interval."""
    below, most, *_ = loo.numbers
    u = below if below is most else below + rng.random_sample(len(below)) * (most - below)
    return ndtri(np.clip(u, _TINY, 1.0 - _TINY))


def noiseless(most: Array) -> bool:
    """Whether all rows are so close to their predictions that y has no noise.

    Under the model, all of 20 rows are within half a standard deviation in one of 3e8 data sets.
    """
    return len(most) >= _FEWEST and bool(np.all(np.abs(ndtri(most)) < 0.5))


def noise_of_measurement(likelihood: Any) -> str:
    """Setting that gives the model the measurement's noise, if y shows none."""
    family = type(likelihood).__name__
    if family == "Gamma":
        return (
            "use SGLDLinearRegression on log(y), with noise_variance the squared relative error "
            "of the measurement"
        )
    plain = family == "NormalNoise" and likelihood.n_predictors == 1
    others = "" if plain else ", noise_distribution to 'normal' and noise_model to 'constant'"
    return f"set noise_variance to that of the measurement{others}"


# ---- numbers ------------------------------------------------------------------------------------


def _coverage(loo: LeftOut) -> Iterator[Check]:
    below, most, *_ = loo.numbers
    parts = _with_thirds(loo.fitted())[: 4 if len(below) >= 3 * _FEWEST else 1]
    for coverage in (0.5, 0.9):
        share = share_inside(below, most, coverage)
        for third, rows in parts:
            name = interval_name(coverage) + (third and f", {third} of the mean")
            total, n = float(share[rows].sum()), len(rows)
            error = float(np.sqrt(coverage * (1.0 - coverage) / n))
            p_value = binomial_p_value(total, n, coverage)
            yield Check(name, "coverage", total / n, coverage, error, p_value, fmt=".1%")


def interval_name(coverage: float) -> str:
    """Name of the check of all rows' intervals."""
    return f"{100 * coverage:.0f} % intervals"


def _with_thirds(mean: Array) -> list[tuple[str, Array]]:
    """All rows, and each third of them by predicted mean, with names: "", "lowest third", ...."""
    return list(zip(_PARTS, [np.arange(len(mean)), *by_mean(mean)], strict=True))


def _shape(z: Array) -> Iterator[Check]:
    n = len(z)
    if n < _FEWEST:
        return
    skew, tails = stats.skew(z), stats.kurtosis(z)
    p_skew, p_tails = stats.skewtest(z).pvalue, stats.kurtosistest(z).pvalue
    yield Check("skew of the residuals", "skew", skew, 0.0, np.sqrt(6.0 / n), p_skew)
    name = "tails of the residuals (excess kurtosis)"
    yield Check(name, "tails", tails, 0.0, np.sqrt(24.0 / n), p_tails)


def _noise(z: Array, X: Array, mean: Array, names: list[str]) -> Iterator[Check]:
    """Rank correlation of residual sizes with the mean, and with the most correlated column."""
    n, size = len(z), ranks(np.abs(z))
    if n < _FEWEST:
        return
    error = 1.0 / np.sqrt(n - 1.0)
    rho = float(ranks(mean) @ size)
    name = "spread of residuals against the mean"
    yield Check(name, "noise", rho, 0.0, error, _two_sided(rho / error), "rank correlation")
    each = np.array([ranks(column) @ size for column in X.T])
    j = int(np.abs(each).argmax())
    p = min(1.0, X.shape[1] * _two_sided(each[j] / error))
    name = "spread of residuals against a column"
    yield Check(name, "noise", float(each[j]), 0.0, error, p, names[j], column=j)


def ranks(values: Array) -> Array:
    """Ranks, centred and scaled to unit length; zeros if all values are equal."""
    ranks = stats.rankdata(values)
    ranks -= ranks.mean()
    length = np.linalg.norm(ranks)
    return ranks / length if length > 0 else ranks


def _counts(loo: LeftOut, rng: np.random.RandomState) -> Iterator[Check]:
    _, _, mean, variance = loo.numbers
    n = len(mean)
    dispersion = float(pearson(loo.y, mean, variance).mean())
    samples = loo.sample(200, rng)  # data sets that give the distribution of the statistic
    each = pearson(samples, mean[:, None], variance[:, None]).mean(axis=0)
    sd = max(float(each.std(ddof=1)), float(np.sqrt(2.0 / n)))
    shape = 1.0 / sd**2  # gamma distribution of mean 1, for tails beyond the replicates
    law = stats.gamma(shape, scale=1.0 / shape)
    p = two_tailed(law.cdf(dispersion), law.sf(dispersion))
    name = "spread of counts (Pearson)"
    yield Check(name, "dispersion", dispersion, 1.0, sd, p, fmt=_decimals(sd))
    p_zero = loo.zero()
    variance_of_zeros = float(np.sum(p_zero * (1.0 - p_zero)))
    if variance_of_zeros >= _FEW_SMALL:
        zeros = float(np.sum(loo.y == 0))
        error = np.sqrt(variance_of_zeros)
        p = _two_sided((zeros - p_zero.sum()) / error)
        yield Check("share of zeros", "zeros", zeros / n, p_zero.mean(), error / n, p, fmt=".1%")


# ---- labels -------------------------------------------------------------------------------------


def sorted_twice(fitted: Array, without: Array) -> list[tuple[Array, Array]]:
    """All rows, and their thirds by fitted probability and by the probability without the row.

    A row's own label raises its fitted probability: the highest third then has too many of the
    label, the lowest too few. The probability without the row is lowered by its own label, and
    sorts rows with equal columns the other way. A departure counts only if both orders show it.
    """
    rows = np.arange(len(fitted))
    return [(rows, rows), *zip(by_mean(fitted), by_mean(without), strict=True)]


def _share(name: str, y: Array, p: Array) -> Check:
    """Check of the share of rows with a label, given the label's probabilities p."""
    share, expected = float(y.mean()), float(p.mean())
    error = float(np.sqrt(np.sum(p * (1.0 - p)))) / len(y)
    p_value = _two_sided((share - expected) / error)
    return Check(name, "calibration", share, expected, error, p_value, fmt=".1%")


def _label_checks(loo: LeftOut, X: Array | None, names: list[str], classes: Any) -> Iterator[Check]:
    p, fitted = loo.probability(), loo.fitted()
    K = p.shape[1]
    codes = [1] if K == 2 else range(K)
    class_names = [str(k) for k in range(K)] if classes is None else [printable(c) for c in classes]
    for k in codes:
        y, p_class = loo.y == k, p[:, k]
        about = f" of class {class_names[k]}"
        for third, parts in zip(_PARTS, sorted_twice(fitted[:, k], p_class), strict=True):
            if all(np.sum(p_class[rows] * (1.0 - p_class[rows])) >= _FEW_SMALL for rows in parts):
                name = f"share{about}, {third or 'all rows'}"
                both = [_share(name, y[rows], p_class[rows]) for rows in parts]
                yield max(both, key=lambda check: check.p_value)
        far = 1.0 - 2.0 * p_class  # Spiegelhalter (1986): Brier score minus its expectation
        error = float(np.sqrt(np.sum(np.square(far) * p_class * (1.0 - p_class))))
        if error**2 >= 1.0:
            brier, own = np.square(y - p_class).mean(), (p_class * (1.0 - p_class)).mean()
            p_value = _two_sided(len(y) * (brier - own) / error)
            name = f"Brier score{about}"
            error /= len(y)
            fmt = _decimals(error)
            yield Check(name, "calibration", brier, own, error, p_value, fmt=fmt)
    if X is not None:
        each = []
        for k in codes:
            sd = np.sqrt(np.maximum(p[:, k] * (1.0 - p[:, k]), _TINY))
            about = "" if K == 2 else f", class {class_names[k]}"
            each.append((((loo.y == k) - p[:, k]) / sd, sd, about))
        yield from _curvature(each, X, names)
        yield from _interactions(each, X, names, normal=False)


# ---- columns ------------------------------------------------------------------------------------


def _columns(X: Any) -> Array | None:
    """Columns to check, dense; None if they are too many."""
    if not 0 < X.shape[1] <= 200:
        return None
    return X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)


def _curvature(each: list[tuple[Array, Array, str]], X: Array, names: list[str]) -> Iterator[Check]:
    """Score tests of adding the square or the cube of each column; the checks of the largest ones.

    Parameters
    ----------
    each : list of tuple
        Standardised residuals ``(m,)``, their derivative in the linear predictor, and a name.
    X : ndarray of shape (m, d)
    names : list of str
    """
    n, d = X.shape
    free = n - d - 2
    spread = X.std(axis=0)
    wide = [j for j in range(d) if spread[j] > 0 and len(np.unique(X[:, j])) > 2]
    if free < _FEWEST or not wide:
        return
    standard = (X[:, wide] - X[:, wide].mean(axis=0)) / spread[wide]
    standard = np.clip(standard, -_FAR, _FAR)
    bends = np.hstack([standard**2, standard**3])
    scaled = np.column_stack([np.ones(n), X / np.where(spread > 0, spread, 1.0)])
    tests, strong = bends.shape[1] * len(each), []
    for z, rate, about in each:
        basis = np.linalg.qr(scaled * rate[:, None])[0]
        rest = bends * rate[:, None]
        rest -= basis @ (basis.T @ rest)
        size = np.sqrt(np.square(rest).sum(axis=0))
        # residual variances may differ (White 1980), or look too small if events are rare
        error = np.maximum(np.sqrt(np.square(rest).T @ np.square(z)), size)
        same = size <= 1e-8 * np.linalg.norm(bends * rate[:, None], axis=0)
        t = np.where(same, 0.0, rest.T @ z / np.where(error > 0, error, 1.0))
        p = np.minimum(1.0, tests * 2.0 * stats.t.sf(np.abs(t), free))
        clear = np.argmin(p.reshape(2, -1), axis=0)  # of square and cube
        strong += [
            (p[i], t[i], j, names[j] + about)
            for j, i in zip(wide, clear * len(wide) + np.arange(len(wide)), strict=True)
        ]
    strong.sort(key=lambda one: one[0])
    for k, (p_value, t, j, name) in enumerate(strong[:_NAMED]):
        if k and p_value >= LEVEL / 2:
            break
        yield Check("curvature along a column", "curvature", t, 0.0, 1.0, p_value, name, ".1f", j)


def _interactions(
    each: list[tuple[Array, Array, str]], X: Array, names: list[str], normal: bool
) -> Iterator[Check]:
    """Score test of adding the product of each pair of columns; the checks of the largest ones."""
    if X.shape[0] - X.shape[1] - 2 < _FEWEST:
        return
    found = [one for one in product_tests(each, X, normal) if not np.isnan(one.t)]
    for k, (p_value, t, pair, about) in enumerate(found[:_NAMED]):
        if k and p_value >= LEVEL / 2:
            break
        name = " x ".join(names[j] for j in pair) + about
        what = "product of two columns"
        yield Check(what, "interaction", t, 0.0, 1.0, p_value, name, ".1f", columns=pair)


# ---- groups -------------------------------------------------------------------------------------


def _label_scores(
    loo: LeftOut, rng: np.random.RandomState, classes: Any
) -> list[tuple[Array, str]]:
    """Normal scores of labels at random points of their intervals, with the names of classes.

    Those of two classes, or of ordered ones, are one set; of others each class against the rest.
    """
    p, y, K = loo.probability(), loo.y.astype(np.intp), loo.probability().shape[1]
    rows, random = np.arange(len(y)), rng.random_sample(len(y))
    if K == 2 or loo.likelihood.n_predictors == 1:
        most = np.cumsum(p, axis=1)[rows, y]
        below, own, each = most - p[rows, y], p[rows, y], [""]
        u = [below + random * own]
    else:
        each = [f", class {printable(k if classes is None else classes[k])}" for k in range(K)]
        u = [np.where(y == k, 1.0 - random * p[:, k], random * (1.0 - p[:, k])) for k in range(K)]
    scores = [ndtri(np.clip(one, _TINY, 1.0 - _TINY)) for one in u]
    return list(zip(scores, each, strict=True))


def _groups(
    each: list[tuple[Array, str]], X: Array | None, names: list[str], groups: Sequence[Groups]
) -> Iterator[Check]:
    """Checks of what residuals have in common within groups; the strongest of all first."""
    common, slopes = list[tuple[Within, int, str]](), list[tuple[Within, int, str]]()
    for k, group in enumerate(groups):
        for z, about in each:
            found = intraclass_correlation(z, group.codes)
            if found is not None:
                common.append((found, k, f"{group.name}, {len(group.labels)} labels{about}"))
            found = None if X is None else varying_slopes(z, group.codes, X)
            if found is not None:
                listed = ", ".join(names[j] for j in found.columns)
                slopes.append((found, k, f"{listed} by {group.name}{about}"))
    for name, some in (
        ("correlation of residuals within groups", common),
        ("slopes that vary between groups", slopes),
    ):
        some.sort(key=lambda one: one[0].p_value)
        for i, (found, k, about) in enumerate(some[:_NAMED]):
            p = min(1.0, len(some) * found.p_value)
            if i and p >= LEVEL / 2:
                break
            more: dict[str, Any] = {"columns": found.columns, "group": k}
            yield Check(name, "groups", found.measured, 0.0, found.error, p, about, **more)


def _influence(loo: LeftOut, labels: Any) -> Check:
    k, most = loo.pareto_k, good_k(loo.weight.shape[1])
    bad = np.flatnonzero(k > most)
    bad = bad[np.argsort(-k[bad])]
    name = f"influential rows (Pareto k above {most:.2g})"
    verdict = "look at it" if len(bad) else "-"
    about = _listed(labels, bad)
    return Check(name, "influence", len(bad), about=about, fmt=".0f", verdict=verdict)


def unknown_rows(labels: Any, rows: Array) -> Check:
    """Rows that no check could judge."""
    name, about = "rows without a finite prediction", _listed(labels, rows)
    return Check(name, "range", len(rows), about=about, fmt=".0f", verdict="unknown")


def _listed(labels: Any, rows: Array) -> str:
    """Labels of the first rows, and the number of further ones."""
    listed = ", ".join(printable(labels[row]) for row in rows[:_NAMED])
    return listed + (f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")


# ---- the prior ----------------------------------------------------------------------------------


def prior_check(model: Any, name_of: Callable[[str], str]) -> list[Check]:
    """Check of the pull of the prior on all coefficients; empty for models without that measure.

    ``name_of`` maps a parameter to the name of its column.
    """
    result = vars(model).get("result_")
    if result is None or not result.plan.has_data or result.predictions is not None:
        return []
    _, sds = moments_of_draws(result.draws.values, result.draws.weights)
    conflict = prior_conflict(result.plan.posterior, result.mean, sds)
    if conflict is None or not len(conflict.names):
        return []
    worst, pull = conflict.furthest
    verdict = "-" if pull <= 1.0 else "look at it"
    name = "pull of the prior, in posterior sds"
    column = printable(name_of(conflict.names[worst]))
    return [Check(name, "prior", pull, about=column, verdict=verdict)]


def _decimals(error: float) -> str:
    """Number format that shows two digits of a standard error."""
    if not 0.0 < error < np.inf:
        return ".2f"
    return f".{int(np.clip(1 - np.floor(np.log10(error)), 0, 6))}f"


def _two_sided(z: float) -> float:
    return float(2.0 * stats.norm.sf(abs(z)))
