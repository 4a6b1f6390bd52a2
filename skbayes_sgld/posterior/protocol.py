"""The protocol of posteriors, their further abilities, their facts and reported parameters.

Shapes, with C chains, P parameters and B rows in a batch: ``theta`` is
``(C, P)``, one row per chain; ``idx`` is ``(C, B)``, the rows of each chain's minibatch, or None
for all rows.

Everything else that a posterior may have is an ability, named in :data:`MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array


class Expansion(NamedTuple):
    """Second-order expansion of a log density about a point.

    It is ``value + grad' delta - delta' curvature delta / 2``, with ``delta = theta - point``.

    Attributes
    ----------
    theta : ndarray of shape (P,)
        Point of the expansion.
    grad : ndarray of shape (P,)
    curvature : ndarray of shape (P, P)
        Minus the Hessian; it may be singular or indefinite.
    of_rows : tuple of two ndarrays of shape (n,)
        For rows with one local parameter u, whose score expands to ``s - W (u - u_0)``:
        ``s + W u_0`` and W. Otherwise empty.
    value : float
        Log density at the point; 0 if only differences matter.
    """

    theta: Array
    grad: Array
    curvature: Array
    of_rows: tuple[Array, ...] = ()
    value: float = 0.0

    def tempered(self, power: float) -> Expansion:
        """Expansion of the log likelihood times ``power``."""
        return Expansion(self.theta, power * self.grad, power * self.curvature)

    def log_density(self, theta: Array) -> Array:
        """Value of the expansion ``(C,)`` at ``theta (C, P)``."""
        return self.value_and_slope(theta)[0]

    def slope(self, theta: Array) -> Array:
        """Gradient of the expansion ``(C, P)``."""
        delta = (theta - self.theta).astype(self.curvature.dtype, copy=False)
        return self.grad - matmul_rows(delta, self.curvature)

    def value_and_slope(self, theta: Array) -> tuple[Array, Array]:
        """Value ``(C,)`` and gradient ``(C, P)``, from one product."""
        slope = self.slope(theta)
        return self.value + 0.5 * np.vecdot(theta - self.theta, slope + self.grad), slope

    def rounded(self) -> Expansion:
        """Expansion whose product is in single precision."""
        return self._replace(curvature=self.curvature.astype(np.float32))

    def about(self, theta: Array) -> Expansion:
        """Expansion of this function about ``theta (P,)``."""
        at = theta[None]
        value, slope = float(self.log_density(at)[0]), self.slope(at)[0]
        return Expansion(theta, slope, self.curvature, value=value)


@runtime_checkable
class Posterior(Protocol):
    """A log density and its gradient: all that a sampler with full gradients needs.

    :func:`~skbayes_sgld.own_models.as_posterior` adds everything else that the package uses, from
    the object's own methods if it has them.
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

    The log density is this sum plus the log prior; ``log_density`` and ``grad`` are optional.
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
    "subset": ("subset",),
    "constrain": ("constrained_names", "constrain", "unconstrain"),
    "start": ("start",),
    "tempered": ("tempered",),
}
"""Members that an object must have for each ability, which samplers and gradients require by name.

:class:`~skbayes_sgld.posterior.base.BasePosterior` documents them; its ``reported`` holds
``constrained_names``, ``constrain`` and ``unconstrain``.
"""


