"""A quick test in every fit, of whether the model is decisively wrong about its own rows.

At most 500 rows are left out in turn, by importance weights. If the model is right, the normal
score of each row's transform by its predictive distribution function is standard normal. These
tests look at all rows and at each third of them by fitted mean (the mean without a row depends on
the row, and would sort rows with the same columns by their residuals):

* the number of rows outside the 90 % interval, and that inside the 50 % interval, are binomial;
* the sum of the squared scores is chi-square, and the largest score tells outliers;
* the p-values of the three thirds together are those of independent tests (Fisher 1925);
* the number of labels of the second class (or of the likeliest, of several) varies at most as much
  as a binomial number with the mean probability (Hoeffding 1956).

A p-value below ``_LEVEL`` is a finding. Parameters are estimated from the same rows, which makes
the tests cautious. The screen finds gross faults; ``check_model`` finds smaller ones too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, ndtri

from skbayes_sgld.criticism.calibration import held, pearson, thirds
from skbayes_sgld.criticism.checks import family_of, residuals
from skbayes_sgld.criticism.leave_one_out import LeftOut, leave_out
from skbayes_sgld.posterior.likelihoods import Gaussian

Array = NDArray[Any]

_FEWEST_ROWS, _MOST_ROWS, _MOST_DRAWS = 10, 500, 400
# rows times draws, in 1 to 2 ms; a probability of a count or a t takes 0.2 microseconds, of a total
# 0.4, and a label as much for each class after the first as one of two classes
_NUMBERS, _SLOW, _TOTALS = 15_000, 6_000, 3_000
_LEVEL = 5e-6  # of each of fourteen tests: a false alarm in 14,000 fits at most
_EDGE = 1e-16  # precision of a probability near 1
_UNEVEN = 1.5  # ratio of the spreads of two thirds that is told as unequal noise
_MORE = 1.2  # ratio of a variance to the model's that is told as too large, or its inverse
# families with a parameter more for the spread of whole numbers
_WIDER = {"Poisson": "SGLDNegativeBinomialRegressor", "Binomial": "SGLDBetaBinomialRegressor"}
_LEVELS = 0.5, 0.9
_GROUPS = "all", "low", "middle", "high"
_OTHERS = "check_model(model, X, y) tries other models"


class Group(NamedTuple):
    """Median size of the normal scores of all rows or a third, and the least of three p-values."""

    spread: float
    p: float


def screen_size(n_rows: int, likelihood: Any) -> tuple[int, int]:
    """Numbers of rows and of draws of a screen; (0, 0) where there are too few rows."""
    if n_rows < _FEWEST_ROWS:
        return 0, 0
    rows = min(n_rows, _MOST_ROWS)
    numbers = _NUMBERS if likelihood.quadratic else _SLOW
    if hasattr(likelihood, "n_classes"):
        numbers = _NUMBERS // (likelihood.n_classes - 1)
    if likelihood.totals:
        numbers = _TOTALS
    return rows, min(_MOST_DRAWS, max(numbers // rows, 10))


def screen(predictive: Any, data: tuple[Array, ...], rng: np.random.RandomState) -> str:
    """Sentence on what is decisively wrong with a model, with its remedy; "" where nothing is.

    Parameters
    ----------
    predictive : Predictive
        Under some of the draws.
    data : tuple of ndarray
        X, y and the offset, if any, of some rows of the fit.
    rng : numpy.random.RandomState
        Source of the random transforms of whole numbers.
    """
    left = leave_out(predictive, data, smooth=False)
    likelihood = left.likelihood
    if family_of(left) == "labels":
        return _of_labels(left)
    fitted, found = left.fitted(), left.numbers
    score = residuals(left, rng)
    groups = [np.arange(len(score)), *thirds(fitted)]
    each = [_group(score[rows]) for rows in groups]
    outlier = len(score) * float(chdtrc(1.0, np.square(score).max()))
    if min(outlier, _together(each[1:]), *(group.p for group in each)) >= _LEVEL:
        return ""
    in_interval = held(found.below, found.most, 0.9)
    share, *by_third = (f"{100 * in_interval[rows].mean():.0f}" for rows in groups)
    told = (
        f"90 % intervals hold {share} % of the rows, and {', '.join(by_third[:2])} and "
        f"{by_third[2]} % of those with low, middle and high predictions"
    )
    if likelihood.whole:
        ratio = float(np.mean(pearson(left.y, found.mean, found.variance)))
        spread, remedy = _of_spread(ratio, type(likelihood).__name__)
        if ratio > 1.0 and in_interval.mean() >= 0.9:  # whole ends hide that intervals are narrow
            return f"{spread}, although {told}{remedy}; {_OTHERS}"
        return f"{told}: {spread}{remedy}; {_OTHERS}"
    central = held(found.below, found.most, 0.5).mean()
    return f"{told}: {_of_noise(each, central, likelihood)}; {_OTHERS}"


def _of_spread(ratio: float, family: str) -> tuple[str, str]:
    """Words on the spread of whole numbers beside the model's, and the remedy or ""."""
    if 1.0 / _MORE < ratio < _MORE:
        return "the numbers are spread otherwise than the model says", ""
    remedy = f"; use {_WIDER[family]}" if ratio > 1.0 and family in _WIDER else ""
    return f"the variance of the numbers is {ratio:.2g} times that of the model", remedy


