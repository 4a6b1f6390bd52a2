"""SAGA: a table of the last gradient of each row, plus a batch's change since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._linalg import ROW_BLOCK
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.base import Gradient
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, State
from skbayes_sgld.sampling.gradients.svrg import SnapshotGradient


class SAGAGradient(SnapshotGradient):
    """Estimate around each chain's table of row scores, or around the centre without a table."""

    def begin(self, theta: Array) -> State:
        """Score of each row at ``theta``, and the sum of their gradients."""
        total = np.array(self.posterior.grad_log_likelihood(theta))
        return {"table": _scores(self.posterior, theta), "table_grad": total}

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Batches, with their row numbers."""
        each = np.repeat(idx, self.n_sharing, axis=1)  # a position each
        return list(zip(super().prepare(idx), each, strict=True))

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Change of each row's score since the centre."""
        return super().row_score(theta, batch[0])

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Estimate; the scores of the batch replace those in the table, in place."""
        (bound, rows), idx = batch
        if memory is None:
            return super().__call__(theta, batch[0])
        table, total = memory["table"], memory["table_grad"]
        score = bound.score(bound.local(theta, rows), rows)
        chain, local = np.arange(len(theta))[:, None, None], np.arange(table.shape[1])[:, None]
        at = chain, local, idx[:, None]
        change = bound.pullback(score - table[at], rows)
        table[at] = score
        memory["table_grad"] = total + change
        return self._estimate(change, bound.size, theta) + total


def _scores(posterior: BasePosterior, theta: Array) -> Array:
    """Gradient of every row in its local parameters ``(C, n_local, n)``."""
    n, parts = posterior.n_samples, []
    for start in range(0, n, ROW_BLOCK):
        idx = np.arange(start, min(start + ROW_BLOCK, n))
        batches = posterior.bind_batches(1, len(idx))
        rows = batches.gather(idx[None, None])[0]
        scores = [batches.score(batches.local(one, rows), rows).copy() for one in theta[:, None]]
        parts.append(np.concatenate(scores))
    return np.concatenate(parts, axis=2)


@dataclass(eq=False, repr=False)
class SAGA(Gradient):
    """Gradient from a table of each row's last gradient, plus a batch's change since.

    Defazio, Bach & Lacoste-Julien 2014; for Langevin dynamics Dubey et al. 2016, Algorithm 1
    (SAGA-LD). The gradient of a row follows from its score in its local parameters, one number for
    each linear predictor. So each chain keeps n numbers rather than n d; for rows without local
    parameters it keeps n P. A batch holds no row twice. If the mode is known, every batch reads
    the rows of high leverage, as with :class:`ControlVariate`.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(gradient="saga", batch_size=20)
    SGLDLogisticRegression(batch_size=20, gradient='saga')
    """

    replacement = False
    reads_always = True

    def make(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion | None
    ) -> BoundGradient:
        """Estimator of the gradient of ``posterior``."""
        return SAGAGradient(posterior, center=center)
