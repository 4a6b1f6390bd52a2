"""Components: the small parts (priors, schedules, samplers, ...) that estimators are built from.

A component is named by a string or given as an instance. The registry dict at the foot of the
file that holds the classes maps the names to the classes; :func:`resolve` is the one place that
turns what a user wrote into a component.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

_ASYMMETRY = 1e-8  # of a matrix with a diagonal of ones
_SINGULAR = 1e-13  # smallest eigenvalue of such a matrix


class Component(BaseEstimator):
    """Base of every component: parameters by name, cloneable, checked when it is resolved.

    Subclasses are written as ``@dataclass(eq=False, repr=False)``: the generated constructor is
    what ``get_params``, ``set_params`` and ``clone`` read. (A frozen dataclass breaks ``clone``.)
    """

    def check(self) -> None:
        """Raise ValueError or TypeError where a parameter is out of range."""


T = TypeVar("T", bound=Component)


class Registry(dict[str, type[T]]):
    """The names of a family of components: what a string stands for."""

    def __init__(self, family: type[T], **classes: type[T]) -> None:
        super().__init__(classes)
        self.family = family

    def check(self, component: T, argument: str) -> None:
        """Raise where a component's parameters are out of range."""
        component.check()


def resolve(value: Any, registry: Registry[T], argument: str, also: tuple[str, ...] = ()) -> T:
    """Component that ``value``, a name or an instance, stands for.

    Parameters
    ----------
    value : str or Component
    registry : Registry
        The names that are accepted for this argument.
    argument : str
        What the user calls it, for the error.
    also : tuple of str
        Names that the argument takes besides, for the error.

    Returns
    -------
    component : Component
        A checked copy; the user's instance is never changed.

    Raises
    ------
    ValueError
        When the name is not in the registry.
    TypeError
        When it is neither a name nor an instance of the registry's family.
    """
    names = ", ".join(repr(name) for name in sorted([*registry, *also]))
    if isinstance(value, str):
        if value not in registry:
            raise ValueError(f"{argument}={value!r} is not known; choose one of {names}.")
        component = registry[value]()
    elif isinstance(value, registry.family):
        component = clone(value)
    else:
        raise TypeError(
            f"{argument}={value!r} is not accepted; give one of the names {names}, "
            f"or an instance of a {registry.family.__name__}."
        )
    registry.check(component, argument)
    return component


def check_number(
    value: Any,
    argument: str,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    closed: str = "neither",
    integer: bool = False,
) -> None:
    """Raise an error that names the argument, shows the value and says what is accepted."""
    kind = "a whole number" if integer else "a number"
    left, right = closed in ("left", "both"), closed in ("right", "both")
    bounds = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    accepted = f"it must be {kind} in {bounds}"
    family: Any = Integral if integer else Real
    if not isinstance(value, family) or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument}={value!r} is not {kind}; {accepted}.")
    inside = (value >= low if left else value > low) and (value <= high if right else value < high)
    if not inside:
        raise ValueError(f"{argument}={value!r} is out of range; {accepted}.")


def check_array_or_number(
    value: Any, argument: str, size: int | None, *, positive: bool = False
) -> None:
    """Check a parameter that is one number, or one number a coefficient."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{argument}={value!r} is not a number or an array of numbers.")
    if not np.all(np.isfinite(array)) or (positive and np.any(array <= 0)):
        accepted = "positive and finite" if positive else "finite"
        raise ValueError(f"{argument}={value!r} is out of range; it must be {accepted}.")
    if array.ndim > 1 or (array.ndim == 1 and size is not None and array.size != size):
        wanted = "a vector" if size is None else f"a vector of {size}, one a column of X"
        raise ValueError(
            f"{argument} has shape {array.shape}; it must be a single number or {wanted}."
        )


def check_covariance(value: Any, argument: str, size: int | None) -> None:
    """Check a symmetric positive definite matrix."""
    matrix = np.asarray(value)
    if matrix.dtype.kind not in "fiu":
        raise TypeError(f"{argument}={value!r} is not a matrix of numbers.")
    shape = "a square matrix" if size is None else f"a matrix of shape ({size}, {size})"
    d = size or len(np.atleast_1d(matrix))
    if matrix.shape != (d, d):
        raise ValueError(f"{argument} has shape {matrix.shape}; it must be {shape}.")
    accepted = "it must be a symmetric positive definite matrix of finite numbers"
    if not np.all(np.isfinite(matrix)):
        raise ValueError(f"{argument}={value!r} is out of range; {accepted}.")
    sds = np.sqrt(np.abs(np.diagonal(matrix)))
    if np.any(sds == 0):
        raise ValueError(f"{argument}={value!r} has a zero on its diagonal; {accepted}.")
    unit = matrix / sds / sds[:, None]
    if np.max(np.abs(unit - unit.T)) > _ASYMMETRY:
        raise ValueError(f"{argument}={value!r} is not symmetric; {accepted}.")
    smallest = float(np.linalg.eigvalsh(unit)[0])
    if smallest < _SINGULAR:
        raise ValueError(
            f"{argument}={value!r} has the smallest eigenvalue {smallest:.2g} at a diagonal of "
            f"ones; {accepted}."
        )
