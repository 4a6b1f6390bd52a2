"""Stochastic variance reduced gradients: a batch's estimate of the change since a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.base import Gradient
from skbayes_sgld.sampling.dynamics import BoundGradient, State
from skbayes_sgld.sampling.gradients.minibatch import MinibatchGradient


@dataclass(eq=False)
class SnapshotGradient(MinibatchGradient):
    """The gradient at a snapshot, exact, plus the batch's estimate of the change since.

    The snapshot is the centre, or zero if that is None. With a ``period`` each chain has its own
    snapshot, taken again every ``period`` steps.
    """

    center: Array | None = None
    period: int | None = None

    @cached_property
    def _origin(self) -> Array:
        return np.zeros(self.posterior.n_params) if self.center is None else self.center

    @cached_property
    def _grad_at_origin(self) -> Array:
        return np.array(self.posterior.grad_log_likelihood(self._origin[None]))

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Change of each row's score since the centre."""
        origin = np.broadcast_to(self._origin, theta.shape)
        return super().row_score(theta, batch) - super().row_score(origin, batch)

    def begin(self, theta: Array) -> State:
        """Empty snapshots, which the first step replaces."""
        if self.period is None:
            return {}
        empty, age = np.zeros_like(theta), np.full(len(theta), self.period)
        return {"snapshot": empty, "snapshot_grad": empty, "age": age}

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Estimate around each chain's snapshot, or around the centre."""
        since, total = np.broadcast_to(self._origin, theta.shape), self._grad_at_origin
        if memory is not None and self.period is not None:
            if memory["age"][0] >= self.period:  # chains step together: one age stands for all
                grad = np.array(self.posterior.grad_log_likelihood(theta))
                memory.update(snapshot=theta, snapshot_grad=grad, age=np.zeros(len(theta)))
            memory["age"] = memory["age"] + 1
            since, total = memory["snapshot"], memory["snapshot_grad"]
        bound, rows = batch
        return self._estimate(bound.change(theta, since, rows), bound.size, theta) + total


@dataclass(eq=False, repr=False)
class SVRG(Gradient):
    """The gradient at a snapshot of the chain, plus a batch's estimate of the change since.

    Johnson & Zhang 2013; for Langevin dynamics Dubey et al. 2016, Algorithm 2 (SVRG-LD). It
    needs no mode, and takes a gradient from all rows every ``period`` steps. If the mode is known,
    every batch reads the rows of high leverage, as with :class:`ControlVariate`.

    Parameters
    ----------
    period : int, default=100
        Steps from one snapshot to the next.
    replacement : bool, default=True
        Whether a batch may hold a row twice.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import SVRG
    >>> SGLDLogisticRegression(gradient=SVRG(period=50), batch_size=20)
    SGLDLogisticRegression(batch_size=20, gradient=SVRG(period=50))
    """

    period: int = 100
    replacement: bool = True
    reads_always = True

    def check(self) -> None:
        """Raise unless the period is a positive whole number."""
        super().check()
        check_number(self.period, "gradient.period", low=1, closed="left", integer=True)

    def make(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion | None
    ) -> BoundGradient:
        """Estimator of the gradient of ``posterior``."""
        return SnapshotGradient(posterior, center=center, period=self.period)
