"""Unbounded coordinates for bounded parameters.

Samplers move in all of R^P. A positive parameter x, or one in an interval, is a function x(t) of an
unbounded coordinate t, and its density in t gains the factor dx/dt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, log_expit, logit

from skbayes_sgld._checks import check_number
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import by_name
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map


class Transform(Component):
    """An increasing map from the real line onto the open interval from ``low`` to ``high``.

    Attributes
    ----------
    low, high : float
        Ends of the interval.
    prefix : str
        First part of the coordinate's name: ``"log"`` makes ``"log_sigma"`` of ``"sigma"``.
    """

    low: float
    high: float
    prefix: str

    def forward(self, t: Array) -> Array:
        """The parameter x at the coordinate t."""
        raise NotImplementedError

    def inverse(self, x: Array) -> Array:
        """The coordinate t of the parameter x."""
        raise NotImplementedError

    def log_slope(self, t: Array) -> Array:
        """Log of the derivative ``dx / dt``."""
        raise NotImplementedError

    def grad_log_slope(self, t: Array) -> Array:
        """Derivative of the log slope in t."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Positive(Transform):
    """Positive parameter by its logarithm, ``x = exp(t)``.

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
        """``exp(t)``."""
        return np.exp(t)

    def inverse(self, x: Array) -> Array:
        """``log(x)``."""
        return np.log(x)

    def log_slope(self, t: Array) -> Array:
        """``t``, the log of ``exp(t)``."""
        return t

    def grad_log_slope(self, t: Array) -> Array:
        """Ones."""
        return np.ones_like(t)


@dataclass(eq=False, repr=False)
class Interval(Transform):
    """Parameter in an interval by its log odds, ``x = low + (high - low) / (1 + exp(-t))``.

    Parameters
    ----------
    low, high : float, default=0.0 and 1.0
        Ends of the open interval. A correlation takes ``Interval(-1.0, 1.0)``.

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
        """Raise unless the ends are two numbers in increasing order."""
        check_number(self.low, "transform.low")
        check_number(self.high, "transform.high", low=self.low)

    def forward(self, t: Array) -> Array:
        """Point whose share of the interval is ``expit(t)``."""
        return self.low + (self.high - self.low) * expit(t)

    def inverse(self, x: Array) -> Array:
        """Log odds of the share of the interval that lies below x."""
        return logit((x - self.low) / (self.high - self.low))

    def log_slope(self, t: Array) -> Array:
        """``log(high - low) + log p + log(1 - p)``, p being ``expit(t)``."""
        return np.log(self.high - self.low) + log_expit(t) + log_expit(-t)

    def grad_log_slope(self, t: Array) -> Array:
        """``1 - 2 p``."""
        return -np.tanh(0.5 * t)


TRANSFORMS: Registry[Transform] = Registry(Transform, positive=Positive, unit_interval=Interval)


@runtime_checkable
class Coordinates(Protocol):
    """A smooth one-to-one map from unbounded ``theta (C, P)`` to a model's parameters."""

    param_names: list[str]

    def forward(self, theta: Array) -> Array:
        """Parameters ``(C, P)`` at theta."""

    def inverse(self, values: Array) -> Array:
        """Theta ``(C, P)`` from the parameters."""

    def pull_back(self, grad: Array, theta: Array) -> Array:
        """Gradient in theta ``(C, P)`` of a function of gradient ``grad`` in the parameters."""

    def log_jacobian(self, theta: Array) -> Array:
        """Log determinant of d parameters / d theta ``(C,)``."""

    def grad_log_jacobian(self, theta: Array) -> Array:
        """Gradient of the log determinant ``(C, P)``."""


class Elementwise(Map):
    """Coordinates that transform some of the parameters one by one; the others are unchanged.

    Parameters
    ----------
    names : sequence of str
        The parameters' names.
    transforms : mapping of str to str or Transform
        Transform of each parameter by its name; ``"tau"`` also stands for all of ``"tau[0]"``,
        ``"tau[1]"``, ...
    """

    def __init__(self, names: Sequence[str], transforms: Mapping[str, str | Transform]) -> None:
        self._names = names
        self.param_names = list(names)
        self._parts: list[tuple[list[int], Transform]] = []
        sharing = by_name(names)
        for key, value in transforms.items():
            transform = resolve(value, TRANSFORMS, f"transforms[{key!r}]")
            columns = sharing.get(key) or [j for j, name in enumerate(names) if name == key]
            if not columns:
                raise ValueError(
                    f"transforms has the key {key!r}, which is no parameter; the parameters are "
                    f"{', '.join(names)}."
                )
            self._parts.append((columns, transform))
            for j in columns:
                self.param_names[j] = f"{transform.prefix}_{names[j]}"

    def inverse(self, theta: Array) -> Array:
        """Coordinates ``(C, P)``; a value out of its parameter's range raises ValueError."""
        phi = theta.astype(float)
        for columns, transform in self._parts:
            x = theta[:, columns]
            outside = np.argwhere(~((x > transform.low) & (x < transform.high)))
            if len(outside):
                row, column = outside[0]
                raise ValueError(
                    f"{self._names[columns[column]]}={x[row, column]:g} is out of range; it must "
                    f"be in ({transform.low:g}, {transform.high:g})."
                )
            phi[:, columns] = transform.inverse(x)
        return phi

    def expand(self, phi: Array) -> Expanded:
        """Parameters at phi, the log Jacobian and the chain rule."""
        values, log_slope, bend = phi.copy(), np.zeros_like(phi), np.zeros_like(phi)
        for columns, transform in self._parts:
            t = phi[:, columns]
            values[:, columns] = transform.forward(t)
            log_slope[:, columns] = transform.log_slope(t)
            bend[:, columns] = transform.grad_log_slope(t)

        def pull_back(grad: Array, tau: float) -> Array:
            return grad * np.exp(log_slope) + tau * bend

        return Expanded(values, log_slope.sum(axis=1), pull_back)
