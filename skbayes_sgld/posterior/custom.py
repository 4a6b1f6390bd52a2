"""Models that users write, in the unbounded coordinates that samplers move in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._checks import as_numbers, check_number
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.boundary import UserPosterior
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map, Reparameterized
from skbayes_sgld.posterior.protocol import Facts, Reported
from skbayes_sgld.posterior.transforms import Coordinates, Elementwise, Transform

Array = NDArray[Any]


class CustomPosterior(Reparameterized):
    r"""Posterior of a model of your own, which every sampler of the package takes.

    The model's functions take its parameters x, some of which may be bounded; the sampler moves
    in unbounded coordinates theta. With :math:`x = x(\theta)` the density in theta is

    .. math:: p(x(\theta) \mid \text{data}) \, \left| \det \frac{dx}{d\theta} \right|.

    Parameters
    ----------
    model : object
        With ``n_samples``, ``n_params`` and four functions of ``x (C, P)``, one row per chain:

        - ``log_likelihood(x, idx=None)``: log likelihood of each row of the data,
          ``(C, n_samples)``, or of the rows ``idx (C, B)``, each chain's own: ``(C, B)``;
        - ``grad_log_likelihood(x, idx=None)``: its gradient summed over these rows, not rescaled,
          ``(C, P)``;
        - ``log_prior(x)``: log prior up to a constant, ``(C,)``;
        - ``grad_log_prior(x)``: its gradient, ``(C, P)``.

        ``param_names``, a list of P, is optional. So is ``value_and_grad(x)``, the log posterior
        ``(C,)`` and its gradient ``(C, P)`` from all rows, where both together cost less.
    transforms : dict or Coordinates, default=None
        Range of each bounded parameter, by its name: ``"positive"`` (sampled by its logarithm),
        ``"unit_interval"`` (by its log odds), or an instance such as
        :class:`Interval(-1.0, 1.0) <Interval>`. ``"tau"`` also stands for ``"tau[0]"``,
        ``"tau[1]"``, ... Parameters that are not named are unbounded.
    start : array-like of shape (n_params,), default=None
        Parameters x to begin at. By default theta = 0: 0 for an unbounded parameter, 1 for a
        positive one, the middle of an interval.
    batched : bool, default=True
        False for functions of one chain, ``x (P,)`` and its ``idx (B,)``. They are called chain
        by chain, which is slower.

    Attributes
    ----------
    param_names, constrained_names : list of str
        Names of the coordinates theta (``"log_sigma"``) and of the parameters x (``"sigma"``).
    temperature : float
        Temperature tau that the sampler is to use, 1 unless set by :meth:`tempered`. Tempering
        acts on the density of x, so the log Jacobian is multiplied by tau: the sampler's power
        1 / tau then restores it.

    Raises
    ------
    TypeError
        When the model lacks an attribute, or a transform is neither a name nor an instance.
    ValueError
        When a key of ``transforms`` is no parameter, ``start`` is out of range, or a function
        returns the wrong shape, or a number that is not finite, at the start.

    Examples
    --------
    The rate of a Poisson distribution under an exponential prior:

    >>> import numpy as np
    >>> from scipy.special import gammaln
    >>> from skbayes_sgld.posterior import CustomPosterior, check_gradient
    >>> class PoissonRate:
    ...     n_samples, n_params, param_names = 4, 1, ["rate"]
    ...     y = np.array([3, 0, 2, 4])
    ...     def rows(self, x, idx):
    ...         return np.tile(self.y, (len(x), 1)) if idx is None else self.y[idx]
    ...     def log_likelihood(self, x, idx=None):
    ...         y = self.rows(x, idx)
    ...         return y * np.log(x) - x - gammaln(y + 1)
    ...     def grad_log_likelihood(self, x, idx=None):
    ...         return (self.rows(x, idx) / x - 1).sum(axis=1, keepdims=True)
    ...     def log_prior(self, x):
    ...         return -x[:, 0]
    ...     def grad_log_prior(self, x):
    ...         return -np.ones_like(x)
    >>> posterior = CustomPosterior(PoissonRate(), transforms={"rate": "positive"})
    >>> check_gradient(posterior)
    >>> posterior.param_names, posterior.constrained_names
    (['log_rate'], ['rate'])
    """

    def __init__(
        self,
        model: Any,
        *,
        transforms: Mapping[str, str | Transform] | Coordinates | None = None,
        start: ArrayLike | None = None,
        batched: bool = True,
    ) -> None:
        self.model = model
        functions = UserPosterior(model, "model", batched)
        names = functions.param_names
        if transforms is None or isinstance(transforms, Mapping):
            coordinates: Any = Elementwise(names, transforms or {})
        elif isinstance(transforms, Coordinates):
            coordinates = _UserMap(transforms)
        else:
            raise TypeError(
                f"transforms={transforms!r} is not accepted; give a dictionary from the names of "
                "parameters to transforms, as {'s': 'positive'}, or an instance with the methods "
                "of Coordinates."
            )
        super().__init__(functions, coordinates, 1.0)
        if "rows" not in functions.abilities:
            self.abilities = self.abilities - {"rows"} | {"density"}
        self.param_names = coordinates.param_names
        self._start = np.zeros(self.n_params) if start is None else self._check_start(start)
        functions.check_functions(coordinates.forward(self._start[None])[0])

    @property
    def constrained_names(self) -> list[str]:
        """Names of the model's own parameters."""
        return self.inner.param_names

    @property
    def reported(self) -> Reported:
        """Reported parameters: those of the model."""
        return Reported(self.constrained_names, self.constrain, self.unconstrain)

    @property
    def facts(self) -> Facts:
        """Facts that the model tells of itself: ``multimodal``, ``cheap_full_gradient``."""
        return self.inner.facts

    def lacks(self, ability: str) -> list[str]:
        """Members that the model lacks for an ability."""
        return self.inner.lacks(ability) if ability == "rows" else super().lacks(ability)

    def _check_start(self, start: ArrayLike) -> Array:
        x = as_numbers(start, "start")
        if x.shape != (self.n_params,):
            raise ValueError(
                f"start={start!r} must be {self.n_params} finite numbers, one per parameter."
            )
        return self.coordinates.inverse(x[None])[0]

    def start(self) -> Array:
        """Coordinates ``theta (P,)`` to begin at."""
        return self._start.copy()

    def tempered(self, temperature: float) -> CustomPosterior:
        """Copy for a sampler that runs at ``temperature``, whose Jacobian is not tempered.

        Parameters
        ----------
        temperature : float > 0
            Temperature tau, which the sampler must be given too.

        Returns
        -------
        posterior : CustomPosterior
            Its density to the power 1 / tau, transformed to x, is that of the model to the power
            1 / tau.

        Raises
        ------
        TypeError, ValueError
            When ``temperature`` is not a positive number.
        """
        check_number(temperature, "temperature", low=0)
        other = copy(self)
        other.temperature = float(temperature)
        return other

    def constrain(self, theta: Array) -> Array:
        """Parameters x ``(C, P)`` of the model at theta."""
        return self.coordinates.forward(theta)

    def unconstrain(self, values: Array) -> Array:
        """Coordinates theta ``(C, P)`` of the model's parameters."""
        return self.coordinates.inverse(values)

    zeros = BasePosterior.zeros


