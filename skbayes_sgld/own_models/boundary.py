"""Users' own models as posteriors: the only place that inspects which methods they have.

An object with the methods of a posterior is used as it is. :class:`CustomPosterior` maps a model
with bounded parameters to the unbounded coordinates in which samplers move.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_vector, check_number, escaped
from skbayes_sgld._typing import Array
from skbayes_sgld.own_models.coordinates import Coordinates, Elementwise
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map, Reparameterized
from skbayes_sgld.posterior.protocol import MEMBERS, Facts, Reported
from skbayes_sgld.transforms import Transform

_SHOWN = 5  # most parameters in an error
_ROW_FUNCTIONS = ("log_likelihood", "grad_log_likelihood")
_GRADIENTS = ("grad", "grad_log_likelihood", "grad_log_prior")
_CHECKED = {*_GRADIENTS, "log_density", "log_likelihood", "log_prior", "value_and_grad"}


def as_posterior(model: Any, argument: str = "posterior") -> BasePosterior:
    """Posterior with every method that the package uses, from a user's object.

    Parameters
    ----------
    model : object
        One of the package's posteriors, which is returned as it is; or an object with
        ``n_params``, ``param_names`` and either ``log_density(theta)`` and ``grad(theta)``, or
        rows: ``n_samples``, ``log_likelihood(theta, idx=None)``,
        ``grad_log_likelihood(theta, idx=None)``, ``log_prior(theta)`` and
        ``grad_log_prior(theta)``. Further methods, such as ``curvature`` or ``start``, are used
        if the object has them.
    argument : str, default="posterior"
        Name of the argument in errors.

    Returns
    -------
    posterior : BasePosterior
        Its ``abilities`` name the optional methods that were found.

    Raises
    ------
    TypeError
        When members are missing, or functions take other arguments or return anything but real
        numbers.
    ValueError
        When a function returns the wrong shape, or numbers that are not finite, at the start.

    Examples
    --------
    >>> from skbayes_sgld.own_models import as_posterior
    >>> class Normal:
    ...     n_params, param_names = 1, ["x"]
    ...     def log_density(self, theta):
    ...         return -0.5 * (theta**2).sum(axis=1)
    ...     def grad(self, theta):
    ...         return -theta
    >>> posterior = as_posterior(Normal())
    >>> sorted(posterior.abilities), posterior.curvature(posterior.start()).round(6).tolist()
    (['density'], [[1.0]])
    """
    if isinstance(model, BasePosterior):
        return model
    posterior = UserPosterior(model, argument)
    posterior.check_functions(posterior.start())
    return posterior


class UserPosterior(BasePosterior):
    """A user's object as a posterior; its methods replace the defaults.

    Parameters
    ----------
    model : object
        See :func:`as_posterior`.
    argument : str
        Name of the argument in errors.
    batched : bool
        False for functions of one chain, ``x (P,)`` and its ``idx (B,)``.
    """

    def __init__(self, model: Any, argument: str, batched: bool = True) -> None:
        if isinstance(model, type):
            raise TypeError(f"{argument}={model!r} is a class; give an instance of it.")
        self.model, self._argument = model, argument
        self._precision = float(np.finfo(float).eps)
        self.abilities = frozenset(a for a in MEMBERS if not _missing(model, a))
        if not self.abilities & {"density", "rows"}:
            nearer = min([_missing(model, "density"), _missing(model, "rows")], key=len)
            raise TypeError(
                f"{argument}={model!r} is not accepted: it has no "
                f"{', '.join(nearer)}. A posterior has "
                f"{', '.join(MEMBERS['density'])}; or n_params, param_names and rows, "
                f"{', '.join(MEMBERS['rows'])}. FunctionPosterior makes one of two functions, "
                "CustomPosterior of a model whose parameters have bounds."
            )
        check_number(model.n_params, f"{argument}.n_params", low=1, closed="left", integer=True)
        self.n_params = int(model.n_params)
        self.param_names = check_names(getattr(model, "param_names", None), self.n_params)
        if "rows" in self.abilities:
            check_number(
                model.n_samples, f"{argument}.n_samples", low=0, closed="left", integer=True
            )
            self.n_samples = int(model.n_samples)
        for ability in self.abilities:
            for name in MEMBERS[ability]:
                function: Any = getattr(model, name, None)
                if name in _CHECKED:
                    function = _Checked(self, name, function if batched else _each(function))
                if callable(function):  # param_names has a default
                    setattr(self, name, function)

    @property
    def called(self) -> str:
        """Name of the model's type."""
        return type(self.model).__name__

    @property
    def facts(self) -> Facts:
        """Facts that the model declares: ``multimodal``, ``cheap_full_gradient``."""
        no_rows = "rows" not in self.abilities  # no subsets of rows
        return Facts(
            multimodal=bool(getattr(self.model, "multimodal", False)),
            cheap_full_gradient=bool(getattr(self.model, "cheap_full_gradient", no_rows)),
            full_support=False,
            user_defined=True,
            precision=self._precision,
        )

    @property
    def reported(self) -> Reported:
        """Parameters that the model's ``constrain`` returns; theta without it."""
        if "constrain" not in self.abilities:
            return Reported(self.param_names)
        model = self.model
        return Reported(list(model.constrained_names), model.constrain, model.unconstrain)

    def lacks(self, ability: str) -> list[str]:
        """Members that the model lacks for an ability."""
        return _missing(self.model, ability)

    def check_functions(self, start: Array) -> None:
        """Check what each function returns for two chains at ``start (P,)``.

        With a single chain a missing axis would go unnoticed.
        """
        theta = np.tile(np.asarray(start, dtype=float), (2, 1))
        if theta.shape != (2, self.n_params):
            raise ValueError(
                f"{self._argument}.start() returned the shape {np.shape(start)}; it must return "
                f"({self.n_params},)."
            )
        parts = self.abilities & {"density", "rows"}
        for name in [m for a in sorted(parts) for m in MEMBERS[a] if m in _CHECKED]:
            checked = getattr(self, name)
            _check_signature(checked.function, name, 2 if name in _ROW_FUNCTIONS else 1)
            returned = checked.call(theta)
            shape = checked.shape(2, None)
            check_returned(name, returned, shape, self.param_names, theta, finite=True)
            if isinstance(returned, np.ndarray) and returned.dtype.kind == "f":
                self._precision = max(self._precision, float(np.finfo(returned.dtype).eps))


