"""What samplers need to know of a model: the Posterior protocol, and further abilities by name.

Shapes are the contract: C chains, P parameters, B rows a batch. ``theta`` is ``(C, P)``, one row
a chain. ``idx`` is ``(C, B)``, the rows of each chain's minibatch, or None for all rows.

Every protocol but the first is an ability that a posterior may have besides; :data:`ABILITIES`
gives its name, which samplers and gradients declare in ``requires``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

Array = NDArray[Any]


class Rows(NamedTuple):
    """Rows of the data taken for some chains; a leading axis, of steps, may stand before.

    ``design`` is ``(C, B, d + 1)``, the columns (centred where the model is) and a one for the
    intercept where there is one; ``y`` and ``weight`` are ``(C, B)``.
    """

    design: Array
    y: Array
    weight: Array | None

    def flatten(self) -> Rows:
        """Return the rows with steps and chains on one axis."""
        n = self.y.shape[0] * self.y.shape[1]
        weight = None if self.weight is None else self.weight.reshape(n, -1)
        return Rows(self.design.reshape(n, *self.design.shape[2:]), self.y.reshape(n, -1), weight)

    def step(self, t: int) -> Rows:
        """Return the rows of one step."""
        weight = None if self.weight is None else self.weight[t]
        return Rows(self.design[t], self.y[t], weight)


@runtime_checkable
class Posterior(Protocol):
    """A log density with its gradient: all that a sampler on the full gradient needs.

    :func:`~skbayes_sgld.posterior.as_posterior` gives it everything else that the package asks
    of a posterior, from the object's own methods where it has them.
    """

    n_params: int
    param_names: list[str]

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""

    def grad(self, theta: Array) -> Array:
        """Its gradient ``(C, P)``."""


@runtime_checkable
class HasRows(Protocol):
    """A likelihood that is a sum over rows of data, so that minibatches can stand for all.

    The log density is then the likelihood summed plus the prior; ``log_density`` and ``grad`` of
    its own are optional.
    """

    n_samples: int

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``."""

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Its gradient summed over the batch, not rescaled ``(C, P)``."""

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""


class HasValueAndGrad(Protocol):
    """Log density and gradient together, where that costs less than one after the other."""

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and gradient ``(C, P)``."""


class HasLocalRows(Protocol):
    """Rows that see theta through a few local parameters, such as a linear predictor.

    Rows are gathered once for many steps, and a row's gradient is remembered as ``n_local``
    numbers in place of P.
    """

    def take(self, idx: Array) -> Rows:
        """Rows ``idx (..., B)`` gathered."""

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
        """Sum over rows of ``A_i^T W_i A_i (P, P)``, A_i being what takes theta to row i's u."""

    def likelihood_curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log likelihood ``(P, P)`` at one ``theta (P,)``."""


class HasCurvature(Protocol):
    """The curvature of the log density, which otherwise comes from differences of gradients."""

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log density ``(P, P)`` at one ``theta (P,)``."""


class HasCurvatureDiagonal(Protocol):
    """The curvature's diagonal, without the matrix."""

    def curvature_diagonal(self, theta: Array) -> Array:
        """Diagonal of minus the Hessian ``(P,)`` at one ``theta (P,)``."""


class HasCurvatureFactor(Protocol):
    """The curvature as a diagonal and a few rows, ``diag(d) + F^T F``, without the matrix."""

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal d ``(P,)`` and F ``(m, P)``, None where there is none, at one ``theta (P,)``."""


class HasSubset(Protocol):
    """The posterior given some of the rows, in the same coordinates."""

    def subset(self, rows: slice) -> Any:
        """Posterior of these rows."""


class HasSmoothed(Protocol):
    """A density with kinks, and smooth ones close to it."""

    def smoothed(self, spread: Array | None) -> Any:
        """Posterior averaged over errors of sd ``spread (P,)``; None is the prior's own width."""

    def softened(self, spread: Array) -> Any:
        """Posterior whose kinks are rounded over a small part of ``spread (P,)``."""


class HasConstrain(Protocol):
    """Parameters that users know (a standard deviation) as functions of theta (its logarithm)."""

    @property
    def constrained_names(self) -> list[str]:
        """Names of what :meth:`constrain` returns."""

    def constrain(self, theta: Array) -> Array:
        """Parameters ``(C, n_constrained)`` from theta."""

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(C, P)`` from the parameters."""


class HasStart(Protocol):
    """A point to look for the mode from."""

    def start(self) -> Array:
        """Theta ``(P,)``."""


class HasTempered(Protocol):
    """Coordinates whose Jacobian is not to be tempered with the density."""

    def tempered(self, temperature: float) -> Any:
        """Posterior whose density, to the power 1 / temperature, is to be sampled."""


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
"""What an object must have for an ability."""
