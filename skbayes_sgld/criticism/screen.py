"""A quick test, in every fit, whether the model is decisively wrong about its own rows.

At most 500 rows are left out in turn, by importance weights. If the model is right, the normal
score of each row's probability integral transform is standard normal. These tests use all rows, and
each third of them by fitted mean (the mean without a row would sort rows with equal columns by
their residuals):

* the numbers of rows inside 90 % and 50 % intervals are binomial, as in ``check_model``; a count
  whose transform is partly inside counts as that part;
* the sum of the squared scores is chi-square, and the largest score shows outliers;
* the p-values of the three thirds are combined as independent (Fisher 1925);
* the probability of a row's own label is on average the sum of squares of its probabilities
  (Spiegelhalter 1986); Bernstein's inequality bounds the p-value;
* the number of labels of the second class (or, with several classes, of the likeliest) varies at
  most as much as a binomial number with the mean probability (Hoeffding 1956). Thirds are sorted by
  the fit and by the fit without each row; a finding must appear in both.

A p-value below ``_LEVEL`` is a finding. The parameters are estimated from the same rows, which
makes the tests conservative. The screen finds gross faults; ``check_model`` also finds smaller
ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri

from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.checks import (
    bernstein_p_value,
    binomial_p_value,
    by_mean,
    noise_of_measurement,
    noiseless,
    pearson,
    residuals,
    share_inside,
    sorted_twice,
    two_tailed,
)
from skbayes_sgld.criticism.leave_one_out import Data, LeftOut, leave_out
from skbayes_sgld.criticism.settings import advice, takes_effects, variance_is_given
from skbayes_sgld.likelihoods import NormalNoise

_LEVEL = 5e-6  # of each of fourteen tests: at most one false alarm in 14,000 fits
_SAME = 0.4  # share of rows with one value of y, beyond which no continuous noise fits
# Share inside 50 % intervals beyond which unequal noise is heavy-tailed too. With normal noise
# whose sd varies by a factor of 7 the share is 0.63; with t-distributed noise of 2.5 degrees it is
# 0.8
_PEAKED = 0.75
_UNEVEN = 1.5  # ratio of the spreads of two thirds that counts as unequal noise
_SCALED = 1.2  # ratio of squared residuals to the model's from which it is reported
_HEAVY = 2.0  # mean squared residual over that of normal noise of equal median; t(3): 2.3
_PULLED = 2.0  # posterior sds by which a prior may move the noise
_EXACT = 1e6  # posterior sds beyond which a weaker prior would leave no mode
# families with a further parameter for the spread of whole numbers
_WIDER = {"Poisson": "SGLDNegativeBinomialRegressor", "Binomial": "SGLDBetaBinomialRegressor"}
_COVERAGES = 0.5, 0.9
_CURVED = "the log odds are curved in the columns"
# words on probabilities with the wrong spread, around the setting of the prior; without a second
# remedy, curves are it
_UNSURE = (
    "the prior keeps probabilities near each other, or the log odds are curved in the columns",
    "",
)
_SURE = (
    "probabilities are too extreme, as those of many columns under a wide prior are",
    "leave columns out",
)
_NO_NOISE = (
    "y is a function of the columns without noise, for which no model of the noise is right; "
)
_TWO_VALUES = "y has two values; use SGLDLogisticRegression"
_OTHERS = "check_model(model, X, y) tries other models"


def screen_size(n_rows: int, likelihood: Any) -> tuple[int, int]:
    """Numbers of rows and draws of a screen; (0, 0) with too few rows."""
    if n_rows < 10:
        return 0, 0
    rows = min(n_rows, 500)
    # product of rows and draws that takes 1 to 2 ms. A probability of a count or of t-distributed
    # noise takes 0.2 microseconds, that of a total 0.4; the cost of labels grows with K - 1
    numbers = 15_000 if likelihood.quadratic else 6_000
    if hasattr(likelihood, "n_classes"):
        numbers = 15_000 // (likelihood.n_classes - 1)
    if likelihood.totals:
        numbers = 3_000
    return rows, min(400, max(numbers // rows, 10))


def screen(
    predictive: Any,
    data: Data,
    rng: np.random.RandomState,
    model: Any,
    own_pull: Callable[[], tuple[str, str, float] | None] = lambda: None,
) -> str:
    """Sentence on a decisive misfit of a model, with its remedy; "" if there is none.

    Parameters
    ----------
    predictive : PredictiveDistribution
        Distribution under some of the draws.
    data : tuple of X, y and row values
        X, y and the values of some rows of the fit.
    rng : numpy.random.RandomState
        Source of the random transforms of whole numbers.
    model : estimator
        Fitted model. Settings that it already has, or does not take, are no remedy.
    own_pull : callable
        Function that returns the own parameter that its prior moves most, the setting of that
        prior, and the move in posterior sds.
    """
    loo = leave_out(predictive, data, smooth=False)
    likelihood = loo.likelihood
    if loo.family == "labels":
        return _label_message(loo, model)
    below, most, mean, variance = loo.numbers
    score = residuals(loo, rng)
    inside = np.array([share_inside(below, most, coverage) for coverage in _COVERAGES])
    groups = [np.arange(len(score)), *by_mean(loo.fitted())]
    p = [_least_p_value(score[rows], inside[:, rows]) for rows in groups]
    outlier = len(score) * float(chdtrc(1.0, np.square(score).max()))
    if min(outlier, _together(p[1:]), *p) >= _LEVEL:
        return ""
    if likelihood.whole:
        ratio = float(np.mean(pearson(loo.y, mean, variance)))
        fault = _spread_message(ratio, type(likelihood).__name__)
        if not likelihood.totals and len(np.unique(loo.y)) == 2:
            fault = _TWO_VALUES
    else:
        fault = _NO_NOISE + noise_of_measurement(likelihood)
        if variance_is_given(model) or not noiseless(most):
            squares = pearson(loo.y, mean, variance)
            spreads = [float(np.median(np.abs(score[rows]))) for rows in groups[1:]]
            farthest = float(np.abs(score).max()) if outlier < _LEVEL else 0.0
            fault = _noise_message(spreads, inside[0].mean(), farthest, squares, loo, model)
    fault = _prior_message(own_pull(), model) or fault
    share, *by_third = (f"{100 * inside[1, rows].mean():.0f}" for rows in groups)
    return (
        f"90 % intervals hold {share} % of the rows, and {', '.join(by_third[:2])} and "
        f"{by_third[2]} % of those with low, middle and high predictions: {fault}; {_OTHERS}"
    )


def _prior_message(pull: tuple[str, str, float] | None, model: Any) -> str:
    """Sentence on a noise that its prior determines, as with nearly exact y; otherwise ""."""
    if pull is None or not _PULLED < abs(pull[2]) < _EXACT:
        return ""
    name, argument, move = pull
    return (
        f"{argument} moves the {name} by {move:.2g} posterior sds from the data's"
        f"{advice(model, **{argument: 'half_student_t'})}"
    )


def _spread_message(ratio: float, family: str) -> str:
    """Sentence on the spread of whole numbers relative to the model's, with a remedy if any."""
    if 1.0 / _SCALED < ratio < _SCALED:
        return "the numbers are spread otherwise than the model says"
    remedy = f"; use {_WIDER[family]}" if ratio > 1.0 and family in _WIDER else ""
    return f"the variance of the numbers is {ratio:.2g} times that of the model{remedy}"