class CustomPosterior(Reparameterized):
    r"""Posterior of your own model, for every sampler of the package.

    The model's functions take its parameters x, some of which may be bounded; the sampler moves
    in unbounded coordinates theta. With :math:`x = x(\theta)` the density in theta is

    .. math:: p(x(\theta) \mid \text{data}) \, \left| \det \frac{dx}{d\theta} \right|.

    Parameters
    ----------
    model : object
        Object with ``n_samples``, ``n_params`` and four functions of ``x (C, P)``, one row per
        chain:

        - ``log_likelihood(x, idx=None)``: log likelihood of each row of the data,
          ``(C, n_samples)``, or of each chain's rows ``idx (C, B)``: ``(C, B)``;
        - ``grad_log_likelihood(x, idx=None)``: its gradient summed over these rows, not rescaled,
          ``(C, P)``;
        - ``log_prior(x)``: log prior up to a constant, ``(C,)``;
        - ``grad_log_prior(x)``: its gradient, ``(C, P)``.

        ``param_names``, a list of P, is optional. So is ``value_and_grad(x)``, the log posterior
        ``(C,)`` and its gradient ``(C, P)`` from all rows, if both together cost less.
    transforms : dict or Coordinates, default=None
        Range of each bounded parameter, by its name: ``"positive"`` (sampled by its logarithm),
        ``"unit_interval"`` (by its log odds), or an instance such as
        :class:`Interval(-1.0, 1.0) <Interval>`. ``"tau"`` also stands for ``"tau[0]"``,
        ``"tau[1]"``, ... Parameters that are not named are unbounded.
    start : array-like of shape (n_params,), default=None
        Starting point x. By default theta = 0: 0 for an unbounded parameter, 1 for a
        positive one, the middle of an interval.
    batched : bool, default=True
        False for functions of one chain, ``x (P,)`` and its ``idx (B,)``. They are called chain
        by chain, which is slower.

    Attributes
    ----------
    param_names, constrained_names : list of str
        Names of the coordinates theta (``"log_sigma"``) and of the parameters x (``"sigma"``).
    temperature : float
        Temperature tau of the sampler: 1 unless set by :meth:`tempered`. Tempering acts on the
        density of x. The log Jacobian is therefore multiplied by tau, which the sampler's power
        1 / tau undoes.

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
    >>> from skbayes_sgld.own_models import CustomPosterior, check_gradient
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
        self._start = np.zeros(self.n_params)
        if start is not None:
            x = as_vector(start, "start", self.n_params)
            self._start = coordinates.inverse(x[None])[0]
        functions.check_functions(coordinates.forward(self._start[None])[0])

    @property
    def constrained_names(self) -> list[str]:
        """Names of the model's parameters."""
        return self.inner.param_names

    @property
    def reported(self) -> Reported:
        """Reported parameters: those of the model."""
        return Reported(self.constrained_names, self.constrain, self.unconstrain)

    @property
    def facts(self) -> Facts:
        """Facts that the model declares: ``multimodal``, ``cheap_full_gradient``."""
        return self.inner.facts

    def lacks(self, ability: str) -> list[str]:
        """Members that the model lacks for an ability."""
        return self.inner.lacks(ability) if ability == "rows" else super().lacks(ability)

    def start(self) -> Array:
        """Starting point ``theta (P,)``."""
        return self._start.copy()

    def tempered(self, temperature: float) -> CustomPosterior:
        """Copy for a sampler at ``temperature``; the Jacobian is not tempered.

        Parameters
        ----------
        temperature : float > 0
            Temperature tau, the same as the sampler's.

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
    """Map from a user's coordinates to the parameters."""

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
        coordinates = self._coordinates

        def pull_back(grad: Array, tau: float) -> Array:
            in_phi = coordinates.pull_back(grad, phi)
            return in_phi + tau * coordinates.grad_log_jacobian(phi) if tau else in_phi

        return Expanded(coordinates.forward(phi), coordinates.log_jacobian(phi), pull_back)


