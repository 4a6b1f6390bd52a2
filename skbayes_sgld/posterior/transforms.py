"""Coordinates without bounds for parameters that have them.

A sampler moves in all of R^P. A parameter x that must be positive, or lie in an interval, is a
function x(t) of a free coordinate t, and its density in t gains the factor dx/dt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from skbayes_sgld._components import Component, Registry, check_number, resolve

Array = NDArray[Any]


class Transform(Component):
    """An increasing map from the line onto the open interval from ``low`` to ``high``."""

    low: float
    high: float
    prefix: str  # of the coordinate's name

    def forward(self, t: Array) -> Array:
        """Return x(t)."""
        raise NotImplementedError

    def inverse(self, x: Array) -> Array:
        """Return t(x)."""
        raise NotImplementedError

    def log_slope(self, t: Array) -> Array:
        """Return log dx/dt."""
        raise NotImplementedError

    def grad_log_slope(self, t: Array) -> Array:
        """Return its derivative in t."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Positive(Transform):
    """The positive numbers by their logarithm, ``x = exp(t)``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.posterior import Positive
    >>> Positive().forward(np.array([-1.0, 0.0])).round(3).tolist()
    [0.368, 1.0]
    """

    low = 0.0
    high = np.inf
    prefix = "log"

    def forward(self, t: Array) -> Array:
        """Return ``exp(t)``."""
        return np.exp(t)

    def inverse(self, x: Array) -> Array:
        """Return ``log(x)``."""
        return np.log(x)

    def log_slope(self, t: Array) -> Array:
        """Return t."""
        return t

    def grad_log_slope(self, t: Array) -> Array:
        """Return one."""
        return np.ones_like(t)


@dataclass(eq=False, repr=False)
class Interval(Transform):
    """An interval by the log odds, ``x = low + (high - low) / (1 + exp(-t))``.

    Parameters
    ----------
    low, high : float, default=0.0 and 1.0
        The open ends. A correlation takes ``Interval(-1.0, 1.0)``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.posterior import Interval
    >>> Interval(-1.0, 1.0).forward(np.array([0.0, 3.0])).round(3).tolist()
    [0.0, 0.905]
    """

    low: float = 0.0
    high: float = 1.0
    prefix = "logit"

    def check(self) -> None:
        """Raise where the ends are not two numbers in order."""
        check_number(self.low, "transform.low")
        check_number(self.high, "transform.high", low=self.low)

    def forward(self, t: Array) -> Array:
        """Return the point whose share of the interval is ``expit(t)``."""
        return self.low + (self.high - self.low) * expit(t)

    def inverse(self, x: Array) -> Array:
        """Return the log odds of x's share of the interval."""
        return logit((x - self.low) / (self.high - self.low))

    def log_slope(self, t: Array) -> Array:
        """Return ``log(high - low) + log p + log(1 - p)``, p being ``expit(t)``."""
        return np.log(self.high - self.low) + log_expit(t) + log_expit(-t)

    def grad_log_slope(self, t: Array) -> Array:
        """Return ``1 - 2 p``."""
        return -np.tanh(0.5 * t)


TRANSFORMS: Registry[Transform] = Registry(Transform, positive=Positive, unit_interval=Interval)


@runtime_checkable
class Coordinates(Protocol):
    """A smooth one-to-one map from free coordinates ``theta (C, P)`` to a model's parameters."""

    param_names: list[str]

    def forward(self, theta: Array) -> Array:
        """Return the parameters ``(C, P)``."""

    def inverse(self, values: Array) -> Array:
        """Return theta ``(C, P)`` from the parameters."""

    def pull_back(self, grad: Array, theta: Array) -> Array:
        """Return the gradient in theta of a function whose gradient in the parameters is given."""

    def log_jacobian(self, theta: Array) -> Array:
        """Return the log of the determinant of d parameters / d theta ``(C,)``."""

    def grad_log_jacobian(self, theta: Array) -> Array:
        """Return its gradient ``(C, P)``."""


class Elementwise:
    """Coordinates that transform some of the parameters, one by one, and leave the others.

    Parameters
    ----------
    names : sequence of str
        The parameters' names.
    transforms : mapping of str to str or Transform
        By a parameter's name; ``"tau"`` also stands for all of ``"tau[0]"``, ``"tau[1]"`` ...
    """

    def __init__(self, names: Sequence[str], transforms: Mapping[str, Any]) -> None:
        self._names = names
        self.param_names = list(names)
        self._parts: list[tuple[list[int], Transform]] = []
        for key, value in transforms.items():
            transform = resolve(value, TRANSFORMS, f"transforms[{key!r}]")
            columns = [j for j, name in enumerate(names) if name.partition("[")[0] == key]
            columns = columns or [j for j, name in enumerate(names) if name == key]
            if not columns:
                raise ValueError(
                    f"transforms has the key {key!r}, which is no parameter; the parameters are "
                    f"{', '.join(names)}."
                )
            self._parts.append((columns, transform))
            for j in columns:
                self.param_names[j] = f"{transform.prefix}_{names[j]}"

    def forward(self, theta: Array) -> Array:
        """Return the parameters ``(C, P)``."""
        values = theta.copy()
        for columns, transform in self._parts:
            values[:, columns] = transform.forward(theta[:, columns])
        return values

    def inverse(self, values: Array) -> Array:
        """Return theta ``(C, P)``; a value out of its parameter's range raises ValueError."""
        theta = values.astype(float)
        for columns, transform in self._parts:
            x = theta[:, columns]
            outside = np.argwhere(~((x > transform.low) & (x < transform.high)))
            if len(outside):
                row, column = outside[0]
                raise ValueError(
                    f"{self._names[columns[column]]}={x[row, column]:g} is out of range; it must "
                    f"be in ({transform.low:g}, {transform.high:g})."
                )
            theta[:, columns] = transform.inverse(x)
        return theta

    def pull_back(self, grad: Array, theta: Array) -> Array:
        """Return the gradient in theta ``(C, P)`` from that in the parameters."""
        out = grad.copy()
        for columns, transform in self._parts:
            out[:, columns] *= np.exp(transform.log_slope(theta[:, columns]))
        return out

    def log_jacobian(self, theta: Array) -> Array:
        """Return the log determinant of d parameters / d theta ``(C,)``."""
        total = np.zeros(len(theta))
        for columns, transform in self._parts:
            total += transform.log_slope(theta[:, columns]).sum(axis=1)
        return total

    def grad_log_jacobian(self, theta: Array) -> Array:
        """Return its gradient ``(C, P)``."""
        grad = np.zeros_like(theta)
        for columns, transform in self._parts:
            grad[:, columns] = transform.grad_log_slope(theta[:, columns])
        return grad