@dataclass(frozen=True)
class Facts:
    """Facts about a posterior; the defaults are for a density about which nothing is known.

    Attributes
    ----------
    has_mode : bool
        Whether there is a mode: it is then an error if the search fails.
    one_mode : bool
        Whether chains are expected to mix soon, so that many short chains are as good as few long
        ones.
    multimodal : bool
        Whether there are several modes between which chains are not expected to cross.
    has_other_starts : bool
        Whether searches from further starts may find other modes.
    n_own : int
        Number of own parameters at the end of theta; given these, the others are coefficients with
        a single mode. 0 if there are none, or theta has other entries.
    ensemble : bool
        Whether each chain starts at its own mode, and chains are compared by their predictions,
        since parameters may be permuted.
    log_concave : bool
        Whether the log density is concave, or nearly so: chains then miss no mode.
    light_tailed : bool
        Whether the tails are no heavier than those of a normal distribution.
    far_from_mode : bool
        Whether most of the posterior is far from its mode.
    steep : bool
        Whether steps that are never rejected may become unstable.
    full_support : bool
        Whether the density is positive everywhere.
    bounded_curvature : bool
        Whether the density nowhere falls like ``exp(-exp(x))``, as steeply as a wall.
    hierarchical : bool
        Whether hyperparameters of a prior are among the parameters.
    cheap_full_gradient : bool
        Whether the gradient from all rows costs no more than one from a few.
    many_at_once : bool
        Whether hundreds of positions are evaluated at little more than the cost of one.
    shares_batches : bool
        Whether several walkers of a chain can share each batch.
    condensable : bool
        Whether there are many rows, which a few of them and an expansion may replace.
    likely_normal : bool
        Whether the columns are many, and the rows so many that the posterior is nearly normal.
    likely_cubic : bool
        Whether the columns are few, and the rows so many that the log density is nearly a cubic
        polynomial.
    unequal_noise : bool
        Whether there are many normal rows, each with a noise of its own.
    thread_safe : bool
        Whether threads may call the posterior side by side.
    user_defined : bool
        Whether it is a user's own model, whose modes and gradient are not checked.
    n_predictors : int
        Number of linear predictors of a row.
    total_weight : float
        Sum of the rows' weights; 0 if unknown.
    noise_index : int or None
        Position of the log noise variance among the parameters; None without one.
    parameterizations : tuple of str
        Names of the coordinates in which the posterior can be sampled.
    normal_but_last : bool
        Whether all coordinates but the last are standard normal, independent of it and of each
        other.
    prior_slope : ndarray of shape (P,) or None
        s if the gradient of the log prior is ``s * theta``; otherwise None.
    path_length : float or None
        Time of the trajectories of HMC, if other ones than usual suit the posterior; else None.
    precision : float
        Relative rounding error of the returned arrays: that of float64 or of float32.
    """

    has_mode: bool = False
    one_mode: bool = False
    multimodal: bool = False
    has_other_starts: bool = False
    n_own: int = 0
    ensemble: bool = False
    log_concave: bool = False
    light_tailed: bool = False
    far_from_mode: bool = False
    steep: bool = False
    full_support: bool = True
    bounded_curvature: bool = True
    hierarchical: bool = False
    cheap_full_gradient: bool = False
    many_at_once: bool = False
    shares_batches: bool = False
    condensable: bool = False
    likely_normal: bool = False
    likely_cubic: bool = False
    unequal_noise: bool = False
    thread_safe: bool = False
    user_defined: bool = False
    n_predictors: int = 1
    total_weight: float = 0.0
    noise_index: int | None = None
    parameterizations: tuple[str, ...] = ("centered",)
    normal_but_last: bool = False
    prior_slope: Array | None = None
    path_length: float | None = None
    precision: float = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Reported:
    """The reported parameters; by default theta itself.

    Attributes
    ----------
    names : list of str
    values : callable
        Function from ``theta (C, P)`` to the parameters ``(C, n_reported)``.
    theta : callable
        Function from the parameters to theta.
    moves : callable
        Function from moves of theta ``(M, P)`` to the moves of parameters by which distances are
        measured.
    coords : mapping of str to sequence of str
        Labels of the parameters' dimensions, such as ``"feature"`` and ``"class"``.
    variables : mapping of str to mapping of str to tuple of str
        Where parameters that share a name are several variables of a data set: these in their
        order, each with its dimensions.
    """

    names: list[str]
    values: Callable[[Array], Array] = np.asarray
    theta: Callable[[Array], Array] = np.asarray
    moves: Callable[[Array], Array] = np.asarray
    coords: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    variables: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
