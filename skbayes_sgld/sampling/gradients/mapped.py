"""Control variates of a posterior that is sampled in other coordinates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from skbayes_sgld.sampling.dynamics import Array, State
from skbayes_sgld.sampling.gradients.control_variate import ExpandedGradient


@dataclass(eq=False)
class MappedGradient(ExpandedGradient):
    """Gradient in the coordinates phi of a map, from that in theta.

    Batches, rows and expansion are those of the posterior of theta.

    Attributes
    ----------
    coordinates : object
        Map from the coordinates to theta, with ``expand``.
    temperature : float
        Temperature of the sampler, by which the log Jacobian is multiplied.
    """

    coordinates: Any = None
    temperature: float = 1.0

    @classmethod
    def of(cls, gradient: ExpandedGradient, coordinates: Any, temperature: float) -> Self:
        """Gradient in other coordinates."""
        known = {each.name: getattr(gradient, each.name) for each in fields(gradient) if each.init}
        return cls(**known, coordinates=coordinates, temperature=temperature)

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Estimate of the gradient at positions of the coordinates ``(C, P)``."""
        at = self.coordinates.expand(theta)
        grad: Array = at.pull_back(super().__call__(at.theta, batch, memory), self.temperature)
        return grad