class _UserMap(Map):
    """The map of a user's coordinates."""

    def __init__(self, coordinates: Coordinates) -> None:
        self._coordinates, self.param_names = coordinates, coordinates.param_names

    def forward(self, phi: Array) -> Array:
        """Parameters at phi."""
        return self._coordinates.forward(phi)

    def inverse(self, theta: Array) -> Array:
        """Phi at the parameters."""
        return self._coordinates.inverse(theta)

    def expand(self, phi: Array) -> Expanded:
        """Parameters at phi, the log Jacobian and the chain rule."""
        known = self._coordinates

        def pull_back(grad: Array, tau: float) -> Array:
            in_phi = known.pull_back(grad, phi)
            return in_phi + tau * known.grad_log_jacobian(phi) if tau else in_phi

        return Expanded(known.forward(phi), known.log_jacobian(phi), pull_back)


class FunctionPosterior(CustomPosterior):
    """Distribution given by two functions: its log density and the gradient.

    It has no rows, so there are no minibatches: every step calls the functions once.

    Parameters
    ----------
    log_density : callable
        Function from the parameters ``(C, P)``, one row per chain, to the log density up to a
        constant ``(C,)``.
    grad : callable
        Function from the parameters ``(C, P)`` to the gradient ``(C, P)``.
    n_params : int
        Number of parameters P.
    param_names : list of str, default=None
        Names of the parameters; by default ``theta[0]``, ``theta[1]``, ...
    transforms, start, batched
        As for :class:`CustomPosterior`. With ``batched=False`` the functions take ``(P,)`` and
        return a number and ``(P,)``.

    Raises
    ------
    TypeError, ValueError
        As :class:`CustomPosterior`.

    Examples
    --------
    A standard deviation with the density ``sigma exp(-sigma)``:

    >>> import numpy as np
    >>> from skbayes_sgld.posterior import FunctionPosterior
    >>> posterior = FunctionPosterior(
    ...     lambda x: np.log(x[:, 0]) - x[:, 0],
    ...     lambda x: 1 / x - 1,
    ...     n_params=1,
    ...     param_names=["sigma"],
    ...     transforms={"sigma": "positive"},
    ... )
    >>> value, grad = posterior.value_and_grad(np.log([[2.0]]))
    >>> value.round(3).tolist(), grad.tolist()  # with the Jacobian: 2 log(sigma) - sigma
    ([-0.614], [[0.0]])
    """

    def __init__(
        self,
        log_density: Callable[[Array], Array],
        grad: Callable[[Array], Array],
        n_params: int,
        param_names: Sequence[str] | None = None,
        *,
        transforms: Mapping[str, str | Transform] | Coordinates | None = None,
        start: ArrayLike | None = None,
        batched: bool = True,
    ) -> None:
        for name, function in (("log_density", log_density), ("grad", grad)):
            if not callable(function):
                raise TypeError(f"{name}={function!r} must be a function.")
        model = SimpleNamespace(
            log_density=log_density, grad=grad, n_params=n_params, param_names=param_names
        )
        super().__init__(model, transforms=transforms, start=start, batched=batched)