class FunctionPosterior(CustomPosterior):
    """Distribution given by two functions: log density and gradient.

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
    >>> from skbayes_sgld.own_models import FunctionPosterior
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


class _Checked:
    """Wrapper of a user's function: checks every result, and adds theta to its errors.

    Lists and whole numbers are converted to arrays of floats. Numbers that are not finite are
    accepted, since a density may be 0 in places.
    """

    def __init__(self, owner: UserPosterior, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function, self._n_samples = name, function, owner.n_samples
        self._n_params, self._names = owner.n_params, owner.param_names

    def __call__(self, theta: Array, idx: Array | None = None) -> Any:
        returned = self.call(theta, idx)
        if self.name != "value_and_grad":
            return self._floats(self.name, returned, self.shape(len(theta), idx), theta)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError(
                f"{self.name} returned {type(returned).__name__}; it must return a tuple of the "
                "log density (C,) and its gradient (C, P)."
            )
        value = self._floats(f"{self.name}[0]", returned[0], (len(theta),), theta)
        return value, self._floats(f"{self.name}[1]", returned[1], theta.shape, theta)

    def shape(self, n_chains: int, idx: Array | None) -> tuple[int, ...]:
        """Shape that the function must return."""
        if self.name in _GRADIENTS:
            return n_chains, self._n_params
        if self.name == "log_likelihood":
            return n_chains, self._n_samples if idx is None else idx.shape[1]
        return (n_chains,)

    def call(self, theta: Array, idx: Array | None = None) -> Any:
        """Call the function; an error that it raises gets a note with the position."""
        try:
            return self.function(theta) if idx is None else self.function(theta, idx)
        except Exception as error:
            error.add_note(f"{self.name} raised it, called {_at(self._names, theta)}.")
            raise

    def _floats(self, name: str, returned: Any, shape: tuple[int, ...], theta: Array) -> Array:
        usual = type(returned) is np.ndarray and returned.dtype.kind == "f"
        if usual and returned.shape == shape:
            return returned
        check_returned(name, returned, shape, self._names, theta)
        return np.asarray(returned, dtype=None if usual else float)


def _missing(model: Any, ability: str) -> list[str]:
    """Members that an object lacks for an ability; ``param_names`` has a default."""
    needs = [*MEMBERS[ability]]
    if ability == "rows":
        needs.insert(0, "n_params")
    return [name for name in needs if name != "param_names" and not hasattr(model, name)]


def check_names(names: Sequence[str] | None, n_params: int) -> list[str]:
    """List of the parameters' names; raise if their number is wrong or two are equal."""
    if names is None:
        return [f"theta[{j}]" for j in range(n_params)]
    if isinstance(names, str) or len(set(names)) != n_params or len(names) != n_params:
        raise ValueError(
            f"param_names={names!r} must be {n_params} different names, one per parameter."
        )
    return [escaped(name) for name in names]


