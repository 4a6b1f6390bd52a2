"""The base of all posteriors: a default or an error for every method that the package uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.differences import difference_curvature, probed_diagonal
from skbayes_sgld.posterior.protocol import MEMBERS, Expansion, Facts, Reported


class BasePosterior:
    """A posterior with every method that the package uses.

    A subclass defines either ``log_density`` and ``grad``, or rows: ``n_samples``,
    ``log_likelihood``, ``grad_log_likelihood``, ``log_prior`` and ``grad_log_prior``. Every other
    method has a default here, or raises an error that names what is missing.

    Attributes
    ----------
    n_params : int
        Number of parameters P.
    param_names : list of str
        Names of the coordinates of theta.
    n_samples : int
        Number of rows of data; 0 for a density without rows.
    n_always : int
        Number of further rows that every step reads besides its batch.
    always : ndarray of int
        These rows, by their numbers among all rows.
    facts : Facts
        Facts about the posterior's shape and cost.
    inner : BasePosterior or None
        The same posterior in the model's own coordinates; None where these are its own.
    exact : BasePosterior or None
        Posterior in double precision whose gradient this one rounds, if that is to be known.
    own_parameters : tuple of OwnParameter
        Own parameters of its likelihood, such as a noise variance.
    abilities : frozenset of str
        Names in ``protocol.MEMBERS`` of what the subclass itself defines.
    """

    n_params: int
    param_names: list[str]
    n_samples: int = 0
    n_always: int = 0
    always: Array = np.zeros(0, int)
    inner: Any = None
    exact: Any = None
    own_parameters: tuple[Any, ...] = ()
    abilities: frozenset[str] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set :attr:`abilities` from the methods of the subclass."""
        super().__init_subclass__(**kwargs)
        cls.abilities = frozenset(
            ability
            for ability, members in MEMBERS.items()
            if not any(_is_default(cls, member) for member in members)
        )

    def _with(self, **attributes: Any) -> Self:
        """Copy that differs in some attributes; its cached properties are computed anew."""
        other = copy(self)
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), cached_property):
                del vars(other)[name]
        vars(other).update(attributes)
        return other

    def lacks(self, ability: str) -> list[str]:
        """Members that are missing for an ability."""
        if ability in self.abilities:
            return []
        return [m for m in MEMBERS[ability] if _is_default(type(self), m)] or list(MEMBERS[ability])

    # ---- properties of the model --------------------------------------------------------------

    @property
    def called(self) -> str:
        """Name of the model in errors."""
        return type(self).__name__

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        return Facts()

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

    def bind_log_density(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`log_density`, bound as :meth:`bind_grad` is."""
        return self.log_density

    def bind_grad(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`grad` for one run in one thread; computes what does not depend on theta once.

        A matrix product takes ``group`` positions at a time, so that the rounding of a position
        does not depend on the number of positions. None takes all positions at once, for a pilot,
        whose number of chains is fixed. Each call returns a new array.
        """
        return self.grad

    def bind_value_and_grad(
        self, followed: BasePosterior | None = None, group: int | None = GROUP
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, bound as :meth:`bind_grad` is.

        The gradient is that of ``followed``, if trajectories follow another posterior.
        """
        if followed is None or followed is self:
            return self.value_and_grad
        grad = followed.bind_grad(group)
        return lambda theta: (self.log_density(theta), grad(theta))

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``; without rows the prior is the whole density."""
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

    # ---- rows through local parameters ----------------------------------------------------------

    def bind_batches(self, n_chains: int, batch_size: int, n_walkers: int = 1) -> Batches:
        """Batches of rows for the chains of one run, in one thread."""
        return Batches(self, batch_size)

    def leverages(self, at: Expansion | Array, moves: Array, least: float) -> Array | None:
        """Leverages of each row ``(k, n)`` at a point; those below ``least`` may be 0.

        The covariance of theta about the point is ``moves^T moves``. None if leverages are unknown.
        """
        return None

    def always_reading(self, rows: Array) -> Any:
        """Posterior whose batches exclude some rows, which every step reads."""
        raise NotImplementedError

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Log likelihood and its derivatives at one ``theta (P,)``.

        Minus the Hessian is that of the rows, or an approximate ``curvature (P, P)``, if given; the
        value is then not computed.
        """
        raise NotImplementedError

    def subset(self, rows: slice) -> BasePosterior:
        """Posterior given some of the rows, reweighted to stand for all."""
        raise NotImplementedError

    # ---- curvature ----------------------------------------------------------------------------

    def expand(self, theta: Array) -> Expansion:
        """Log density and its derivatives at one ``theta (P,)``."""
        value, grad = self.value_and_grad(theta[None])
        return Expansion(theta, grad[0], self.curvature(theta), value=float(value[0]))

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log posterior ``(P, P)`` at one ``theta (P,)``."""
        return difference_curvature(self.grad, theta, self.n_samples)

    def curvature_diagonal(self, theta: Array) -> Array:
        """Diagonal of minus the Hessian ``(P,)`` at one ``theta (P,)``.

        By default it is estimated from differences of gradients in random directions.
        """
        return probed_diagonal(self.grad, theta, self.n_samples)

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal d ``(P,)`` and F ``(m, P)`` or None of the curvature ``diag(d) + F^T F``."""
        return self.curvature_diagonal(theta), None

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add minus the Hessian of the log prior at one ``theta (P,)`` to ``H (P, P)``."""
        H += difference_curvature(self.grad_log_prior, theta, 0)

    def with_prior_part(self, rows: Expansion) -> Expansion:
        """Expansion of the log posterior, given that of the log likelihood."""
        theta, H = np.atleast_2d(rows.theta).mean(axis=0), rows.curvature.copy()
        self.add_prior_curvature(H, theta)
        grad = rows.grad + self.grad_log_prior(theta[None])[0]
        value = rows.value + float(self.log_prior(theta[None])[0])
        return rows._replace(grad=grad, curvature=H, value=value)

    def centered_normal(self, anyway: bool = False) -> tuple[Array, Array] | None:
        """Mean and precision of a normal near the posterior; None if the mode is a good centre.

        With ``anyway``, since no mode was found, the normal is returned if there is one.
        """
        return None

    def mean_curvature(self, theta: Array) -> Array | None:
        """Mean of the curvatures ``(P, P)`` at draws ``(S, P)``; None if unknown."""
        return None

    # ---- forms of the same posterior ----------------------------------------------------------

    def about_draws(self, draws: Array) -> BasePosterior:
        """Posterior in coordinates that suit draws ``(S, P)`` better; itself if it knows none.

        Its coordinates and those of this posterior are maps to the same parameters.
        """
        return self

    def averaged_over(self, spread: Array | None) -> BasePosterior:
        """Posterior averaged over errors of sd ``spread (P,)``; itself if it has no kinks."""
        return self

    def with_rounded_kinks(self, spread: Array) -> BasePosterior:
        """Posterior with kinks rounded over a fraction of ``spread (P,)``; itself without any."""
        return self

    def rounded(self, density: bool = False) -> BasePosterior:
        """Posterior with a cheaper gradient, rounded to single precision; itself without one.

        With ``density`` the log density that is bound with the gradient is rounded too.
        """
        return self

    def tempered(self, temperature: float) -> BasePosterior:
        """Posterior for a sampler that raises the density to the power 1 / temperature."""
        return self

    # ---- the reported parameters, and points in theta -----------------------------------------

    @property
    def reported(self) -> Reported:
        """Reported parameters: their names, and maps from and to theta."""
        return Reported(self.param_names)

    def other_starts(self) -> list[Array]:
        """Further starting points ``(P,)`` of searches, if there may be several modes."""
        return []

    def start(self) -> Array:
        """Starting point ``(P,)`` of a search for the mode."""
        return np.zeros(self.n_params)

    def zeros(self) -> Array:
        """Point ``(P,)`` at which no parameter has an effect; the origin by default."""
        return np.zeros(self.n_params)

    def draw_prior(self, generators: list[np.random.Generator]) -> Array | None:
        """Reported parameters ``(C, n_reported)`` drawn from the prior; None if it has none."""
        return None


class Batches:
    """Batches of one size for the chains of one run, in one thread.

    Rows depend on theta through their local parameters u ``(C, n_local, B)``. Here u is theta; a
    posterior whose rows have fewer local parameters defines its own batches. Results of
    :meth:`gather` and of :meth:`local` are valid until the next call of the same method.

    Parameters
    ----------
    posterior : BasePosterior
    size : int
        Number of rows B.
    """

    def __init__(self, posterior: BasePosterior, size: int) -> None:
        self._posterior, self.size = posterior, size

    def gather(self, idx: Array) -> Sequence[Any]:
        """Batches of the rows ``idx (T, C, B)``, one for each step."""
        return list(idx)

    def local(self, theta: Array, batch: Any) -> Array:
        """Local parameters ``(C, n_local, B)``."""
        return np.broadcast_to(theta[:, :, None], (*theta.shape, self.size))

    def score(self, u: Array, batch: Any) -> Array:
        """Gradient of each row's log likelihood in u, which may be overwritten."""
        # every row is passed as a separate chain
        C, P, B = u.shape
        theta = np.ascontiguousarray(u.swapaxes(1, 2)).reshape(-1, P)
        grad = self._posterior.grad_log_likelihood(theta, batch.reshape(-1, 1))
        return grad.reshape(C, B, P).swapaxes(1, 2)

    def pullback(self, score: Array, batch: Any) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' scores, a new array."""
        return score.sum(axis=2)

    def gradient(self, theta: Array, batch: Any) -> Array:
        """Gradient of the batch's log likelihood ``(C, P)``, a new array."""
        return np.array(self._posterior.grad_log_likelihood(theta, batch), dtype=float)

    def change(self, theta: Array, since: Array, batch: Any) -> Array:
        """Gradient at theta minus that at ``since (C, P)``, a new array."""
        return self.gradient(theta, batch) - self.gradient(since, batch)

    def score_and_curvature(self, u: Array, batch: Any) -> tuple[Array, Array]:
        """Score, and minus the Hessian of each row in u ``(C, n_local, n_local, B)``."""
        raise NotImplementedError

    def gram(self, idx: Array, local: Array) -> Array:
        """Sum over rows ``idx (B,)`` of ``A^T W A (P, P)``, where A maps theta to a row's u.

        ``local (n_local, n_local, B)`` holds the matrices W.
        """
        raise NotImplementedError


def require(
    posterior: BasePosterior, ability: str, argument: str, value: object, remedy: str
) -> None:
    """Raise if a posterior lacks an ability that a component needs.

    Parameters
    ----------
    posterior : BasePosterior
    ability : str
        Name in :data:`~skbayes_sgld.posterior.protocol.MEMBERS`, one of its ``requires``.
    argument : str
        Argument that needs it, such as ``"gradient"``.
    value : object
        Value of the argument.
    remedy : str
        Alternative to adding the ability, such as ``"set gradient='svrg'"``.

    Raises
    ------
    TypeError
        When the ability is missing; the error names component, ability, members and remedy.
    ValueError
        When the ability is not known.
    """
    if ability not in MEMBERS:
        raise ValueError(
            f"{argument}={value!r} requires {ability!r}, which is no ability of posteriors; "
            f"there are {', '.join(map(repr, MEMBERS))}."
        )
    missing = posterior.lacks(ability)
    if missing:
        what = ability.replace("_", " ")
        raise TypeError(
            f"{argument}={value!r} needs a posterior with {what} "
            f"({', '.join(MEMBERS[ability])}); {posterior.called} has no "
            f"{', '.join(missing)}. Add what is missing, or {remedy}."
        )


def _is_default(cls: type, member: str) -> bool:
    """Whether a class takes a member from :class:`BasePosterior` unchanged."""
    if member in BasePosterior.__annotations__:  # constructors set these
        return False
    return getattr(cls, member, None) is getattr(BasePosterior, member, None)
