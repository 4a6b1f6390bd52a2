"""Shorter steps after an overflow, if the settings exclude a sampler that rejects."""

from __future__ import annotations

from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.given import finish_given, tune_given
from skbayes_sgld.sampling.samplers import SGLD


class Shortened(Strategy):
    """The given settings with a quarter of the step size and starts around the mode."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether steps that nobody chose overflowed, and the settings exclude HMC."""
        overflowed = task.finding is not None and task.finding.step_size is not None
        return overflowed and not task.settings.left_to_tuning

    @classmethod
    def plan(cls, task: Task) -> Plan:
        """Plan of steps at most as long as the finding allows."""
        assert task.finding is not None and task.finding.step_size is not None
        tuned = tune_given(task, SGLD())
        longer = max(1.0, tuned.run.step_size / task.finding.step_size)
        why = f"shortened: {task.finding.why}"
        tuned = tuned.at(tuned.run.step_size / longer, why, longer * tuned.time)
        return finish_given(task, tuned, around=True)
