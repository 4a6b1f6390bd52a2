"""Gradient estimates that remember: SVRG and SAGA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import check_number
from skbayes_sgld._linalg import ROW_BLOCK
from skbayes_sgld.sampling.gradients.base import BoundGradient, Gradient
from skbayes_sgld.sampling.gradients.minibatch import MinibatchGradient

Array = NDArray[Any]


class _Snapshots(MinibatchGradient):
    """The gradient at a snapshot, exact, plus the batch's estimate of the change since.

    Without a memory the snapshot is the centre: control variates of order 1.
    """

    def __init__(self, posterior: Any, center: Array | None) -> None:
        super().__init__(posterior)
        self._center = np.zeros(posterior.n_params) if center is None else center

    def row_score(self, theta: Array, batch: Any, snapshot: Array | None = None) -> Array:
        """Return each row's change since the snapshot."""
        if snapshot is None:
            snapshot = np.broadcast_to(self._center, theta.shape)
        return super().row_score(theta, batch) - super().row_score(snapshot, batch)


class _SVRG(_Snapshots):
    def __init__(self, posterior: Any, center: Array | None, period: int) -> None:
        super().__init__(posterior, center)
        self._period = period

    def begin(self, theta: Array) -> dict[str, Array]:
        """Return a snapshot that the first step takes anew."""
        empty = np.zeros_like(theta)
        age = np.full(len(theta), self._period)
        return {"snapshot": empty, "snapshot_grad": empty, "age": age}

    def _refresh(self, theta: Array) -> dict[str, Array]:
        grad = self.posterior.grad_log_likelihood(theta)
        return {"snapshot": theta, "snapshot_grad": grad, "age": np.zeros(len(theta))}

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        posterior = self.posterior
        if memory is None:
            memory = self._refresh(np.broadcast_to(self._center, theta.shape))
        elif memory["age"][0] >= self._period:  # chains step together and are of one age
            memory.update(self._refresh(theta))
        memory["age"] = memory["age"] + 1
        snapshot = memory["snapshot"]
        if self._gathers:
            size = batch.y.shape[-1]
            change = posterior.pullback(self.row_score(theta, batch, snapshot), batch)
        else:
            size = batch.shape[-1]
            change = posterior.grad_log_likelihood(theta, batch)
            change = change - posterior.grad_log_likelihood(snapshot, batch)
        scale = posterior.n_samples / size
        return scale * change + memory["snapshot_grad"] + posterior.grad_log_prior(theta)


class _SAGA(_Snapshots):
    """The gradient of every row where it was last seen, plus the batch's change since."""

    def begin(self, theta: Array) -> dict[str, Array]:
        """Return each row's score at ``theta`` and the gradient that they add up to."""
        posterior, n = self.posterior, self.posterior.n_samples
        blocks = []
        for start in range(0, n, ROW_BLOCK):
            rows = posterior.take(np.arange(start, min(start + ROW_BLOCK, n))[None])
            blocks.append(posterior.score(posterior.local(theta, rows), rows))
        table = np.concatenate(blocks, axis=2)
        return {"table": table, "table_grad": posterior.grad_log_likelihood(theta)}

    def prepare(self, idx: Array | None) -> Any:
        """Gather the rows, and keep their numbers."""
        return super().prepare(idx), idx

    def at(self, prepared: Any, t: int) -> Any:
        """Return the rows of step ``t`` and their numbers."""
        rows, idx = prepared
        return rows.step(t), idx[t]

    def row_score(self, theta: Array, batch: Any, snapshot: Array | None = None) -> Array:
        """Return each row's change since the centre."""
        return super().row_score(theta, batch[0], snapshot)

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        posterior, (rows, idx) = self.posterior, batch
        if memory is None:
            center = np.broadcast_to(self._center, theta.shape)
            total = posterior.grad_log_likelihood(center)
            change = posterior.pullback(self.row_score(theta, batch), rows)
        else:
            table, total = memory["table"], memory["table_grad"]
            score = MinibatchGradient.row_score(self, theta, rows)
            chain, local = np.arange(len(theta))[:, None, None], np.arange(table.shape[1])[:, None]
            at = chain, local, idx[:, None]
            change = posterior.pullback(score - table[at], rows)
            table[at] = score
            memory["table_grad"] = total + change
        scale = posterior.n_samples / idx.shape[-1]
        return scale * change + total + posterior.grad_log_prior(theta)


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
        """Raise where the period is no number of steps."""
        check_number(self.period, "gradient.period", low=1, closed="left", integer=True)

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator."""
        return _SVRG(posterior, center, self.period)


@dataclass(eq=False, repr=False)
class SAGA(Gradient):
    """Every row's gradient where the chain last saw it, plus a batch's change since.

    Defazio, Bach & Lacoste-Julien 2014; for Langevin dynamics Dubey et al. 2016, Algorithm 1
    (SAGA-LD). A row's gradient is known by its local parameters', one number a linear predictor,
    so that each chain remembers n numbers and not n times d. Batches hold no row twice.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(gradient="saga", batch_size=20)
    SGLDLogisticRegression(batch_size=20, gradient='saga')
    """

    replacement = False

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator; raise TypeError where rows have no local parameters."""
        needs = ("take", "local", "score", "pullback")
        missing = [name for name in needs if not hasattr(posterior, name)]
        if missing:
            raise TypeError(
                f"gradient='saga' needs a posterior with {', '.join(needs)}; "
                f"{type(posterior).__name__} has no {', '.join(missing)}. Use gradient='svrg'."
            )
        return _SAGA(posterior, center)
