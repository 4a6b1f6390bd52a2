r"""Kinetic Langevin dynamics along whitened rows: no proposals, and no rejections.

A trajectory that is accepted or rejected as a whole must keep its energy to within 1, summed over
all parameters, so its steps shorten as parameters are added. Steps that are never rejected need to
keep the energy of each parameter only: with 5,000 rows of 3,000 columns they may be three times as
long.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, sin, sqrt
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Dynamics, State


@dataclass(eq=False, repr=False)
class KineticLangevin(Sampler):
    r"""Kinetic Langevin dynamics in the coordinates of whitened rows.

    A step of size h kicks the momentum by the force of the rows beyond a standard normal
    distribution, rotates position and momentum by h / 2, replaces a share of the momentum by noise,
    and rotates again: the splitting of Leimkuhler & Matthews (2013), "BAOAB", around the exact flow
    of a normal distribution. On that distribution steps of any size are exact.

    Parameters
    ----------
    friction : float, default=0.4
        Rate at which the momentum is forgotten. On a normal distribution the integrated
        autocorrelation times of means and of squares are ``2 friction`` and ``friction + 1 /
        friction``, in units of time.
    n_kicks : int, default=1
        Steps, of one gradient each, between two positions that may be draws.
    cooling : float, default=0.0
        Share of the noise's variance that is left out, since long steps add as much heat.
    """

    friction: float = 0.4
    n_kicks: int = 1
    cooling: float = 0.0

    full_gradient = True

    def check(self) -> None:
        """Raise if friction or number of kicks is out of range."""
        check_number(self.friction, "sampler.friction", low=0)
        check_number(self.n_kicks, "sampler.n_kicks", low=1, closed="left", integer=True)
        check_number(self.cooling, "sampler.cooling", low=0, high=1, closed="left")

    def n_normals(self, n_params: int) -> int:
        """Number of standard normals of a step: the noise of each kick."""
        return self.n_kicks * n_params

    def gradients(self, step: float) -> int:
        """Number of gradients of a step."""
        return self.n_kicks

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Size of a step, and the number of positions to an independent draw."""
        step = step or 1.0 / np.sqrt(rates[-1])
        time = 2.0 * max(self.friction / rates[0], 1.0 / self.friction)
        return step, max(1.0, time / (step * self.n_kicks))

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        return 1.0

    def init(self, theta: Array) -> State:
        """State: positions, and momenta, which are empty until the first step."""
        empty = np.empty((len(theta), 0), np.float32)
        return {"theta": theta, "z": empty, "momentum": empty}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Noise of the momenta, in single precision."""
        heat = np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        return np.multiply(heat, normals, dtype=np.float32, casting="same_kind")

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Follow the dynamics for ``n_kicks`` kicks."""
        rows = dynamics.whitened
        assert rows is not None
        z, momentum = state["z"], state["momentum"]
        each = np.split(noise, self.n_kicks, axis=1)
        if not momentum.size:
            z = dynamics.metric.whiten(state["theta"] - rows.center).astype(np.float32)
            momentum = each.pop()
        for normals in each:
            z, momentum, _ = self.kicked(rows, z, momentum, float(eta), normals)
        state.update(theta=rows.locate(z), z=z, momentum=momentum)

    def kicked(
        self, rows: WhitenedPosterior, z: Array, momentum: Array, size: float, noise: Array
    ) -> tuple[Array, Array, Array]:
        """Position and momentum ``(C, P)`` after a kick and a turn, and the gradient at ``z``."""
        force = rows.grad(z).astype(np.float32, copy=False)
        turn, kept = (cos(0.5 * size), sin(0.5 * size)), exp(-self.friction * size)
        momentum = momentum + size * (force + z)
        z, momentum = _turned(z, momentum, *turn)
        momentum *= kept
        momentum += sqrt((1.0 - kept * kept) * (1.0 - self.cooling)) * noise
        return *_turned(z, momentum, *turn), force


def _turned(z: Array, momentum: Array, cosine: float, sine: float) -> tuple[Array, Array]:
    """Position and momentum after a rotation."""
    return cosine * z + sine * momentum, cosine * momentum - sine * z
