"""Rows with a noise of their own: steps in coordinates without their funnels.

With log-linear noise, a rare category or a row far out has a mean and a noise that its few rows
alone determine. The posterior is then a funnel for each: steps of Langevin dynamics overflow,
trajectories have to be short, and Newton's method takes hundreds of steps to a mode that is far
from the centre. In other coordinates the usual strategies suit. Of 8,000 rows, fifty levels take
half of the time and have ten times as many effective draws, three rare categories a fifth of the
time, and a row at 1,000 sds a quarter. With t noise, fifty levels take half of the time and have
three times as many effective draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE, inverse_root
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.few_rows import few_rows_matter
from skbayes_sgld.inference.planning.plans import draft
from skbayes_sgld.inference.planning.rows_read import all_rows, cheapest_rows
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.behind_wall import in_coordinates, steps_behind
from skbayes_sgld.inference.strategies.condensed import averaged_rows, trajectories
from skbayes_sgld.inference.strategies.langevin import plan_steps, reads_many
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.own_noise import BehindNoise, behind_own_noise
from skbayes_sgld.posterior.parameterizations.wall import BehindWall
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.tuning.mode import ByExpansion, Center, Mode, NoModeError, newton_mode
from skbayes_sgld.sampling.tuning.mode_survey import survey

_FEW = 30  # rows of a category up to which they are looked at
_BLOCK = 4096  # rows of a product


class OwnNoise(Strategy):
    """SGLD, or HMC on the rows that matter, in coordinates without funnels."""

    only = ("unequal_noise",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the settings leave all to the tuning, before any finding."""
        settings = task.settings
        left = settings.all_left_to_tuning and settings.tau == 1.0 and task.finding is None
        return left and task.posterior.n_params <= MAX_DENSE

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan in other coordinates, if some rows have a noise of their own."""
        posterior = task.posterior
        assert isinstance(posterior, LogLinearNoisePosterior)
        rows = _rare(posterior)
        if not 0 < len(rows) < posterior.n_samples // 4:
            return task
        others = posterior.without(rows)
        try:
            mode = newton_mode(others, others.start())
        except NoModeError:
            return task
        if others.facts.has_other_starts:
            mode, modes, finding = survey(others, mode, task.settings.tau)
            if modes:
                return task
            task = task.found(choices=task.choices | {"modes": Choice(1, finding)})
        found = _about(posterior, rows, mode, np.zeros(posterior.n_params))
        if found is None:
            return task
        if found.pull.any():
            # such as one row with the weight of hundreds
            try:
                mode = newton_mode(_Tilted(others, found.pull), mode.theta)
            except NoModeError:
                return task
            found = _about(posterior, rows, mode, found.pull)
            if found is None or found.pull.any():
                return task
        why = "few rows determine a noise: it is taken by quantiles"
        inner, outer = in_coordinates(task, found.posterior, mode, why)
        rows_read = cheapest_rows(inner)
        if reads_many(rows_read, inner.posterior.n_samples):
            planned = _on_few_rows(outer, posterior, found)
            if planned is not None:
                return planned
        return steps_behind(inner, outer, rows_read)


class _Tilted(ByExpansion):
    """A posterior times the exponential of a linear function, whose mode has a given slope."""

    def __init__(self, posterior: LogLinearNoisePosterior, slope: Array) -> None:
        self._posterior, self._slope = posterior, slope
        self.n_params, self.param_names = posterior.n_params, posterior.param_names

    def expand(self, theta: Array) -> Expansion:
        at = self._posterior.expand(theta)
        value = at.value - float(self._slope @ theta)
        return at._replace(value=value, grad=at.grad - self._slope)


def _about(
    posterior: LogLinearNoisePosterior, rows: Array, mode: Mode, slope: Array
) -> BehindNoise | None:
    """Posterior in coordinates about a point at which all other rows have the given slope."""
    covariance = mode.metric.scale(np.eye(posterior.n_params))
    return behind_own_noise(posterior, rows, mode.theta, covariance, slope)


def _on_few_rows(
    task: Task, posterior: LogLinearNoisePosterior, rare: BehindNoise
) -> Plan | Task | None:
    """Plan of SGLD or HMC on the rows that matter, those with a noise of their own among them.

    None if too many rows matter.
    """
    wall: Any = task.posterior
    center, n = Center(task.mode.theta, task.mode.metric), posterior.n_samples
    others = posterior.without(rare.own)
    found = averaged_rows(others, center, task.settings.tau, task.seed, wall.coordinates)
    if found is None:
        return None
    few, off = found
    part = posterior.take(rare.together)
    few = few.with_rows(np.concatenate([few.X, part.X]), few.values.followed_by(part.values))
    inner = replace(task, posterior=BehindWall(few, wall.coordinates, wall.temperature))
    why = few_rows_matter(few.n_samples, n, off)
    rows_read = all_rows(why, inner.posterior, task.mode)
    outcome = plan_steps(inner, draft(inner, SGLD(), rows_read, task.mode), rows_read)
    if isinstance(outcome, Task):
        assert outcome.finding is not None
        inner = replace(inner, finding=outcome.finding)
        planned = trajectories(inner, center, wall, few.n_samples)
        return planned if isinstance(planned, Plan) else replace(task, finding=outcome.finding)
    size, doubt = outcome.bias
    return replace(outcome, posterior=wall, bias=(size + off, doubt))


def _rare(posterior: LogLinearNoisePosterior) -> Array:
    """Rows whose leverage in the design is that of a row of a rare category, or above."""
    n, design = posterior.n_samples, posterior.row_sum().design
    weight = np.ones(n) if posterior.weight is None else posterior.weight
    root = np.sqrt(weight if posterior.n_averaged is None else weight * posterior.n_averaged)

    def blocks() -> Iterator[Array]:
        for first in range(0, n, _BLOCK):
            rows = slice(first, min(first + _BLOCK, n))
            yield design.block(rows) * root[rows, None]

    gram = sum(block.T @ block for block in blocks())
    inverse = inverse_root(gram + np.diag(1e-9 * np.diagonal(gram) + 1e-300))
    leverages = np.concatenate([np.square(block @ inverse).sum(axis=1) for block in blocks()])
    return np.flatnonzero(leverages > max(1.0 / _FEW, 3.0 * len(inverse) / n))
