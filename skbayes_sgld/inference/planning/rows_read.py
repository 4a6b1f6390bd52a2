"""Rows that a step reads: all of them, or a batch without visible noise."""

from __future__ import annotations

from typing import NamedTuple

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.choices import Choice, Choices
from skbayes_sgld.inference.planning.lengths import expected_walkers
from skbayes_sgld.inference.planning.task import Task, start_as_mode
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.gradients import ControlVariate, Full
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel, batch_pays, cheapest_gradient
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS


class RowsRead(NamedTuple):
    """Rows and gradient of a run's steps.

    Attributes
    ----------
    choices : dict of str to Choice
        Gradient and batch size; None takes all rows.
    posterior : BasePosterior
        Posterior of the rows that steps read. It is the task's, unless batches always read some
        rows: these then count as its prior.
    mode : Mode
        Its mode.
    noise : NoiseLevel or None
        Noise of minibatches, if it was measured.
    """

    choices: Choices
    posterior: BasePosterior
    mode: Mode
    noise: NoiseLevel | None = None

    def because(self, why: str) -> RowsRead:
        """Rows as they are, with another reason for each choice."""
        choices = {name: each._replace(why=why) for name, each in self.choices.items()}
        return self._replace(choices=choices)


def cheapest_rows(task: Task) -> RowsRead:
    """Batches without visible noise or all rows, whichever costs less, if need be by measuring."""
    posterior, n_walkers = task.posterior, expected_walkers(task)
    if why := reason_for_all_rows(posterior, n_walkers):
        return all_rows(why, posterior, task.mode)
    # a batch of the least size would pay; whether one without visible noise pays is measured
    gradient, batch_size, why, split, noise = cheapest_gradient(
        posterior, task.mode, task.settings.tau, task.seed, n_walkers
    )
    size = Choice(batch_size, why + split.phrase)
    choices = {"gradient": Choice(gradient, why), "batch_size": size}
    return RowsRead(choices, split.posterior, split.mode, noise)


def needs_mode(task: Task) -> bool:
    """Whether the settings need the mode of the posterior, for metric, step size, start or rows."""
    settings = task.settings
    if settings.uses_curvature or settings.step_size is AUTO or settings.starts_at_mode:
        return True
    if settings.gradient is not AUTO:
        return settings.gradient.needs_mode
    return settings.batch_size is not AUTO or not reason_for_all_rows(task.posterior)


def all_rows_as_given(task: Task, mode: Mode | None) -> RowsRead:
    """All rows, since the user chose ``gradient="full"``."""
    choices = {
        "gradient": Choice.by_user(task.settings.gradient),
        "batch_size": Choice(None, "all rows at every step"),
    }
    return RowsRead(choices, task.posterior, mode or start_as_mode(task.posterior))


def all_rows(why: str, posterior: BasePosterior, mode: Mode) -> RowsRead:
    """All rows at every step."""
    choices = {"gradient": Choice(Full(), why), "batch_size": Choice(None, why)}
    return RowsRead(choices, posterior, mode)


def reason_for_all_rows(posterior: BasePosterior, n_walkers: int = 1) -> str:
    """Reason why every step takes all rows, for any batch noise; empty if there is none."""
    n, P = posterior.n_samples, posterior.n_params
    if n == 0:
        return "no step reads rows"
    if posterior.facts.cheap_full_gradient:
        return "the rows are summed up once, into sufficient statistics"
    if not batch_pays(posterior, THRESHOLDS.min_batch, n_walkers):
        return f"{n:,} rows: all of them cost little more than a batch"
    if not posterior.abilities.issuperset(ControlVariate().requires):
        return "rows without local parameters: a batch would be noisy"
    if P > MAX_DENSE:
        return f"{P:,} parameters: the curvature at the mode is not formed"
    if P >= 300 and n < 5 * P:
        return f"{n:,} rows of {P:,} parameters: a batch would be noisy"
    return ""
