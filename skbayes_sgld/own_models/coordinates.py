"""Coordinates of a user's own model: a protocol, and transforms of single parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from skbayes_sgld._components import resolve
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map
from skbayes_sgld.transforms import TRANSFORMS, Transform, by_name


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
    """Coordinates that transform single parameters and leave the others unchanged.

    Parameters
    ----------
    names : sequence of str
        Names of the parameters.
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
        """Coordinates ``(C, P)``; ValueError for a value outside its parameter's range."""
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
