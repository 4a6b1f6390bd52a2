"""The protocol of posteriors, and the abilities that a posterior may have beyond it.

Shapes are the contract, with C chains, P parameters and B rows in a batch: ``theta`` is
``(C, P)``, one row per chain; ``idx`` is ``(C, B)``, the rows of each chain's minibatch, or None
for all rows.

Whatever else a posterior may have is an ability, by the names of :data:`MEMBERS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

Array = NDArray[Any]


class Expansion(NamedTuple):
    """Second-order expansion of a log likelihood.

    Attributes
    ----------
    theta : ndarray of shape (P,)
        Point that it is taken at.
    grad : ndarray of shape (P,)
    curvature : ndarray of shape (P, P)
        Minus the Hessian.
    by_row : tuple of two ndarrays of shape (n,)
        Of rows with one local parameter u, whose score expands to ``s - W (u - u_0)``, both
        ``s + W u_0`` and W. Otherwise empty.
    """

    theta: Array
    grad: Array
    curvature: Array
    by_row: tuple[Array, ...] = ()


@runtime_checkable
class Posterior(Protocol):
    """A log density with its gradient: all that a sampler on the full gradient needs.

    :func:`~skbayes_sgld.posterior.as_posterior` adds everything else that the package uses, from
    the object's own methods where it has them.
    """

    n_params: int
    param_names: list[str]

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""

    def grad(self, theta: Array) -> Array:
        """Gradient of the log density ``(C, P)``."""


@runtime_checkable
class HasRows(Protocol):
    """A log likelihood that is a sum over rows of data, so that minibatches can estimate it.

    The log density is then that sum plus the log prior; ``log_density`` and ``grad`` are optional.
    """

    n_samples: int

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``."""

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood ``(C, P)``, summed over the batch and not rescaled."""

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""


MEMBERS: dict[str, tuple[str, ...]] = {
    "density": ("n_params", "param_names", "log_density", "grad"),
    "rows": (
        "n_samples",
        "log_likelihood",
        "grad_log_likelihood",
        "log_prior",
        "grad_log_prior",
    ),
    "value_and_grad": ("value_and_grad",),
    "local_rows": ("bind_batches",),
    "row_curvature": ("expand_likelihood",),
    "curvature": ("curvature",),
    "curvature_diagonal": ("curvature_diagonal",),
    "curvature_factor": ("curvature_factor",),
    "subset": ("subset",),
    "smoothed": ("smoothed", "softened"),
    "constrain": ("constrained_names", "constrain", "unconstrain"),
    "start": ("start",),
    "tempered": ("tempered",),
}
"""Members that an object must have for each ability, which samplers and gradients require by name.

:class:`~skbayes_sgld.posterior.base.BasePosterior` documents them; its ``reported`` holds
``constrained_names``, ``constrain`` and ``unconstrain``.
"""
