"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Array, Dynamics, Sampler, State

_INTEGRATORS = ("auto", "euler", "leimkuhler_matthews", "metropolis")


@dataclass(eq=False, repr=False)
class SGLD(Sampler):
    """Stochastic gradient Langevin dynamics (Welling & Teh 2011).

    One step, with step size eta, preconditioner G, temperature tau and gradient estimate g::

        theta <- theta + eta G g(theta) + sqrt(2 eta tau) G^{1/2} noise

    (Karagiannis, Handout 6, eq. 3.4 and 3.9; Welling & Teh's epsilon is 2 eta.)

    Parameters
    ----------
    integrator : {"auto", "euler", "leimkuhler_matthews", "metropolis"}, default="auto"
        ``"euler"`` adds a fresh standard normal at every step: Algorithm 21 of the handout, to
        the letter. On a normal target of precision lambda its variance is too large by
        ``1 / (1 - eta lambda / 2)``. ``"leimkuhler_matthews"`` adds the mean of this step's
        normal and the next one's (Leimkuhler & Matthews 2013, eq. 1.4): the same cost, second
        order in eta, and no error at all on a normal target. ``"metropolis"`` accepts or rejects
        each Euler step (Roberts & Tweedie 1996, Section 1.4.1), which makes it exact for any step
        size; it needs the gradient from all rows. ``"auto"`` is Leimkuhler-Matthews where a pilot
        finds no error in it, and Metropolis where it does and every step takes all rows.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.sampling import SGLD
    >>> SGLDLinearRegression(sampler=SGLD(integrator="euler"))
    SGLDLinearRegression(sampler=SGLD(integrator='euler'))
    """

    integrator: str = "auto"

    def check(self) -> None:
        """Raise where the integrator is not known."""
        if self.integrator not in _INTEGRATORS:
            raise ValueError(
                f"sampler.integrator={self.integrator!r} is not known; choose one of "
                f"{', '.join(map(repr, _INTEGRATORS))}."
            )

    def candidates(self, full_gradient: bool) -> list[Sampler]:
        """Return the integrators that ``"auto"`` stands for."""
        if self.integrator != "auto":
            return [self]
        return [SGLD("leimkuhler_matthews")] + [SGLD("metropolis")] * full_gradient

    def unadjusted(self) -> Sampler:
        """Return the integrator that does not reject."""
        return SGLD("leimkuhler_matthews") if self.adjusted else self

    @property
    def adjusted(self) -> bool:  # type: ignore[override]
        """Whether steps are accepted or rejected."""
        return self.integrator == "metropolis"

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the posterior must offer."""
        return ("value_and_grad",) if self.adjusted else ()

    @property
    def full_gradient(self) -> bool:  # type: ignore[override]
        """Whether every step must take all rows."""
        return self.adjusted

    @property
    def extra_normals(self) -> int:  # type: ignore[override]
        """One more a step where a proposal is accepted or rejected."""
        return int(self.adjusted)

    def gaussian_inflation(self, eta: float) -> float:
        """Return the chain's variance over the target's, on a normal target of precision 1."""
        return 1.0 / (1.0 - eta / 2.0) if self.integrator == "euler" else 1.0

    def init(self, theta: Array, noise: Array | None) -> State:
        """Return the state: positions and each chain's latest normal."""
        assert noise is not None
        n_chains = theta.shape[0]
        if self.adjusted:
            zero = np.zeros(n_chains)
            # no value yet: the first proposal is taken, from the starting point's gradient
            unknown = {"value": np.full(n_chains, np.nan), "grad": np.zeros_like(theta)}
            return {"theta": theta, "accepted": zero, **unknown}
        return {"theta": theta, "normal": noise}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Return ``sqrt(2 eta tau) G^{1/2} noise`` of every step.

        Where proposals are accepted or rejected, the log of a uniform number stands behind it.
        """
        assert normals is not None
        log_uniform = None
        if self.adjusted:
            normals, log_uniform = normals[..., :-1], log_ndtr(normals[..., -1:])
        elif self.integrator != "euler":
            path = np.concatenate([state["normal"][None], normals])
            normals, state["normal"] = 0.5 * (path[:-1] + path[1:]), path[-1]
        # chains first: a chain's noise is then a product of its own
        by_chain = np.ascontiguousarray(normals.swapaxes(0, 1))
        colored = dynamics.preconditioner.sqrt(by_chain).swapaxes(0, 1)
        noise = colored * np.sqrt(2.0 * dynamics.temperature * eta)[:, None, None]
        if log_uniform is not None:
            return np.concatenate([noise, log_uniform], axis=-1)
        return np.ascontiguousarray(noise)

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Advance theta."""
        if self.adjusted:
            assert noise is not None
            self._propose(state, eta, noise[:, :-1], noise[:, -1], dynamics)
            return
        theta = state["theta"]
        move = dynamics.drift(theta, batch)
        move = move * eta
        move += noise
        move += theta
        state["theta"] = move

    def _propose(
        self, state: State, eta: np.floating, noise: Array, log_uniform: Array, dynamics: Dynamics
    ) -> None:
        theta, value, grad = state["theta"], state["value"], state["grad"]
        if np.isnan(value).any():
            value, grad = dynamics.value_and_gradient_at(theta)
        metric = dynamics.preconditioner
        proposal = theta + eta * metric.scale(grad) + noise
        new_value, new_grad = dynamics.value_and_gradient_at(proposal)
        # |noise + eta G s|^2 - |noise|^2 in the metric of G^{-1}, with s the sum of both gradients
        both = grad + new_grad
        turn = np.einsum("cp,cp->c", both, 2.0 * noise + eta * metric.scale(both))
        log_ratio = (new_value - value - 0.25 * turn) / dynamics.temperature
        accept = log_uniform < log_ratio  # False for a proposal that overflows
        state["theta"] = np.where(accept[:, None], proposal, theta)
        state["value"] = np.where(accept, new_value, value)
        state["grad"] = np.where(accept[:, None], new_grad, grad)
        state["accepted"] = state["accepted"] + accept


SAMPLERS: Registry[Sampler] = Registry(Sampler, sgld=SGLD)
