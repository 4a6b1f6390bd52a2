"""The ways to sample a posterior: the first that suits the model and the settings plans the run.

A strategy may find that it does not suit after all, such as by a pilot that finds a bias, or a
density that jumps. It then passes its finding to the next one that suits, whose plan reports it. A
plan whose pilot hardly moved is passed over in the same way. :class:`AcceptReject` comes last for
settings left to the tuning. It is exact, and plans whatever its pilot finds: if that hardly moved,
the run is short, and the result warns.

For example, a default logistic regression of 569 rows and 30 columns (breast cancer):

1. The strategies for models with a certain fact (``only``), such as several modes, or few rows a
   column, are not asked: this model has none of these.
2. :class:`Independent` does not suit a table of this size. :class:`Langevin` does, since the
   settings leave sampler, step size, metric and rows to the tuning, and nothing has been found
   against it. The mode is found, and the noise of a batch measured: all rows cost less. A pilot
   runs SGLD on them at a step size of 1, the first steps of the fit: its moments are off by so much
   that no shorter step worth trying would be right to 1 %. So it hands on this finding.
   (With 1,340 rows and 19 columns, NBA rookies, the pilot finds no bias: the plan is SGLD with a
   step size of 1.)
3. :class:`AcceptReject` suits, since there is a finding against SGLD. Its plan is HMC, which is
   exact at any step size. Another pilot, which begins with steps of SGLD, adapts the metric and the
   step size.

``print(model.result_.plan)`` shows each choice with its reason.
"""

from __future__ import annotations

from skbayes_sgld._doors import Door
from skbayes_sgld.inference.choices import Choices
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.task import Finding, Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.accept_reject import AcceptReject
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.given import Given
from skbayes_sgld.inference.strategies.independent import Independent
from skbayes_sgld.inference.strategies.langevin import Langevin, ShorterSteps
from skbayes_sgld.inference.strategies.published import Published
from skbayes_sgld.inference.strategies.several_modes import SeveralModes
from skbayes_sgld.inference.strategies.shortened import Shortened
from skbayes_sgld.posterior.base import Array, BasePosterior

STRATEGIES: list[type[Strategy] | Door] = [
    # for models with a certain fact
    Door("skbayes_sgld.own_models.strategy", "OwnModel", only=("user_defined", "multimodal")),
    # many rows, few of which determine a noise
    Door("skbayes_sgld.inference.strategies.own_noise", "OwnNoise", only=("unequal_noise",)),
    SeveralModes,
    Door("skbayes_sgld.wide_rows.along_predictors", "AlongPredictors", only=("far_from_mode",)),
    Door("skbayes_sgld.wide_rows.strategy", "Wide", only=("far_from_mode",)),
    # for settings that leave sampler, step size, metric and rows to the tuning; the cheapest first
    Door("skbayes_sgld.inference.strategies.direct", "DirectDraws", only=("normal_but_last",)),
    Door("skbayes_sgld.inference.strategies.nearly_normal", "NearlyNormal", ("likely_normal",)),
    Door("skbayes_sgld.inference.strategies.cubic", "Cubic", ("likely_cubic",)),
    Independent,  # few parameters and a nearly normal posterior; also the sampler by name
    Langevin,
    # many rows, one of which makes a wall
    Door("skbayes_sgld.inference.strategies.behind_wall", "BehindWall", only=("condensable",)),
    # many rows, few of which matter
    Door("skbayes_sgld.inference.strategies.condensed", "Condensed", only=("condensable",)),
    ShorterSteps,  # on batches of many rows, if most of the rows matter
    # trajectories on many rows, of which a few are steep
    Door("skbayes_sgld.inference.strategies.split", "SplitSteps", only=("condensable",)),
    AcceptReject,  # also for a named sampler that accepts or rejects
    # for settings that say how to sample
    Published,  # nothing to tune, and no mode
    Shortened,  # steps that overflowed
    Given,  # all other settings
]
"""All strategies, in order of preference.

Those with a certain fact come before those that they replace, the cheaper of two that suit before
the other, and :class:`Given` comes last.
"""


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
    known = {"positions": positions, "finding": finding, "choices": choices or {}}
    task = Task.of(posterior, settings, seed, **known)
    for entry in STRATEGIES:
        if entry.only and not any(getattr(task.facts, fact) for fact in entry.only):
            continue
        strategy = entry.open() if isinstance(entry, Door) else entry
        if strategy.suits(task):
            outcome = strategy.plan(task)
            if isinstance(outcome, Plan) and outcome.still and strategy is not AcceptReject:
                outcome = task.found(finding=Finding(outcome.still))
            if isinstance(outcome, Plan):
                return outcome
            task = outcome  # the task with a finding, for the next strategy that suits
    raise RuntimeError("no strategy suits the model and the settings.")
