"""The base of all posteriors: what each has, and a default for what it has not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.differences import difference_curvature, probed_diagonal
from skbayes_sgld.posterior.protocol import ABILITIES, MEMBERS, Rows

Array = NDArray[Any]


class BasePosterior:
    """A posterior of which everything can be asked.

    A subclass has either ``log_density`` and ``grad``, or rows: ``n_samples``,
    ``log_likelihood``, ``grad_log_likelihood``, ``log_prior`` and ``grad_log_prior``. Everything
    else has a default here, or an error that says what is missing. :attr:`abilities` names what
    a posterior has of its own (see :data:`~skbayes_sgld.posterior.protocol.ABILITIES`); it
    follows from the methods that a subclass defines.

    Attributes
    ----------
    n_params : int
    param_names : list of str
    n_samples : int
        Rows of data; 0 where the posterior is a density alone.
    n_predictors : int
        Linear predictors that a row has.
    precision : float
        Rounding error of what its functions return, relative: that of float64 or float32.
    abilities : frozenset of str
    """

    n_params: int
    param_names: list[str]
    n_samples: int = 0
    n_predictors: int = 1
    precision: float = float(np.finfo(float).eps)
    abilities: frozenset[str] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Note which abilities the subclass has."""
        super().__init_subclass__(**kwargs)
        cls.abilities = frozenset(
            ability
            for ability, members in MEMBERS.items()
            if not any(_is_default(cls, member) for member in members)
        )

    def lacks(self, ability: str) -> list[str]:
        """Members that are missing for an ability."""
        if ability in self.abilities:
            return []
        return [m for m in MEMBERS[ability] if _is_default(type(self), m)] or list(MEMBERS[ability])

    # ---- what is known of the model -----------------------------------------------------------

    @property
    def cheap_full_gradient(self) -> bool:
        """Whether the gradient from all rows costs no more than one from a few."""
        return False

    @property
    def noise_index(self) -> int | None:
        """Position of a log noise variance among the parameters; None where there is none."""
        return None

    @property
    def multimodal(self) -> bool:
        """Whether chains are expected not to cross between modes by themselves."""
        return False

    @property
    def steep(self) -> bool:
        """Whether a step that is not accepted or rejected may leave its stable range."""
        return False

    @property
    def has_mode(self) -> bool:
        """Whether the posterior is known to have a mode: not to find it is an error."""
        return False

    @property
    def parameterizations(self) -> tuple[str, ...]:
        """Names of the coordinates in which the posterior can be sampled."""
        return ("centered",)

    def check_mode(self, theta: Array) -> None:
        """Raise where the mode found at ``theta (P,)`` says that the posterior is improper."""

    # ---- the density, from rows or on its own -------------------------------------------------

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""
        return self.log_likelihood(theta).sum(axis=1) + self.log_prior(theta)

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior density ``(C, P)``."""
        return self.grad_log_likelihood(theta) + self.grad_log_prior(theta)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        return self.log_density(theta), self.grad(theta)

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``; without rows all of the density is the prior."""
        return np.zeros((len(theta), 0))

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        return np.zeros_like(theta)

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""
        return self.log_density(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        return self.grad(theta)

    # ---- rows through local parameters: no default --------------------------------------------

    def take(self, idx: Array) -> Rows:
        """Rows ``idx (..., B)`` gathered."""
        raise self._lacking("local_rows")

    def local(self, theta: Array, rows: Rows) -> Array:
        """Local parameters of gathered rows ``(C, n_local, B)``."""
        raise self._lacking("local_rows")

    def score(self, u: Array, rows: Rows) -> Array:
        """Gradient of each gathered row's log likelihood in its local parameters."""
        raise self._lacking("local_rows")

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' gradients in their local parameters."""
        raise self._lacking("local_rows")

    def local_curvature(self, u: Array, rows: Rows) -> Array:
        """Minus the Hessian of each gathered row's log likelihood in its local parameters."""
        raise self._lacking("row_curvature")

    def gram(self, design: Array, local: Array) -> Array:
        """Sum over rows of ``A_i^T W_i A_i (P, P)``, A_i being what takes theta to row i's u."""
        raise self._lacking("row_curvature")

    def likelihood_curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log likelihood ``(P, P)`` at one ``theta (P,)``."""
        raise self._lacking("row_curvature")

    def subset(self, rows: slice) -> BasePosterior:
        """Posterior given some of the rows, in the same coordinates."""
        raise self._lacking("subset")

    def _lacking(self, ability: str) -> TypeError:
        return TypeError(f"{self._describe()} has no {', '.join(self.lacks(ability))}.")

    # ---- curvature ----------------------------------------------------------------------------

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log posterior ``(P, P)`` at one ``theta (P,)``."""
        return difference_curvature(self.grad, theta, self.n_samples)

    def curvature_diagonal(self, theta: Array) -> Array:
        """Diagonal of minus the Hessian ``(P,)`` at one ``theta (P,)``; without its own, a guess.

        It comes from differences of gradients in random directions.
        """
        return probed_diagonal(self.grad, theta, self.n_samples)

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal d ``(P,)`` and F ``(m, P)`` of the curvature ``diag(d) + F^T F``, or None."""
        return self.curvature_diagonal(theta), None

    def averaged_normal(self, theta: Array, temperature: float) -> tuple[Array, Array] | None:
        """Mean and precision of the normal nearest in expectation, where the mode tells little."""
        return None

    # ---- forms of the same posterior ----------------------------------------------------------

    def smoothed(self, spread: Array | None) -> BasePosterior:
        """Posterior averaged over errors of sd ``spread (P,)``; itself where it has no kinks."""
        return self

    def softened(self, spread: Array) -> BasePosterior:
        """Posterior with its kinks rounded over a part of ``spread (P,)``; itself without any."""
        return self

    def tempered(self, temperature: float) -> BasePosterior:
        """Posterior whose density, to the power 1 / temperature, is to be sampled."""
        return self

    # ---- the parameters that users know -------------------------------------------------------

    @property
    def constrained_names(self) -> list[str]:
        """Names of what :meth:`constrain` returns."""
        return self.param_names

    def constrain(self, theta: Array) -> Array:
        """Parameters that users know ``(C, n_constrained)``; theta itself by default."""
        return theta

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(C, P)`` from the parameters that users know."""
        return values

    def start(self) -> Array:
        """Point ``(P,)`` to look for the mode from."""
        return np.zeros(self.n_params)

    def zeros(self) -> Array:
        """Point ``(P,)`` at which no parameter has an effect; the origin by default."""
        return np.zeros(self.n_params)

    def draw_prior(self, generators: list[np.random.Generator]) -> Array | None:
        """Draws from the prior ``(C, n_constrained)``, one a generator; None where unknown."""
        return None

    def _describe(self) -> str:
        """Name of the model in an error."""
        return type(self).__name__


def _is_default(cls: type, member: str) -> bool:
    """Whether a class has no more of a member than the base gives it."""
    if member in BasePosterior.__annotations__:  # set by constructors, but for the rows' number
        return False
    return getattr(cls, member) is getattr(BasePosterior, member)


def require(
    posterior: BasePosterior, abilities: Iterable[str], component: str, remedy: str
) -> None:
    """Raise where a posterior lacks what a component needs.

    Parameters
    ----------
    posterior : BasePosterior
    abilities : iterable of str
        Names of :data:`~skbayes_sgld.posterior.protocol.ABILITIES`, as in ``requires``.
    component : str
        What needs them, as the user wrote it: ``"gradient='saga'"``.
    remedy : str
        What else can be done than to add what is missing: ``"set gradient='svrg'"``.

    Raises
    ------
    TypeError
        Naming component, ability, the members that are missing, and the remedy.
    """
    for ability in abilities:
        if ability not in ABILITIES:
            raise ValueError(
                f"{component} requires {ability!r}, which is no ability of posteriors; there are "
                f"{', '.join(map(repr, ABILITIES))}."
            )
        missing = posterior.lacks(ability)
        if missing:
            what = ability.replace("_", " ")
            raise TypeError(
                f"{component} needs a posterior with {what} ({', '.join(MEMBERS[ability])}); "
                f"{posterior._describe()} has no {', '.join(missing)}. Add what is missing, or "
                f"{remedy}."
            )
