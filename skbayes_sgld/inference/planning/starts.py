"""Starting points of chains: around the mode, by name, or last positions of an earlier fit."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.planning.named_starts import named_start
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.sampling.tuning.mode import Center

_WIDTH = 1.5  # in posterior sds: overdispersed, so that R-hat shows chains that have not mixed


def choose_start(
    task: Task, center: Center | None, n_walkers: int, around: bool = False
) -> tuple[Array, Choice]:
    """Starting points of all walkers ``(n_chains * n_walkers, P)``, and their choice.

    With ``around`` chains start around the mode in any metric, unless the user chose the start.
    """
    settings, posterior = task.settings, task.posterior
    if task.positions is not None:
        start = posterior.reported.theta(task.positions)
        return start, Choice("last positions", "warm_start=True")
    n_starts = n_walkers * settings.n_chains
    around = settings.init is AUTO and (settings.uses_curvature or around)
    if settings.starts_at_mode or around:
        assert center is not None
        choice = Choice("mode", "overdispersed around the mode")
        if settings.starts_at_mode:
            choice = Choice.by_user("mode")
        normals = start_normals(task.seed, range(n_starts), posterior.n_params)
        width = _WIDTH * np.sqrt(settings.tau)
        start = center.theta + width * center.metric.sqrt(normals)
    else:
        chains = range(n_starts)
        start, choice = named_start(posterior, settings.init, settings.n_chains, task.seed, chains)
    return start, choice._replace(why=choice.why + walkers(n_walkers))


def walkers(n_walkers: int) -> str:
    """Words on the number of walkers, for the reason in the plan."""
    return f", {n_walkers} walkers a chain" * (n_walkers > 1)