def _of_noise(each: list[Group], central: float, likelihood: Any) -> str:
    """Words on the noise, with the setting that allows it."""
    low, middle, high = (group.spread for group in each[1:])
    family = type(likelihood).__name__
    constant = family in ("Gaussian", "StudentTNoise") and likelihood.n_predictors == 1
    if constant and max(low, high) > _UNEVEN * min(low, high):
        return "the noise is not the same in all rows; set noise_model='log_linear'"
    if max(low, middle, high) > _UNEVEN * min(low, middle, high):
        return "the mean, or the noise, is curved in the columns; add their squares or splines"
    half = f"and 50 % intervals hold {100 * central:.0f} %"
    if not isinstance(likelihood, Gaussian):
        return f"the numbers are spread otherwise than the model says, {half}"
    heavy = likelihood.log_concave and central > 0.5
    remedy = "; set noise_distribution='student_t'" if heavy else ""
    return f"the tails are not normal, {half}{remedy}"


def _group(score: Array) -> Group:
    """Spread and least p-value of some rows' normal scores."""
    n, total, size = len(score), float(np.square(score).sum()), np.abs(score)
    p = [_two_sided(int(np.sum(size > ndtri(0.5 + level / 2))), n, 1 - level) for level in _LEVELS]
    p.append(2.0 * float(min(chdtr(n, total), chdtrc(n, total))))
    return Group(float(np.median(size)), min(p))


def _together(thirds: list[Group]) -> float:
    """P-value of groups without a row in common; each has had three tests (Bonferroni)."""
    logs = sum(np.log(max(min(1.0, 3.0 * group.p), _EDGE)) for group in thirds)
    return float(chdtrc(2.0 * len(thirds), -2.0 * logs))


def _of_labels(left: LeftOut) -> str:
    """Words on probabilities that labels do not have."""
    probability, rows = left.probability(), np.arange(len(left.y))
    two = probability.shape[1] == 2
    chosen = np.ones(len(rows), dtype=int) if two else probability.argmax(axis=1)
    p, hit = probability[rows, chosen], left.y == chosen
    fitted = left.predictive.probability(left.data[0])[rows, chosen]
    for name, group in zip(_GROUPS, [rows, *thirds(fitted)], strict=True):
        n, mean, n_hit = len(group), float(p[group].mean()), int(hit[group].sum())
        if _two_sided(n_hit, n, mean) < _LEVEL:
            which = "" if name == "all" else f" with {name} probabilities"
            what = "are of the second class" if two else "have their likeliest label"
            fault = "the log odds are curved in the columns; add their squares or splines"
            if not two and n_hit > n * mean:
                fault = (
                    "the prior keeps probabilities near each other, or the log odds are curved in "
                    "the columns; set prior='hierarchical_normal', or add squares or splines"
                )
            return (
                f"{100 * n_hit / n:.0f} % of the rows{which} {what}, and the model says "
                f"{100 * mean:.0f} %: {fault}; {_OTHERS}"
            )
    return ""


def _two_sided(k: int, n: int, p: float) -> float:
    """Twice the probability of a binomial number at least as far out as k on its side."""
    above = float(bdtrc(k - 1, n, p)) if k > 0 else 1.0
    return 2.0 * min(float(bdtr(k, n, p)), above)
