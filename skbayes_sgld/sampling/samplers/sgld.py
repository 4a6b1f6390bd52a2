"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.protocol import Sampler

_INTEGRATORS = ("euler", "leimkuhler_matthews")


def _add_normal_path(start: Array, rates: Array, noise: Array, path: Array) -> None:
    """Write to ``path (T, C, P)`` the positions of chains on a standard normal target."""
    kept = 1.0 - rates[:, None]
    if not kept.any():  # every step is a new draw
        path[...] = noise
        return
    at = start
    for t, share in enumerate(kept):
        at = np.multiply(at, share, out=path[t])
        at += noise[t]


def _paths(
    start: Array, eta: Array, noise: Array, a: float, b: float, w: float
) -> list[list[float]] | None:
    """Positions of each chain ``(C, T)`` whose gradient is ``a exp(-w x) + b``; None: it overflows.

    Of one number at a time Python's own arithmetic is faster than NumPy's.
    """
    pulls, rest = (a * eta).tolist(), (noise + (b * eta)[:, None]).T.tolist()
    try:
        return [_path(x, pulls, each, -w) for x, each in zip(start.tolist(), rest, strict=True)]
    except OverflowError:
        return None


def _path(x: float, pulls: list[float], rest: list[float], w: float) -> list[float]:
    return [x := x + pull * exp(w * x) + e for pull, e in zip(pulls, rest, strict=True)]


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
    separate = True

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
        scale = np.sqrt(2.0 * dynamics.temperature * eta)[:, None]
        if self.integrator == "euler":
            return (dynamics.preconditioner.sqrt(z) * scale).swapaxes(0, 1)
        sums = np.empty_like(z)
        np.add(z[:, 0], state["normal"], out=sums[:, 0])
        np.add(z[:, 1:], z[:, :-1], out=sums[:, 1:])
        state["normal"] = z[:, -1].copy()
        noise = dynamics.preconditioner.sqrt(sums)
        noise *= 0.5 * scale
        return noise.swapaxes(0, 1)

    def advance(
        self, state: State, eta: Array, noise: Array | None, dynamics: Dynamics
    ) -> Array | None:
        """Advance theta by a block of steps where its coordinates move each on its own."""
        metric, posterior = dynamics.preconditioner.diagonal, dynamics.gradient.posterior
        if metric is None or dynamics.clip is not None:
            return None
        slope = posterior.slope_of_last()
        if slope is None:
            return None
        assert noise is not None
        path, rates = np.empty(noise.shape), metric[:-1] * eta[:, None]
        _add_normal_path(state["theta"][:, :-1], rates, noise[..., :-1], path[..., :-1])
        last = _paths(state["theta"][:, -1], metric[-1] * eta, noise[..., -1], *slope)
        if last is None:
            return None
        path[..., -1] = np.transpose(last)
        return path

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance theta."""
        theta = state["theta"]
        if dynamics.bound_drift is None:
            move = dynamics.drift(theta, batch, state) * eta
        else:  # of a new array
            move = dynamics.bound_drift(theta, batch)
            move *= eta
        move += noise
        move += theta
        state["theta"] = move
