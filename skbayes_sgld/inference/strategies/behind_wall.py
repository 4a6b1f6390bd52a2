"""Many rows of which few bound the posterior on one side: steps in coordinates without walls.

One row far out, whose label is nearly certain on one side, lets the posterior fall steeply there.
Steps of Langevin dynamics are then biased, and trajectories have to be short. In coordinates in
which the row's predictors are nearly normal the usual strategies suit. A logistic regression with a
row at 1,000 sds took six times as long with :class:`Condensed` (8,000 and 40,000 rows of 16
columns), one of beta-binomial totals four times, eight classes ten times. Gamma targets of 2,000
rows take a quarter of the time by independent proposals in these coordinates. Eight classes with
two rows far out in different columns take a fifth (8,000 rows).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.plans import draft
from skbayes_sgld.inference.planning.rows_read import RowsRead, cheapest_rows
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.independent import Independent
from skbayes_sgld.inference.strategies.langevin import steps_on_rows
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.wall import BehindWall as BehindWallPosterior
from skbayes_sgld.posterior.parameterizations.wall import behind_wall
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.gradients.control_variate import ExpandedGradient
from skbayes_sgld.sampling.gradients.mapped import MappedGradient
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.tuning.leverage import walls_of
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError, newton_mode


class BehindWall(Strategy):
    """Independent proposals or SGLD, and after it the next strategies, without walls."""

    only = ("condensable",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether Langevin steps are biased; or read many rows, of which one at most matters."""
        settings, read, posterior = task.settings, task.rows_read, task.posterior
        left = settings.all_left_to_tuning and settings.tau == 1.0
        found = read is not None and read.posterior.n_always <= 1
        found = found or task.finding is not None
        return left and found and posterior.n_params <= MAX_DENSE

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan in coordinates without walls, if one row makes one, or few unrelated rows."""
        posterior = task.posterior
        assert isinstance(posterior, GLMPosterior)
        # Langevin may have looked already; to look again takes 1 % of the fit
        rows = walls_of(posterior, task.mode)
        if not len(rows):
            return task
        try:
            mode = newton_mode(posterior.without(rows), task.mode.theta)
        except NoModeError:
            return task
        covariance = mode.metric.scale(np.eye(posterior.n_params))
        wall = behind_wall(posterior, rows, mode.theta, covariance)
        if wall is None:
            return task
        said = "a row bounds" if len(rows) == 1 else f"{len(rows)} rows bound"
        why = f"{said} the posterior on one side: predictors are taken by quantiles"
        inner, outer = in_coordinates(task, wall, mode, why)
        if Independent.suits(outer):
            planned = Independent.plan(outer)
            if isinstance(planned, Plan):
                return planned
        if task.rows_read is None:  # a chain of an earlier plan overflowed
            return replace(outer, finding=task.finding)
        return steps_behind(inner, outer, cheapest_rows(inner))


def in_coordinates(
    task: Task, wall: BehindWallPosterior, mode: Mode, why: str
) -> tuple[Task, Task]:
    """Tasks of the posterior in a wall's coordinates: before and after the map, without findings.

    ``mode`` is that of the rows that make no wall.
    """
    mode = mode._replace(expansion=None)  # that of all rows
    inner = replace(task.found(mode=mode, rows_read=None, finding=None), posterior=wall.inner)
    return inner, replace(inner, posterior=wall, parameterization=Choice("quantiles", why))


def steps_behind(inner: Task, outer: Task, rows_read: RowsRead) -> Plan | Task:
    """Plan of SGLD whose batches are those of the posterior before the map."""
    run = draft(inner, SGLD(), rows_read, inner.mode)
    gradient, wall = run.dynamics.gradient, outer.posterior
    assert isinstance(wall, BehindWallPosterior)
    if isinstance(gradient, ExpandedGradient):
        gradient = MappedGradient.of(gradient, wall.coordinates, wall.temperature)
    else:
        gradient = Full().bind(wall)
    dynamics = replace(run.dynamics, gradient=gradient, density_of=wall)
    return steps_on_rows(outer, replace(run, dynamics=dynamics), rows_read)