def _check_signature(function: Callable[..., Any], name: str, n_arguments: int) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled functions have no signature to check
        return
    try:
        signature.bind(*[None] * n_arguments)
        signature.bind(None)
    except TypeError:
        expected = "(theta, idx=None)" if n_arguments == 2 else "(theta)"
        raise TypeError(f"{name} takes {signature}; it must take {expected}.") from None


def _values(param_names: Sequence[str], point: Array) -> str:
    """Names and values of the first parameters at one point ``(P,)``."""
    shown = zip(param_names[:_SHOWN], point, strict=False)
    return ", ".join(f"{name}={value:g}" for name, value in shown)


def _at(param_names: Sequence[str], theta: Array) -> str:
    """Clause that names the first point at which a function was called."""
    others = " and other points" if len(theta) > 1 else ""
    return f"at {_values(param_names, theta[0])}{others}"


def check_returned(
    name: str,
    returned: Any,
    shape: tuple[int, ...],
    param_names: Sequence[str],
    theta: Array,
    finite: bool = False,
) -> None:
    """Raise if a user's function returned an unusable value.

    Parameters
    ----------
    name : str
        Name of the function in errors.
    returned : object
        Returned value.
    shape : tuple of int
        Required shape.
    param_names : sequence of str
    theta : ndarray of shape (C, P)
        Points at which it was called, one row for each chain.
    finite : bool, default=False
        Whether every number must be finite, as at the start.

    Raises
    ------
    TypeError
        When ``returned`` is not an array of real numbers.
    ValueError
        When its shape is wrong, or a number is not finite.
    """
    try:
        array = np.asarray(returned)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        what = {"c": "complex numbers", "b": "booleans", "U": "strings"}.get(
            array.dtype.kind, f"{type(returned).__name__} of {array.dtype}"
        )
        raise TypeError(
            f"{name} returned {what} {_at(param_names, theta)}; it must return an array of real "
            f"numbers of shape {shape} for {len(theta)} chains."
        )
    if array.shape != shape:
        raise ValueError(
            f"{name} returned the shape {array.shape} for parameters of shape {theta.shape}, "
            f"{len(theta)} chains; it must return {shape}. Functions of one chain take "
            "batched=False, in CustomPosterior or FunctionPosterior."
        )
    if finite and not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name} is not finite at the start, where {_values(param_names, theta[0])}; give a "
            "start where it is, or the range of a parameter, as in transforms={'s': 'positive'}."
        )


def _each(function: Callable[..., Any]) -> Callable[..., Array]:
    """Function of all chains ``(C, P)``, from one of a single chain ``(P,)``."""

    def stacked(x: Array, idx: Array | None = None) -> Array:
        if idx is None:
            return np.stack([function(one) for one in x])
        return np.stack([function(one, rows) for one, rows in zip(x, idx, strict=True)])

    return stacked
