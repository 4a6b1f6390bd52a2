"""A strategy for densities whose gradient says little: a random walk as wide as the model says."""

import numpy as np

from skbayes_sgld.inference.strategies.accept_reject import (
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.sampling import RandomWalk
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Center


class Walk(Strategy):
    """Random-walk Metropolis for a model of a user's own that gives ``widths``."""

    only = ("user_defined",)

    @classmethod
    def suits(cls, task):
        """Whether the settings leave all to the tuning, and the model tells how wide it is."""
        return task.settings.left_to_tuning and hasattr(task.original.model, "widths")

    @classmethod
    def plan(cls, task):
        """Plan of a walk from the model's start; a pilot adapts its metric and step size."""
        widths = np.asarray(task.original.model.widths, dtype=float)
        center = Center(task.posterior.start(), Diagonal(widths**2))
        task = task.found(mode=center)
        run, rows_read = draft_adjusted(task, RandomWalk())
        why = "the model gives its widths, for its gradient says little"
        return finish_adapted(task, rows_read, adapt_run(task, run, center, why))
