"""Published algorithms: the recursion of a paper, without a search for the mode.

The settings give a step size, a metric other than the curvature's, and a gradient without a centre.
Chains start at draws from the prior, and no matrix of parameters by parameters is formed.
"""

from __future__ import annotations

from dataclasses import replace

from skbayes_sgld.inference.choices import GIVEN
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import usual_lengths
from skbayes_sgld.inference.planning.plans import chosen, draft, finish
from skbayes_sgld.inference.planning.rows_asked_for import rows_of_settings
from skbayes_sgld.inference.planning.rows_read import needs_mode
from skbayes_sgld.inference.planning.starts import choose_start
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO, given_or
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.samplers import SGLD


class Published(Strategy):
    """A recursion whose step size, metric and gradient the settings give."""

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether no mode is needed."""
        return not needs_mode(task)

    @classmethod
    def plan(cls, task: Task) -> Plan:
        """Plan of the recursion as given."""
        sampler = task.settings.sampler
        why = "the cheapest" if sampler is AUTO else GIVEN
        return plan_published(task, given_or(sampler, SGLD()), why)


def plan_published(task: Task, sampler: Sampler, why: str) -> Plan:
    """Plan of a sampler's recursion, with the reason for the sampler."""
    rows_read = rows_of_settings(task, sampler, None)
    assert task.settings.step_size is not AUTO
    run = replace(draft(task, sampler, rows_read, None), step_size=task.settings.step_size)
    lengths = usual_lengths(task, run, None)
    return finish(
        task,
        run,
        rows_read.choices | chosen(task, run, why, GIVEN),
        lengths,
        choose_start(task, None, lengths.n_walkers),
        mode=None,
        center=None,
    )