def _noise_message(
    spreads: list[float],
    central: float,
    farthest: float,
    squares: Array,
    loo: LeftOut,
    model: Any,
) -> str:
    """Sentence on the kind of noise, with the setting that models it.

    Parameters
    ----------
    spreads : list of float
        Median size of the normal scores in each third of the rows.
    central : float
        Share of the rows inside their 50 % intervals.
    farthest : float
        Largest size of a normal score if it is decisive, otherwise 0.
    squares : ndarray of shape (m,)
        Squared residuals, over their variance under the model.
    loo : LeftOut
    model : estimator
    """
    likelihood, y = loo.likelihood, loo.y
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 2:
        return _TWO_VALUES
    if counts.max() > _SAME * len(y):  # t-distributed noise does not fit such rows
        return (
            f"{100 * counts.max() / len(y):.0f} % of the rows have the same y; model apart "
            "whether y is this value, as by SGLDLogisticRegression, and the other rows"
        )
    low, middle, high = spreads
    ratio, given = float(squares.mean()), variance_is_given(model)
    heavy = given and ratio > _HEAVY * np.median(squares) / chdtri(1.0, 0.5)
    unequal = advice(model, noise_model="log_linear")
    if unequal and max(low, high) > _UNEVEN * min(low, high):
        what, peaked = "the noise is not the same in all rows", not given and central > _PEAKED
        if likelihood.log_concave and peaked:
            what += f", nor normal, as 50 % intervals hold {100 * central:.0f} %"
            both = {"noise_model": "log_linear", "noise_distribution": "student_t"}
            unequal = advice(model, **both)
        return what + unequal
    if max(low, middle, high) > _UNEVEN * min(low, middle, high):
        return f"the mean, or the noise, is curved in the columns; add their {_curves(model)}"
    if given and not heavy and not 1.0 / _SCALED < ratio < _SCALED:
        return (
            f"the squared residuals are {ratio:.2g} times noise_variance"
            f"{advice(model, noise_variance='infer')}"
        )
    half = f"and 50 % intervals hold {100 * central:.0f} %"
    if not isinstance(likelihood, NormalNoise):
        return f"the numbers are spread otherwise than the model says, {half}"
    if not likelihood.log_concave:
        return f"the tails are not those of a t distribution, {half}"
    long = heavy or central > 0.5 or farthest > 0.0
    remedy = advice(model, noise_distribution="student_t") if long else ""
    row = f"as a row lies {farthest:.1f} sds from its prediction, " if farthest > 0.0 else ""
    return f"the tails are not normal, {row}{half}{remedy}"


