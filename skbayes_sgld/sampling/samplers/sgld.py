"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld.sampling.protocol import Array, Dynamics, Sampler, State

_INTEGRATORS = ("euler", "leimkuhler_matthews")


@dataclass(eq=False, repr=False)
class SGLD(Sampler):
    """Stochastic gradient Langevin dynamics (Welling & Teh 2011).

    One step, with step size eta, preconditioner G, temperature tau and gradient estimate g::

        theta <- theta + eta G g(theta) + sqrt(2 eta tau) G^{1/2} noise

    (Karagiannis, Handout 6, eq. 3.4 and 3.9; Welling & Teh's epsilon is 2 eta.)

    Parameters
    ----------
    integrator : {"leimkuhler_matthews", "euler"}, default="leimkuhler_matthews"
        ``"euler"`` adds a fresh standard normal at every step: Algorithm 21 of the handout, to
        the letter. On a normal target of precision lambda its variance is too large by
        ``1 / (1 - eta lambda / 2)``. ``"leimkuhler_matthews"`` adds the mean of this step's
        normal and the next one's (Leimkuhler & Matthews 2013, eq. 1.4): the same cost, second
        order in eta, and no error at all on a normal target.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.sampling import SGLD
    >>> SGLDLinearRegression(sampler=SGLD(integrator="euler"))
    SGLDLinearRegression(sampler=SGLD(integrator='euler'))
    """

    integrator: str = "leimkuhler_matthews"

    def check(self) -> None:
        """Raise where the integrator is not known."""
        if self.integrator not in _INTEGRATORS:
            raise ValueError(
                f"sampler.integrator={self.integrator!r} is not known; choose one of "
                f"{', '.join(map(repr, _INTEGRATORS))}."
            )

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        return 1.0 / (1.0 - eta / 2.0) if self.integrator == "euler" else 1.0

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: positions, and each chain's latest standard normals."""
        assert noise is not None
        return {"theta": theta, "normal": noise}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """``sqrt(2 eta tau) G^{1/2} noise`` of every step."""
        assert normals is not None
        # chains first, so that each chain's noise is a product of its own
        z = np.ascontiguousarray(normals.swapaxes(0, 1))
        scale = np.sqrt(2.0 * dynamics.temperature * eta)
        if self.integrator != "euler":
            means = z.copy()
            means[:, 0] += state["normal"]
            means[:, 1:] += z[:, :-1]
            state["normal"], z = z[:, -1], means
            scale *= 0.5
        noise = dynamics.preconditioner.sqrt(z) * scale[:, None]
        return noise.swapaxes(0, 1)

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance theta."""
        theta = state["theta"]
        move = dynamics.drift(theta, batch, state) * eta
        move += noise
        move += theta
        state["theta"] = move
