"""Parts of a posterior that a search has found: modes, and mass far from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.tuning.mode import Mode

FAR = 8.0  # distance from the mode at which a part is far, in sds (root mean square)


class KnownMode(NamedTuple):
    """One of several modes: its position, the curvature there, and its share of the mass."""

    theta: Array
    precision: Array
    share: float

    def falls(self, theta: Array) -> Array:
        """Minus the log of the normal density of this mode at ``theta (S, P)``, up to a constant.

        A draw belongs to the mode for which this is smallest.
        """
        apart = theta - self.theta
        square = np.einsum("sp,sp->s", apart @ self.precision, apart)
        return np.asarray(0.5 * (square - np.linalg.slogdet(self.precision)[1]))


class FarPart(NamedTuple):
    """A part of a posterior that is far from its mode.

    Attributes
    ----------
    share : float
        Share of the mass.
    distance : float
        Distance from the mode, in sds at the mode (root mean square over the parameters).
    mode : Mode
    """

    share: float
    distance: float
    mode: Mode

    def share_of(self, theta: Array) -> float:
        """Share of the draws ``(S, P)`` that are in this part."""
        u = self.mode.metric.whiten(theta - self.mode.theta)
        return float(np.mean(np.square(u).mean(axis=1) > FAR**2))

    @property
    def as_mode(self) -> Mode:
        """Mode with a metric as wide as this part."""
        return Mode(self.mode.theta, Dense(self.distance * self.mode.metric.root))


def are_apart(posterior: BasePosterior, a: Array, b: Array, fall: float) -> bool:
    """Whether the log density between two points falls by ``fall`` below that at the lower one."""
    way = b + np.linspace(0.0, 1.0, 33)[:, None] * (a - b)
    value = posterior.log_density(way)
    return not value.min() > min(value[0], value[-1]) - fall
