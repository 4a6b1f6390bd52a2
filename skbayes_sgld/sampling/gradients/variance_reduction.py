"""Gradient estimates with a memory: SVRG and SAGA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import check_number
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import BoundGradient, Metric
from skbayes_sgld.sampling.gradients.minibatch import MinibatchGradient
from skbayes_sgld.sampling.protocol import Gradient

Array = NDArray[Any]


class SnapshotGradient(MinibatchGradient):
    """The gradient at a snapshot, exact, plus the batch's estimate of the change since.

    The snapshot is the centre, which makes it control variates of order 1; subclasses move it.
    """

    def __init__(self, posterior: BasePosterior, center: Array | None) -> None:
        super().__init__(posterior)
        self._center = np.zeros(posterior.n_params) if center is None else center

    @cached_property
    def _center_grad(self) -> Array:
        return self.posterior.grad_log_likelihood(self._center[None])

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's change since the centre."""
        center = np.broadcast_to(self._center, theta.shape)
        return super().row_score(theta, batch) - super().row_score(center, batch)

    def bind_move(self, metric: Metric) -> None:
        """None: a step reads and writes what the estimator remembers."""
        return None

    def _estimate(self, theta: Array, change: Array, total: Array, size: int) -> Array:
        """Gradient from the batch's change since a snapshot, and all rows' gradient there."""
        scale = self.posterior.n_samples / size
        return scale * change + total + self._grad_log_prior(theta)

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Estimate around the centre."""
        center = np.broadcast_to(self._center, theta.shape)
        change = self._batches.change(theta, center, batch)
        return self._estimate(theta, change, self._center_grad, self._batches.size(batch))


class _SVRG(SnapshotGradient):
    def __init__(self, posterior: BasePosterior, center: Array | None, period: int) -> None:
        super().__init__(posterior, center)
        self._period = period

    def begin(self, theta: Array) -> dict[str, Array]:
        """Empty snapshots, which the first step replaces."""
        empty = np.zeros_like(theta)
        age = np.full(len(theta), self._period)
        return {"snapshot": empty, "snapshot_grad": empty, "age": age}

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Estimate around each chain's snapshot, which is renewed once a period."""
        if memory is None:
            return super().__call__(theta, batch)
        if memory["age"][0] >= self._period:  # chains step together, so one age stands for all
            grad = np.array(self.posterior.grad_log_likelihood(theta))
            memory.update(snapshot=theta, snapshot_grad=grad, age=np.zeros(len(theta)))
        memory["age"] = memory["age"] + 1
        change = self._batches.change(theta, memory["snapshot"], batch)
        return self._estimate(theta, change, memory["snapshot_grad"], self._batches.size(batch))


class _SAGA(SnapshotGradient):
    """Every row's gradient where it was last evaluated, plus the batch's change since."""

    def begin(self, theta: Array) -> dict[str, Array]:
        """Each row's score at ``theta`` and the gradient that they add up to."""
        total = np.array(self.posterior.grad_log_likelihood(theta))
        return {"table": self._batches.scores(theta), "table_grad": total}

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Gather the rows, and keep their numbers."""
        return list(zip(super().prepare(idx), idx, strict=True))

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's change since the centre."""
        return super().row_score(theta, batch[0])

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Estimate with every row's gradient where its chain last evaluated it."""
        rows, idx = batch
        if memory is None:
            return super().__call__(theta, rows)
        table, total = memory["table"], memory["table_grad"]
        score = self._batches.score(theta, rows)
        chain, local = np.arange(len(theta))[:, None, None], np.arange(table.shape[1])[:, None]
        at = chain, local, idx[:, None]
        change = self._batches.pullback(score - table[at], rows)
        table[at] = score
        memory["table_grad"] = total + change
        return self._estimate(theta, change, total, idx.shape[-1])


@dataclass(eq=False, repr=False)
class SVRG(Gradient):
    """The gradient at a snapshot of the chain, plus a batch's estimate of the change since.

    Johnson & Zhang 2013; for Langevin dynamics Dubey et al. 2016, Algorithm 2 (SVRG-LD). It
    needs no mode, and one gradient from all rows every ``period`` steps.

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

    def check(self) -> None:
        """Raise where the period is not a positive whole number, or a flag is none."""
        super().check()
        check_number(self.period, "gradient.period", low=1, closed="left", integer=True)

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Estimator."""
        return _SVRG(posterior, center, self.period)


@dataclass(eq=False, repr=False)
class SAGA(Gradient):
    """Every row's gradient where the chain last evaluated it, plus a batch's change since.

    Defazio, Bach & Lacoste-Julien 2014; for Langevin dynamics Dubey et al. 2016, Algorithm 1
    (SAGA-LD). A row's gradient is known by its local parameters', one number a linear predictor,
    so that each chain remembers n numbers and not n times d; of rows without local parameters it
    remembers n times P. Batches hold no row twice.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(gradient="saga", batch_size=20)
    SGLDLogisticRegression(batch_size=20, gradient='saga')
    """

    replacement = False

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Estimator."""
        return _SAGA(posterior, center)