def _least_p_value(score: Array, inside: Array) -> float:
    """Least p-value of some rows, by normal scores and shares inside ``(2, n)``."""
    n, total = len(score), float(np.square(score).sum())
    shares = zip(inside.sum(axis=1).tolist(), _COVERAGES, strict=True)
    p = [binomial_p_value(share, n, coverage) for share, coverage in shares]
    p.append(two_tailed(chdtr(n, total), chdtrc(n, total)))
    return min(p)


def _together(thirds: list[float]) -> float:
    """P-value of disjoint groups together; each has had three tests (Bonferroni)."""
    logs = sum(np.log(max(min(1.0, 3.0 * p), 1e-16)) for p in thirds)
    return float(chdtrc(2.0 * len(thirds), -2.0 * logs))


def _label_message(loo: LeftOut, model: Any) -> str:
    """Sentence on probabilities that do not agree with the labels."""
    p, fitted, y = loo.probability(), loo.fitted(), loo.y.astype(np.intp)
    rows, two = np.arange(len(y)), p.shape[1] == 2
    square = np.square(p).sum(axis=1)
    found, expected = float(p[rows, y].mean()), float(square.mean())
    variance = float(np.sum(np.power(p, 3).sum(axis=1) - np.square(square)))
    if bernstein_p_value(len(y) * (found - expected), variance) < _LEVEL:
        return (
            f"the labels of the rows have a probability of {100 * found:.0f} % on average, and "
            f"{100 * expected:.0f} % if the model were right: "
            f"{_spread_of_odds(model, _UNSURE if found > expected else _SURE)}; {_OTHERS}"
        )
    labels = [np.ones_like(y) if two else each.argmax(axis=1) for each in (fitted, p)]
    of_labels = (each[rows, label] for each, label in zip((fitted, p), labels, strict=True))
    names = "", " with low probabilities", " with middle probabilities", " with high probabilities"
    for which, parts in zip(names, sorted_twice(*of_labels), strict=True):
        both = []
        for part, label in zip(parts, labels, strict=True):
            n_hit, mean = int((y == label)[part].sum()), float(p[part, label[part]].mean())
            both.append((binomial_p_value(n_hit, len(part), mean), n_hit / len(part), mean))
        p_value, share, mean = max(both)
        if p_value < _LEVEL:
            what = "are of the second class" if two else "have their likeliest label"
            more = share > mean
            # whether probabilities are less extreme than the shares of the labels
            nearer = ("high" if more else "low") in which if two else more
            curved = f"{_CURVED}; add their {_curves(model)}"
            fault = _spread_of_odds(model, _UNSURE) if nearer else curved
            return (
                f"{100 * share:.0f} % of the rows{which} {what}, and the model says "
                f"{100 * mean:.0f} %: {fault}; {_OTHERS}"
            )
    return ""


def _spread_of_odds(model: Any, words: tuple[str, str]) -> str:
    """Sentence on probabilities with the wrong spread, with the prior that would mend it."""
    (what, rest), prior = words, advice(model, prior="hierarchical_normal")
    return f"{what}{prior}{', or' if prior else ';'} {rest or 'add ' + _curves(model)}"


def _curves(model: Any) -> str:
    """Functions of columns that the model can have where they are curved."""
    return "squares or smooth_effects" if takes_effects(model) else "squares"
