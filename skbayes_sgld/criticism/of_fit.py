"""The screen that ends a fit: rows are left out in turn, by weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skbayes_sgld._random import screen_generator
from skbayes_sgld._warnings import ModelMisfitWarning, warn
from skbayes_sgld.criticism.screen import screen, screen_size
from skbayes_sgld.criticism.weights import screen_weights
from skbayes_sgld.posterior.conflict import own_pull


def screen_fit(estimator: Any, rows: Any) -> None:
    """Warn where a fitted model is decisively wrong about rows that are left out in turn.

    ``rows`` are those that may be left out. Nothing is screened if there are none (None), as when
    rows are not all at hand; if the temperature is not 1; if a class has no weight; if there are
    at most as many rows as columns (a row then says too much of the parameters to be left out by
    weights); or if the draws have problems. Of weighted rows, each of which may stand for several
    or for part of one, it is asked whether the weights are sizes of averages.
    """
    result, target = estimator.result_, estimator._fitted.target
    if rows is None:
        return
    weighted = rows.weight is not None
    if weighted and (
        rows.values.n_averaged is not None or "n_averaged" not in estimator._row_arguments
    ):
        return
    # without a class, the rows have codes of those present
    if result.temperature != 1.0 or result.problems or target.present is not None:
        return
    n, S = len(rows.y), len(result.draws.flat)
    if n <= rows.X.shape[1]:
        return
    n_rows, n_draws = screen_size(n, target.likelihood)
    if n_rows == 0 or n_draws > S:
        return
    rng = screen_generator(result.plan.seed)
    sample = np.sort(rng.choice(n, n_rows, replace=False, shuffle=False))
    data = tuple(each[sample] for each in target.observed(rows))
    predictive = estimator._predictive(np.linspace(0, S - 1, n_draws).astype(int))
    if weighted:
        message = screen_weights(predictive, data, rows.weight[sample])
    else:
        pull = partial(own_pull, result.plan.posterior, result.mean)
        state = np.random.RandomState(rng.bit_generator)
        message = screen(predictive, data, state, estimator, pull)
    if message:
        warn(f"{type(estimator).__name__}: {message}.", ModelMisfitWarning)
