"""The gradient of a random batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, Metric
from skbayes_sgld.sampling.gradients.batches import batches_of
from skbayes_sgld.sampling.protocol import Gradient


class MinibatchGradient(BoundGradient):
    """The batch's gradient, rescaled by n / B."""

    def __init__(self, posterior: BasePosterior) -> None:
        super().__init__(posterior)
        self._batches = batches_of(posterior)
        self._grad_log_prior: Callable[[Array], Array] = posterior.grad_log_prior

    def of_run(self) -> Self:
        """Copy for one run in one thread, whose batches are gathered into the same arrays."""
        bound = super().of_run()
        bound._batches = self._batches.of_run()
        bound._grad_log_prior = self.posterior.bind_grad_log_prior()
        return bound

    def prepare(self, idx: Array | None) -> Any:
        """Gather the rows, where the posterior lets them be gathered."""
        assert idx is not None
        return self._batches.prepare(idx)

    def at(self, prepared: Any, t: int) -> Any:
        """Rows of step ``t``."""
        return prepared[t]

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's gradient in its local parameters ``(C, n_local, B)``."""
        return self._batches.score(theta, batch).copy()

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Batch's gradient, rescaled, and the prior's."""
        grad = self._batches.gradient(theta, batch)
        grad *= self.posterior.n_samples / self._batches.size(batch)
        grad += self._grad_log_prior(theta)
        return grad

    def bind_drift(self, metric: Metric) -> Callable[[Array, Any], Array] | None:
        """``G g``, with nothing to look up, where rows are gathered."""
        if "local_rows" not in self.posterior.abilities:
            return None
        n, grad_log_prior, scale = self.posterior.n_samples, self._grad_log_prior, metric.scale

        def drift(theta: Array, batch: Any) -> Array:
            bound, rows = batch
            grad = bound.gradient(theta, rows)
            grad *= n / bound.size
            grad += grad_log_prior(theta)
            return scale(grad)

        return drift


@dataclass(eq=False, repr=False)
class Minibatch(Gradient):
    """The gradient of a random batch, rescaled by n / B (Karagiannis, Handout 6, eq. 2.3).

    Parameters
    ----------
    replacement : bool, default=True
        Whether a batch may hold a row twice. Without, the noise is smaller by
        ``(n - B) / (n - 1)`` and the indices cost more to draw.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import Minibatch
    >>> SGLDLogisticRegression(gradient=Minibatch(replacement=False), batch_size=50)
    SGLDLogisticRegression(batch_size=50, gradient=Minibatch(replacement=False))
    """

    replacement: bool = True

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Estimator."""
        return MinibatchGradient(posterior)
