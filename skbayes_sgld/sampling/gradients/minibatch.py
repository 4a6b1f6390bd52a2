"""The gradient of a random batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

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

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Gather the rows, where the posterior lets them be gathered."""
        return self._batches.prepare(idx)

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's gradient in its local parameters ``(C, n_local, B)``."""
        return self._batches.score(theta, batch).copy()

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Batch's gradient, rescaled, and the prior's."""
        grad = self._batches.gradient(theta, batch)
        grad *= self.posterior.n_samples / self._batches.size(batch)
        grad += self._grad_log_prior(theta)
        return grad

    def bind_move(self, metric: Metric) -> Callable[[Array, Any, np.floating], Array] | None:
        """``theta + eta G g`` where it is two products, for a normal prior about zero."""
        slope, G = self.posterior.prior_slope(), metric.diagonal
        if G is None or slope is None:
            return None
        return _Move(self.posterior.n_samples * G, G * slope)


class _Move:
    """``theta + eta G g`` as ``theta (1 + eta G slope) + eta n / B G`` times the batch's gradient.

    Products are with arrays of the shape of theta: faster than those that are broadcast.
    """

    _eta: np.floating | None = None

    def __init__(self, n_of_metric: Array, pull: Array) -> None:
        self._n_of_metric, self._pull = n_of_metric, pull

    def _settle(self, eta: np.floating, shape: tuple[int, ...], batch_size: int) -> None:
        self._eta, (self._push, self._kept) = eta, np.empty((2, *shape))
        self._push[...] = eta * (self._n_of_metric / batch_size)
        self._kept[...] = 1.0 + eta * self._pull

    def __call__(self, theta: Array, batch: Any, eta: np.floating) -> Array:
        bound, rows = batch
        if eta != self._eta:
            self._settle(eta, theta.shape, bound.size)
        move: Array = bound.gradient(theta, rows)
        move *= self._push
        move += theta * self._kept
        return move


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
