"""The ways to sample a posterior: the first that suits the model and the settings plans the run.

A strategy may find that it does not suit after all, such as by a pilot that finds a bias, or a
density that jumps. It then passes its finding to the next one that suits, whose plan reports it.
"""

from __future__ import annotations

from skbayes_sgld._doors import Door
from skbayes_sgld.inference.choices import Choices
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.adapted import Adapted
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.given import Given
from skbayes_sgld.inference.strategies.langevin import Langevin
from skbayes_sgld.inference.strategies.published import Published
from skbayes_sgld.inference.strategies.several_modes import SeveralModes
from skbayes_sgld.inference.strategies.shortened import Shortened
from skbayes_sgld.inference.strategies.task import Finding, Task
from skbayes_sgld.posterior.base import Array, BasePosterior

STRATEGIES: list[type[Strategy] | Door] = [
    # for models with a certain fact
    Door("skbayes_sgld.own_models.strategy", "OwnModel", only=("user_defined", "multimodal")),
    SeveralModes,
    Door("skbayes_sgld.wide_rows.strategy", "Wide", only=("far_from_mode",)),
    # for settings that leave sampler, step size, metric and rows to the tuning
    Langevin,
    Adapted,
    # for settings that say how to sample
    Published,
    Shortened,
    Given,
]
"""All strategies, in order of preference."""


def make_plan(
    posterior: BasePosterior,
    settings: Settings,
    seed: int,
    positions: Array | None = None,
    finding: Finding | None = None,
    choices: Choices | None = None,
) -> Plan:
    """Plan of a run, in which every ``"auto"`` is resolved, by the first strategy that suits.

    Parameters
    ----------
    posterior : BasePosterior
    settings : Settings
    seed : int
        Seed of the pilots and of the chains.
    positions : ndarray of shape (n_chains, n_params) or None
        Last positions of an earlier run's chains, in the user's parameters: the run continues from
        there, with a burn-in only if the settings give one.
    finding : Finding or None
        Finding against an earlier plan, such as that a chain overflowed.
    choices : dict of str to Choice or None
        Choices made before the run, such as that of a prior, for the plan's table.

    Raises
    ------
    ValueError, TypeError
        If settings contradict each other, or the posterior lacks what one of them needs.
    """
    task = Task(posterior, settings, seed, positions, finding, choices or {})
    for entry in STRATEGIES:
        if entry.only and not any(getattr(task.facts, fact) for fact in entry.only):
            continue
        strategy = entry.open() if isinstance(entry, Door) else entry
        if strategy.suits(task):
            outcome = strategy.plan(task)
            if isinstance(outcome, Plan):
                return outcome
            task = outcome  # the task with a finding, for the next strategy that suits
    raise RuntimeError("no strategy suits the model and the settings.")
