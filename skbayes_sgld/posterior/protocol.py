"""The Posterior protocol that samplers rely on, and further abilities that a posterior may have.

Shapes are the contract, with C chains, P parameters and B rows in a batch: ``theta`` is
``(C, P)``, one row per chain; ``idx`` is ``(C, B)``, the rows of each chain's minibatch, or None
for all rows.

Every protocol after the first is an optional ability; :data:`ABILITIES` gives its name, which
samplers and gradients declare in ``requires``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

Array = NDArray[Any]


class Rows(NamedTuple):
    """Rows of the data gathered for each chain, with an optional leading axis of steps.

    Attributes
    ----------
    design : ndarray of shape (..., C, B, d + 1)
        Columns of X, centred if the model centres them, then a column of ones if the model has an
        intercept.
    y : ndarray of shape (..., C, B)
    weight : ndarray of shape (..., C, B) or None
    """

    design: Array
    y: Array
    weight: Array | None

    def flatten(self) -> Rows:
        """The same rows with steps and chains on one axis."""
        n = self.y.shape[0] * self.y.shape[1]
        weight = None if self.weight is None else self.weight.reshape(n, -1)
        return Rows(self.design.reshape(n, *self.design.shape[2:]), self.y.reshape(n, -1), weight)

    def step(self, t: int) -> Rows:
        """Rows of one step."""
        weight = None if self.weight is None else self.weight[t]
        return Rows(self.design[t], self.y[t], weight)


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


class AveragedNormal(NamedTuple):
    """Normal distribution nearest to a posterior in expectation.

    Attributes
    ----------
    mean : ndarray of shape (P,)
    precision : ndarray of shape (P, P), or (P,) where it is diagonal
        At temperature 1.
    whitened : :class:`~skbayes_sgld.posterior.whitening.WhitenedPosterior` or None
        The posterior in its coordinates, where trajectories there are cheaper.
    """

    mean: Array
    precision: Array
    whitened: Any


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


class HasValueAndGrad(Protocol):
    """Log density and gradient together, where that costs less than one call of each."""

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and gradient ``(C, P)``."""


class HasLocalRows(Protocol):
    """Rows whose likelihood depends on theta through a few local parameters u.

    A linear predictor is one. Rows are gathered once for many steps, and a row's gradient is
    stored as ``n_local`` numbers in place of P.
    """

    def take(self, idx: Array) -> Rows:
        """Gathered rows ``idx (..., B)``."""

    def local(self, theta: Array, rows: Rows) -> Array:
        """Local parameters of each gathered row ``(C, n_local, B)``."""

    def score(self, u: Array, rows: Rows) -> Array:
        """Gradient of each row's log likelihood in its local parameters ``(C, n_local, B)``."""

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' gradients in their local parameters."""


class HasRowCurvature(Protocol):
    """The curvature of each row's log likelihood in its local parameters, and of their sum."""

    def local_curvature(self, u: Array, rows: Rows) -> Array:
        """Minus the Hessian of each row's log likelihood ``(C, n_local, n_local, B)``."""

    def gram(self, design: Array, local: Array) -> Array:
        """Sum over rows of ``A_i^T W_i A_i (P, P)``, where A_i maps theta to row i's u."""

    def likelihood_curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log likelihood ``(P, P)`` at one ``theta (P,)``."""


class HasCurvature(Protocol):
    """The curvature of the log density, otherwise taken from differences of gradients."""

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log density ``(P, P)`` at one ``theta (P,)``."""


class HasCurvatureDiagonal(Protocol):
    """The curvature's diagonal, without the matrix."""

    def curvature_diagonal(self, theta: Array) -> Array:
        """Diagonal of minus the Hessian ``(P,)`` at one ``theta (P,)``."""


class HasCurvatureFactor(Protocol):
    """The curvature as a diagonal plus a low rank, ``diag(d) + F^T F``, without the matrix."""

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal d ``(P,)`` and F ``(m, P)`` at one ``theta (P,)``; F None: d is everything."""


class HasSubset(Protocol):
    """A posterior close to this one that has some of the rows, in the same coordinates."""

    def subset(self, rows: slice) -> Posterior:
        """Posterior given these rows, each of which counts for those left out beside it too."""


class HasSmoothed(Protocol):
    """A density with kinks that can be replaced by smooth ones close to it."""

    def smoothed(self, spread: Array | None) -> Posterior:
        """Posterior averaged over errors of sd ``spread (P,)``; None is the prior's own width."""

    def softened(self, spread: Array) -> Posterior:
        """Posterior whose kinks are rounded over a small fraction of ``spread (P,)``."""


class HasConstrain(Protocol):
    """Reported parameters (a standard deviation) that are functions of theta (its logarithm)."""

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters."""

    def constrain(self, theta: Array) -> Array:
        """Reported parameters ``(C, n_constrained)`` at theta."""

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(C, P)`` at the reported parameters."""


class HasStart(Protocol):
    """A point from which to search for the mode."""

    def start(self) -> Array:
        """Theta ``(P,)`` to begin at."""


class HasTempered(Protocol):
    """Coordinates whose Jacobian must not be tempered along with the density."""

    def tempered(self, temperature: float) -> Posterior:
        """Posterior to hand to a sampler that raises its density to the power 1 / temperature."""


ABILITIES: dict[str, type] = {
    "density": Posterior,
    "rows": HasRows,
    "value_and_grad": HasValueAndGrad,
    "local_rows": HasLocalRows,
    "row_curvature": HasRowCurvature,
    "curvature": HasCurvature,
    "curvature_diagonal": HasCurvatureDiagonal,
    "curvature_factor": HasCurvatureFactor,
    "subset": HasSubset,
    "smoothed": HasSmoothed,
    "constrain": HasConstrain,
    "start": HasStart,
    "tempered": HasTempered,
}
"""The protocols by the names that samplers and gradients declare in ``requires``."""

MEMBERS: dict[str, tuple[str, ...]] = {
    ability: tuple(
        name for name in [*protocol.__annotations__, *vars(protocol)] if not name.startswith("_")
    )
    for ability, protocol in ABILITIES.items()
}
"""Members that an object must have for each ability."""
