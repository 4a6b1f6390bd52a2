"""Normal noise under normal priors: draws of the posterior itself, without a pilot.

Given the noise variance, the coefficients of such a model are normal: in its coordinates all but
the noise's are standard normal, and independent of it. The noise's is drawn by its quantiles, from
its density on a grid.

A default fit of 1,000 x 10 takes 0.8 of the time of :class:`Independent`, one of 3,000 x 1,000 0.7
and one of 30 x 60 0.4 of that of :class:`Langevin`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import usual_lengths
from skbayes_sgld.inference.planning.plans import chosen, draft, finish
from skbayes_sgld.inference.planning.rows_read import all_rows, all_rows_as_given
from skbayes_sgld.inference.planning.starts import choose_start
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.sampling.samplers.direct import Direct

_GRID = np.linspace(-9.0, 9.0, 1001)  # sds
_MOST_ERROR = 1e-3  # of a level
_WHY = "coefficients are normal given the noise, whose quantiles are known"


class DirectDraws(Strategy):
    """Draws of normal coordinates, and of one whose quantiles are computed."""

    only = ("normal_but_last",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the settings leave all to the tuning, at one temperature."""
        settings = task.settings
        return settings.left_to_tuning and settings.is_steady and task.finding is None

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of such draws; the task, if the grid does not determine the quantiles."""
        posterior: Any = task.posterior
        levels, error = levels_of(posterior, task.settings.tau)
        if not error < _MOST_ERROR:
            return task
        sampler = Direct.of(levels, np.sqrt(task.settings.tau) * _GRID)
        if task.settings.gradient is AUTO:
            rows_read = all_rows("no step reads rows", posterior, task.mode)
        else:
            rows_read = all_rows_as_given(task, task.mode)
        run = draft(task, sampler, rows_read, task.mode)
        lengths = usual_lengths(task, run, 1.0)
        return finish(
            task,
            run,
            rows_read.choices | chosen(task, run, _WHY, "it has no effect"),
            lengths,
            choose_start(task, task.mode, lengths.n_walkers),
            mode=task.mode,
            center=task.mode,
            bias=(0.0, 0.0),
        )


def levels_of(posterior: Any, tau: float) -> tuple[Array, float]:
    """Distribution function of the last coordinate on the grid, and its error."""
    with one_blas_thread(), np.errstate(all="ignore"):
        x = np.sqrt(tau) * _GRID[:, None]
        value = posterior.coordinates.log_marginal(x, tau) / tau
        height = np.nan_to_num(np.exp(value - np.nanmax(value)))
        levels, coarse = _cumulated(height), _cumulated(height[::2])
    return levels, float(np.abs(levels[::2] - coarse).max() + height[[0, -1]].max())


def _cumulated(height: Array) -> Array:
    """Share of the area below the grid's points."""
    area = np.concatenate([[0.0], np.cumsum(height[1:] + height[:-1])])
    return area / area[-1]
