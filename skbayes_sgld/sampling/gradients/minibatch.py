"""The gradient of a random batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skbayes_sgld.sampling.gradients.base import Array, BoundGradient, Gradient


class MinibatchGradient(BoundGradient):
    """The batch's gradient, rescaled by n / B."""

    def __init__(self, posterior: Any) -> None:
        super().__init__(posterior)
        self._gathers = hasattr(posterior, "take")

    def prepare(self, idx: Array | None) -> Any:
        """Gather the rows, where the posterior lets them be gathered."""
        assert idx is not None
        return self.posterior.take(idx) if self._gathers else idx

    def at(self, prepared: Any, t: int) -> Any:
        """Return the rows of step ``t``."""
        return prepared.step(t) if self._gathers else prepared[t]

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Return each row's gradient in its local parameters ``(C, n_local, B)``."""
        return self.posterior.score(self.posterior.local(theta, batch), batch)

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Return the batch's gradient, rescaled, and the prior's."""
        posterior = self.posterior
        if self._gathers:
            size = batch.y.shape[-1]
            grad = posterior.pullback(self.row_score(theta, batch), batch)
        else:
            size = batch.shape[-1]
            grad = posterior.grad_log_likelihood(theta, batch)
        grad *= posterior.n_samples / size
        grad += posterior.grad_log_prior(theta)
        return grad


@dataclass(eq=False, repr=False)
class Minibatch(Gradient):
    """The gradient of a random batch, rescaled by n / B (Karagiannis, Handout 6, eq. 2.3).

    Parameters
    ----------
    replacement : bool, default=True
        Whether a batch may hold a row twice. Without, the noise is smaller by
        ``(n - B) / (n - 1)`` and the indices cost more to draw.
    """

    replacement: bool = True

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator."""
        return MinibatchGradient(posterior)
