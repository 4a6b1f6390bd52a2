"""Test whether weights are sizes of averages: squared residuals then fall as weights grow.

A row of weight w counts as w rows with the same y. The mean of w observations differs: it has a
w-th of their variance, and counts as one row for the noise. If the size of an average is given as a
weight, standard deviations are far too small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.checks import Check, ranks
from skbayes_sgld.criticism.leave_one_out import Data, FittedRows, LeftOut
from skbayes_sgld.likelihoods.student_t import StudentTNoise
from skbayes_sgld.prediction.far_rows import OfFarRows

_FEWEST = 20  # rows below which a rank correlation is not approximately normal
_MOST = 0.5  # leverage beyond which a residual is uninformative
_LEVEL = 5e-6  # level of this test, like that of the other tests of the screen
_DECISIVE = 12.0  # log density of residuals as those of averages, minus that as weighted rows


def weight_checks(fit: FittedRows, rows: Array, loo: LeftOut) -> list[Check]:
    """Rank correlation of the residuals' sizes with the weights of a fit.

    Empty if the weights are equal, or the family takes no sizes, or sizes were given.
    """
    model = fit.unwrapped.model
    takes = "n_averaged" in set(model._row_arguments) - set(model._arguments_of_fit)
    found = _sizes(loo.predictive, loo.data, fit.weight[rows]) if takes else None
    if found is None or loo.held_out:
        return []
    size, weight = found
    rho, p = _correlation(size, weight)
    name, error = "spread of residuals against sample_weight", 1.0 / np.sqrt(len(size) - 1.0)
    return [Check(name, "weights", rho, 0.0, error, p, "rank correlation")]


def screen_weights(predictive: Any, data: Data, weight: Array) -> str:
    """Sentence on weights that are clearly sizes of averages, with the remedy; otherwise "".

    Parameters
    ----------
    predictive : PredictiveDistribution
        Distribution of a fit with these weights.
    data : tuple of X, y and row values
        X, y and the values of some rows.
    weight : ndarray of shape (m,)
    """
    found = _sizes(predictive, data, weight)
    if found is None:
        return ""
    size, weight = found
    square, n = np.square(size), len(size)
    # log density of residuals with variance proportional to 1 / w, minus that with a constant one.
    # If the variance is constant, it is above 12 with a probability below 6e-6
    gain = np.log(square.mean()) - np.log((weight * square).mean()) + np.log(weight).mean()
    if 0.5 * n * gain < _DECISIVE or _correlation(size, weight)[1] >= _LEVEL:
        return ""
    order = np.argsort(weight, kind="stable")
    light, *_, heavy = (square[rows].mean() for rows in np.array_split(order, 3))
    normal = "set noise_distribution='normal' and " * isinstance(
        predictive.likelihood, StudentTNoise
    )
    return (
        f"squared residuals fall as sample_weight grows, to {heavy / light:.2g} times those of the "
        "rows with the least: a row of weight w counts as w rows of the same y, and standard "
        f"deviations are too small where y holds means of w observations; {normal}give their "
        "numbers as n_averaged= instead"
    )


def _sizes(predictive: Any, data: Data, weight: Array) -> tuple[Array, Array] | None:
    """Leave-one-out residual sizes ``(m,)``, in sds of an observation, and weights.

    None if the weights are equal, or too few rows have an informative residual.
    """
    X, y, row_values = data
    share, law = predictive.share, predictive.likelihood
    # far rows are excluded below
    some = OfFarRows.like(predictive) if law.log_link else predictive
    u = some.local(X, row_values)
    with np.errstate(all="ignore"):
        each = law.mean(u)
        # t-distributed noise may have no variance; its squared scale serves as unit
        variance = np.exp(u[:, 1]) if isinstance(law, StudentTNoise) else law.variance(u)
        mean, variance = each @ share, np.broadcast_to(variance, each.shape) @ share
        spread = np.square(each - mean[:, None]) @ share
        leverage = weight * spread / variance
    rows = np.flatnonzero(leverage < _MOST)
    if len(rows) < _FEWEST or np.ptp(weight[rows]) == 0.0:
        return None
    away = np.abs(y - mean)[rows] / (np.sqrt(variance[rows]) * (1.0 - leverage[rows]))
    return away, weight[rows]


def _correlation(size: Array, weight: Array) -> tuple[float, float]:
    """Rank correlation, and its one-sided p-value for values below 0."""
    rho = float(ranks(weight) @ ranks(size))
    return rho, float(stats.norm.cdf(rho * np.sqrt(len(size) - 1.0)))
