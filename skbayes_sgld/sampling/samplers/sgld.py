"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_choice
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State


@dataclass(eq=False, repr=False)
class SGLD(Sampler):
    r"""Stochastic gradient Langevin dynamics.

    One step is

    .. math:: \theta \leftarrow \theta + \eta\, G\, g(\theta) + \sqrt{2 \eta \tau}\, G^{1/2} \xi,
        \quad \xi \sim N(0, I),

    with step size :math:`\eta`, preconditioner G, temperature :math:`\tau` and the estimate g of
    the log posterior's gradient. Welling and Teh's :math:`\epsilon` is :math:`2 \eta`.

    Leimkuhler-Matthews steps lose some of a posterior's skewness: a quarter at a step of 1 in the
    metric of the curvature. In that metric, and without a clip, draws of fits are therefore
    corrected positions (a postprocessor: Vilmart 2015)

    .. math:: \theta_n + c\, (r_n - r_{n-1}), \quad
        r = \theta + G g(\theta) / \lambda, \quad
        c = \frac{s}{3 (4 - s) (3 - 3 s + s^2)}, \quad s = \eta \lambda,

    with the mean curvature :math:`\lambda` of the posterior, which is about 1 in this metric. On a
    normal posterior r is constant, so that the correction vanishes. On others the draws have the
    third cumulants of the posterior, to first order in those. The chain's positions, and so the
    means of the draws, stay as they are.

    Parameters
    ----------
    integrator : {"leimkuhler_matthews", "euler"}, default="leimkuhler_matthews"
        ``"euler"`` adds a new standard normal at every step: Algorithm 21 of the handout. On a
        normal target of precision lambda its variance is too large by
        ``1 / (1 - eta lambda / 2)``. ``"leimkuhler_matthews"`` adds the mean of the previous
        step's normal and this one's (Leimkuhler & Matthews 2013, eq. 1.4). Its error is of second
        order in eta, and zero on a normal target, at the same cost.

    References
    ----------
    Welling & Teh 2011, Bayesian learning via stochastic gradient Langevin dynamics; Karagiannis,
    Handout 6, eq. 3.4 and 3.9; Vilmart 2015, Postprocessed integrators for the high order
    integration of ergodic SDEs.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.sampling import SGLD
    >>> SGLDLinearRegression(sampler=SGLD(integrator="euler"))
    SGLDLinearRegression(sampler=SGLD(integrator='euler'))
    """

    integrator: str = "leimkuhler_matthews"

    def check(self) -> None:
        """Raise if the integrator is not known."""
        check_integrator(self.integrator)

    def gaussian_inflation(self, eta: float) -> float:
        """Variance of the chain over the target's, on a normal target of precision 1."""
        return 1.0 / (1.0 - eta / 2.0) if self.integrator == "euler" else 1.0

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """``sqrt(2 eta tau) G^{1/2} noise`` of every step."""
        # chains first, so that each chain's noise is one product
        z = np.ascontiguousarray(normals.swapaxes(0, 1))
        scale = np.sqrt(2.0 * dynamics.temperature * eta)[:, None]
        if self.integrator == "leimkuhler_matthews":
            sums = np.empty_like(z)
            np.add(z[:, 0], previous, out=sums[:, 0])
            np.add(z[:, 1:], z[:, :-1], out=sums[:, 1:])
            z, scale = sums, 0.5 * scale
        noise = np.empty(normals.shape)  # a step's noise is contiguous, as it is added at once
        np.multiply(dynamics.metric.sqrt(z), scale, out=noise.swapaxes(0, 1))
        return noise

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """``theta + eta G g(theta) + noise``."""
        move = dynamics.move(state, batch, eta)
        if dynamics.curvature is not None and self.integrator == "leimkuhler_matthews":
            # longer steps than 2 are unstable anyway
            self._correct(state, move, min(eta * dynamics.curvature, 2.0))
        move += noise  # in place: with new arrays a step of four chains takes 1.2x
        state["theta"] = move

    def _correct(self, state: State, move: Array, s: float) -> None:
        """Make the draw of the position before a step, which moves it by ``s`` Newton steps."""
        theta = state["theta"]
        newton = move - theta
        newton /= s
        newton += theta
        # the first position has none before it
        draw = newton - state.get("newton", newton)
        draw *= s / (3.0 * (4.0 - s) * (3.0 - 3.0 * s + s * s))
        draw += theta
        state["newton"], state["draw"] = newton, draw

    def draw(self, state: State) -> Array:
        """Corrected position before the last step; the position itself without correction."""
        return state.get("draw", state["theta"])


def check_integrator(integrator: str) -> None:
    """Raise if ``integrator`` is no integrator of SGLD and SGHMC."""
    check_choice(integrator, "sampler.integrator", ("euler", "leimkuhler_matthews"))
