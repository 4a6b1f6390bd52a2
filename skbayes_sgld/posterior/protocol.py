"""What a sampler needs to know of a model: the Posterior protocol.

Shapes are the contract: C chains, P parameters, B rows a batch. ``theta`` is ``(C, P)``, one row
a chain. ``idx`` is ``(C, B)``, the rows of each chain's minibatch, or None for all rows.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

Array = NDArray[Any]


@runtime_checkable
class Posterior(Protocol):
    """A model bound to its data; :class:`~skbayes_sgld.posterior.CustomPosterior` makes users' own.

    A posterior may have more than this: ``curvature`` (for the curvature preconditioner and
    Newton's method) and ``local``, ``score``, ``pullback`` (for control variates), as
    :class:`~skbayes_sgld.posterior.GLMPosterior` has.
    """

    n_samples: int
    n_params: int
    param_names: list[str]

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Return the log likelihood of each row ``(C, B)``."""

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Return its gradient summed over the batch, not rescaled ``(C, P)``."""

    def log_prior(self, theta: Array) -> Array:
        """Return the log prior ``(C,)``."""

    def grad_log_prior(self, theta: Array) -> Array:
        """Return the gradient of the log prior ``(C, P)``."""
