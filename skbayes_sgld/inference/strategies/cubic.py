"""Few columns and many rows a column: independent proposals, on a polynomial in place of the rows.

The log density is nearly a cubic polynomial then. One pass over the rows finds its coefficients,
and neither a pilot nor the chains read rows. A default logistic fit of 10,000 x 20 takes 0.75 of
the time of SGLD on batches, one of 2,000 x 5 0.6, and Poisson counts of 5,000 x 15 0.4.

The error that the polynomial makes in means and sds is measured at a few draws, on all rows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import ChainStreams
from skbayes_sgld._timings import stage
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.stand_in import error_of
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.independent import Independent
from skbayes_sgld.posterior.cubic import CubicPosterior
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_TESTS = 16  # draws at which the error is measured


class Cubic(Strategy):
    """Independence Metropolis on a cubic polynomial."""

    only = ("likely_cubic",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the prior is normal, and all is left to the tuning, at a temperature of 1."""
        posterior: Any = task.posterior
        settings = task.settings
        left = settings.all_left_to_tuning and task.finding is None
        return left and settings.is_steady and settings.tau == 1.0 and posterior.linear_prior.normal

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of proposals about the mean; the task, if the log density is not that simple."""
        posterior, mode = task.posterior, task.mode
        lost = np.linalg.LinAlgError  # a curvature that is not positive definite
        with one_blas_thread(), np.errstate(all="ignore"), suppress(lost):
            cubic = CubicPosterior(posterior, mode.theta, mode.metric.sqrt(np.eye(mode.theta.size)))
            center = Mode.from_curvature(*cubic.normal())
            off = _error(task, cubic, center)
            if off < THRESHOLDS.max_bias:
                return _planned(task, cubic, center, off)
        return task


@stage("pilots")
def _error(task: Task, cubic: CubicPosterior, center: Mode) -> float:
    """Largest error of a mean, in sds, or of an sd, relative."""
    # from one stream: the 16 of normal_moves take 0.3 ms
    normals = ChainStreams(task.seed, FIRST_CHAIN).normals(_TESTS, center.theta.size)
    moves = center.metric.sqrt(normals)
    theta = center.theta + moves
    level = cubic.log_density(theta) + 0.5 * np.square(normals).sum(axis=1)
    weight = np.exp(level - level.max())
    return error_of(cubic, theta, cubic.of_rows(theta), 1.0, weight)


def _planned(task: Task, cubic: CubicPosterior, center: Mode, off: float) -> Plan | Task:
    """Plan of proposals about the centre; the task, if they are often rejected."""
    outcome = Independent.plan(replace(task, posterior=cubic, find=lambda: center))
    if isinstance(outcome, Task):
        return task
    n = task.posterior.n_samples
    why = f"a cubic polynomial for {n:,} rows, which moves no mean or sd by more than {off:.1%}"
    read = {name: outcome.choices[name]._replace(why=why) for name in ("gradient", "batch_size")}
    choices = outcome.choices | read
    return replace(
        outcome, posterior=task.posterior, mode=task.mode, choices=choices, bias=(off, 0.0)
    )
