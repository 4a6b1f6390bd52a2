"""Unbounded coordinates for bounded parameters.

Samplers move in unbounded coordinates. A parameter x that is positive, or in an interval, is a
function x(t) of an unbounded coordinate t; its density in t has the additional factor dx/dt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, logit

from skbayes_sgld._checks import check_number
from skbayes_sgld._components import Component, Registry
from skbayes_sgld._typing import Array

__all__ = ["TRANSFORMS", "Interval", "Positive", "Transform"]


class Transform(Component):
    """An increasing map from the real line onto the open interval from ``low`` to ``high``.

    Attributes
    ----------
    low, high : float
        Ends of the interval.
    prefix : str
        Prefix of the coordinate's name: with ``"log"`` that of ``"sigma"`` is ``"log_sigma"``.
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
    """Positive parameter in terms of its logarithm, ``x = exp(t)``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.transforms import Positive
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
    """Parameter in an interval in terms of log odds, ``x = low + (high - low) / (1 + exp(-t))``.

    Parameters
    ----------
    low, high : float, default=0.0 and 1.0
        Ends of the open interval. A correlation takes ``Interval(-1.0, 1.0)``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.transforms import Interval
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
        """``low + (high - low) expit(t)``."""
        return self.low + (self.high - self.low) * expit(t)

    def inverse(self, x: Array) -> Array:
        """Log odds of the share of the interval below x."""
        return logit((x - self.low) / (self.high - self.low))

    def log_slope(self, t: Array) -> Array:
        """``log(high - low) + log p + log(1 - p)``, p being ``expit(t)``."""
        return np.log(self.high - self.low) + log_expit(t) + log_expit(-t)

    def grad_log_slope(self, t: Array) -> Array:
        """``1 - 2 p``."""
        return -np.tanh(0.5 * t)


TRANSFORMS: Registry[Transform] = Registry(Transform, positive=Positive, unit_interval=Interval)


def by_name(names: Sequence[str]) -> dict[str, list[int]]:
    """Positions of the parameters of each name, without its index."""
    positions: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        positions.setdefault(name.partition("[")[0], []).append(j)
    return positions
