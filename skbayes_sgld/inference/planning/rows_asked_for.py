"""Rows that a step reads, if the user chose gradient, batch size or sampler."""

from __future__ import annotations

from skbayes_sgld._checks import check_batch_size
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._warnings import warn
from skbayes_sgld.inference.choices import GIVEN, Choice
from skbayes_sgld.inference.planning.rows_read import (
    RowsRead,
    all_rows,
    all_rows_as_given,
    cheapest_rows,
    reason_for_all_rows,
)
from skbayes_sgld.inference.planning.task import Task, start_as_mode
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.posterior.base import require
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.gradients import ControlVariate, Gradient
from skbayes_sgld.sampling.tuning.leverage import Split, bounds_to_try, leverages_of, read_always
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import NoiseLevel, choose_batch_size, measure_noise
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS


def rows_of_settings(task: Task, sampler: Sampler, mode: Mode | None) -> RowsRead:
    """Rows that the steps of a sampler read; ``mode`` is None if no mode is needed.

    Raises
    ------
    ValueError, TypeError
        If gradient, batch size and posterior do not go together.
    """
    settings, posterior = task.settings, task.posterior
    gradient, why = settings.gradient, GIVEN
    if gradient is AUTO and settings.batch_size is AUTO:
        center = start_as_mode(posterior) if mode is None else mode
        if sampler.full_gradient:
            return all_rows(f"{sampler} takes all rows", posterior, center)
        if mode is None:
            return all_rows(reason_for_all_rows(posterior), posterior, center)
        return cheapest_rows(task)
    if gradient is AUTO:
        # the second order takes a matrix of parameters by parameters, and local rows
        has_local = posterior.abilities.issuperset(ControlVariate().requires)
        gradient = ControlVariate(2 if posterior.n_params <= MAX_DENSE and has_local else 1)
        why = "the least noise that a batch of this size can have"
    if gradient.minibatch:
        return _batches(task, gradient, why, mode)
    if settings.batch_size is not AUTO:
        raise ValueError(
            f"batch_size={settings.batch_size!r} is not used by gradient={gradient!r}, which takes "
            "all rows; set gradient='minibatch' or batch_size='auto'."
        )
    return all_rows_as_given(task, mode)


def _batches(task: Task, gradient: Gradient, why: str, mode: Mode | None) -> RowsRead:
    """Batches of the user's size, or of a size without visible noise."""
    settings, posterior = task.settings, task.posterior
    batch_size, why_size, n, tau = settings.batch_size, GIVEN, posterior.n_samples, settings.tau
    if settings.gradient is AUTO and n == 0:
        raise ValueError(
            f"batch_size={batch_size} needs a posterior with rows, and this one has none; set "
            "batch_size='auto'."
        )
    for ability in gradient.requires:
        require(posterior, ability, "gradient", gradient, gradient.remedy)
    if batch_size is not AUTO:
        check_batch_size(batch_size, n, "or gradient='full', which takes each of them once")
    split = Split(posterior, start_as_mode(posterior) if mode is None else mode)
    measured, noise = AUTO in (batch_size, settings.step_size), None
    if gradient.reads_always and mode is not None:
        split, noise = _split_for(task, gradient, mode)
    elif measured:
        noise = measure_noise(split.posterior, gradient, split.mode, tau, task.seed)
    n_sampled = split.posterior.n_samples
    if batch_size is AUTO:
        assert noise is not None
        batch_size = min(choose_batch_size(noise, tau), n_sampled)
        why_size = "adds less than 0.5 % to any standard deviation, or is all rows' worth"
        if batch_size == n_sampled > THRESHOLDS.few_rows:
            warn(
                f"gradient={gradient!r} would need batches of all {n:,} rows to add less than "
                "0.5 % to any standard deviation, and takes several times as long to gather them "
                "as gradient='full' does to read them; set gradient='auto', or give batch_size.",
                UserWarning,
            )
    choices = {
        "gradient": Choice(gradient, why, settings.gradient is not AUTO),
        "batch_size": Choice(
            min(batch_size, n_sampled), why_size + split.phrase, settings.batch_size is not AUTO
        ),
    }
    return RowsRead(choices, split.posterior, split.mode, noise)


def _split_for(task: Task, gradient: Gradient, mode: Mode) -> tuple[Split, NoiseLevel]:
    """Rows that every batch reads, and the noise of the others.

    In a batch of the user's size these are so many that no other row moves a chain by much.
    """
    settings, posterior = task.settings, task.posterior
    step_size = 1.0 if settings.step_size is AUTO else settings.step_size
    leverages = leverages_of(posterior, mode)
    for bound in bounds_to_try(posterior):
        split = read_always(posterior, mode, leverages, bound)
        noise = measure_noise(
            split.posterior, gradient, split.mode, settings.tau, task.seed, surely=split.next_rows
        )
        if settings.batch_size is AUTO or not len(split.next_rows):
            break
        if noise.kick_of(step_size, settings.batch_size, settings.tau) <= THRESHOLDS.kick:
            break
    return split, noise
