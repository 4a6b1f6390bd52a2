"""The gradient of a batch with what is known at an anchor taken out: variance reduction.

The anchor is a point that the path has passed, and its gradient from all rows is known. Who runs
the path moves the anchor along: :class:`skbayes_sgld.sampling.SVRG`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from skbayes_sgld.sampling.gradients import BoundGradient, Gradient, Minibatch

Array = NDArray[Any]


class BoundAnchored(BoundGradient):
    """``g_B(theta) - g_B(anchor) + g(anchor)``, g_B being the gradient estimated from a batch."""

    def __init__(self, posterior: Any) -> None:
        super().__init__(posterior)
        self._minibatch = Minibatch().bind(posterior, None)

    def prepare(self, idx: Array | None) -> Any:
        """Return what the steps need of the rows ``idx (T, C, B)``."""
        return self._minibatch.prepare(idx)

    def at(self, prepared: Any, t: int) -> Any:
        """Return the rows of step ``t``."""
        return self._minibatch.at(prepared, t)

    def __call__(self, theta: Array, batch: Any) -> Array:
        """Return the estimate at ``theta (C, P)``, for the batch's rows, anchor and gradient."""
        rows, anchor, exact = batch
        return self._minibatch(theta, rows) - self._minibatch(anchor, rows) + exact


@dataclass(eq=False, repr=False)
class Anchored(Gradient):
    """A batch's gradient, the same batch's at an anchor taken out, the exact one there put in.

    Unbiased, and without any variance at the anchor: ``g_B(theta) - g_B(anchor) + g(anchor)``
    (Johnson & Zhang 2013, Figure 1).

    Parameters
    ----------
    replacement : bool, default=True
        Whether a batch may hold a row twice.
    """

    replacement: bool = True

    def bind(self, posterior: Any, center: Array | None) -> BoundAnchored:
        """Return the estimator; its anchor comes with each batch, so ``center`` is not used."""
        return BoundAnchored(posterior)
