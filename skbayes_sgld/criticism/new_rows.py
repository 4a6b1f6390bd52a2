"""Tests of new rows, whose predictions all share the parameters of one fit.

The tests treat rows as independent. For new rows this holds only if the parameters are known: an
error of the parameters moves the predictions of all rows together. For fits to 40 rows, 90 %
intervals contain 80 to 96 % of new rows, and 90 % on average over fits. Data sets, each simulated
under one draw of the parameters, show how much the figures vary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from skbayes_sgld.criticism.checks import Check, judged
from skbayes_sgld.criticism.leave_one_out import Data, LeftOut, mix

N_DATA_SETS = 60
_NUMBERS = 2**17  # largest product of rows and draws for a data set


def with_shared_parameters(
    checks: list[Check],
    predictive: Any,
    data: Data,
    find: Callable[[LeftOut], list[Check]],
    rng: np.random.RandomState,
) -> list[Check]:
    """Checks whose errors and p-values include the uncertainty of the parameters.

    The normal score of each p-value is divided by its root mean square over data sets from the
    model, if that is above 1.

    Parameters
    ----------
    checks : list of Check
        Checks that treat the parameters as known.
    predictive : PredictiveDistribution
        Distribution under at most ``_NUMBERS / m`` draws, or 50.
    data : tuple of X, y and row values
        X, y and the values of the m new rows.
    find : callable
        Function that finds the checks of rows.
    rng : numpy.random.RandomState
        Source of the data sets.
    """
    X, _, row_values = data
    share = predictive.share
    samples = predictive.sample(X, rng, row_values)
    scores: dict[str, list[float]] = {}
    for s in rng.choice(len(share), N_DATA_SETS, p=share):
        found = find(mix(predictive, (X, samples[:, s].astype(float), row_values)))
        # the strongest check of each name
        first = {check.name: check.p_value for check in reversed(found)}
        for name, p_value in first.items():
            if np.isfinite(p_value):
                scores.setdefault(name, []).append(_score(p_value))
    wider = {name: max(1.0, float(np.sqrt(np.mean(np.square(z))))) for name, z in scores.items()}
    changed = []
    for check in checks:
        factor = wider.get(check.name, 1.0)
        if factor > 1.0 and np.isfinite(check.p_value):
            p_value = 2.0 * stats.t.sf(_score(check.p_value) / factor, N_DATA_SETS)
            check = replace(check, error=check.error * factor, p_value=float(p_value))
        changed.append(check)
    return judged(changed)


def draws_of_data_sets(n_rows: int) -> int:
    """Largest number of draws with which data sets are checked."""
    return max(_NUMBERS // n_rows, 50)


def _score(p_value: float) -> float:
    """Size of the normal score that has this two-sided p-value."""
    return float(stats.norm.isf(0.5 * max(p_value, 1e-300)))
