"""Random walk Metropolis, and the base of samplers that accept or reject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State

_LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of an acceptance probability: below, it is 0

_DIVERGED = 1e3  # change of the energy at which a trajectory has diverged, as in Stan


class Adjusted(Sampler):
    """A sampler whose proposals are accepted or rejected: exact for any step size.

    It needs the log density, so every step takes all rows.
    """

    adjusted = True
    full_gradient = True
    extra_normals = 1  # to accept or reject
    largest_step = 1.0
    target_acceptance: float

    def check(self) -> None:
        """Raise where the target acceptance is not a probability."""
        check_number(self.target_acceptance, "sampler.target_acceptance", low=0, high=1)

    def init(self, theta: Array) -> State:
        """State: positions, log density there, and counts of acceptances and of lost proposals."""
        n_chains = theta.shape[0]
        losses = {name: np.zeros(n_chains, dtype=int) for name in ("lost", "lost_in")}
        unknown = {"value": np.full(n_chains, np.nan)}  # the first step computes it
        unknown |= {"diverged": np.zeros(n_chains)}
        domain = {"undefined": np.zeros(n_chains), "undefined_at": np.full_like(theta, np.nan)}
        return {"theta": theta, "accepted": np.zeros(n_chains), **unknown, **domain, **losses}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """``sqrt(tau) G^{1/2} z`` of every step, and the log of a uniform number."""
        # chains first, so that each chain's noise is a product of its own
        by_chain = np.ascontiguousarray(normals[..., :-1].swapaxes(0, 1))
        noise = dynamics.metric.sqrt(by_chain).swapaxes(0, 1)
        # a temperature for all steps, or one each
        noise = noise * np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        return np.concatenate([noise, log_ndtr(normals[..., -1:])], axis=-1)

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Entries of the state that depend on the density at ``theta``."""
        return {"value": dynamics.posterior.log_density(theta)}

    def whole_steps(self, step: float) -> float:
        """Step size near ``step`` that suits a proposal made of whole steps."""
        return step

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """State at the proposals, and tau times the logs of their acceptance ratios."""
        raise self._undefined("propose")

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Propose, and accept or reject."""
        if np.isnan(state["value"]).any():
            state.update(self.evaluate(state["theta"], dynamics))
        proposal, log_ratio = self.propose(state, eta, noise, dynamics)
        if np.isnan(log_ratio).any():
            # but for an overflow, and a density of 0, whose gradient may be anything
            undefined = np.isfinite(proposal["theta"]).all(axis=1) & np.isnan(log_ratio)
            undefined &= proposal["value"] != -np.inf
            state["undefined"] = state["undefined"] + undefined
            at = np.where(undefined[:, None], proposal["theta"], state["undefined_at"])
            state["undefined_at"] = at
        log_uniform = noise[:, state["theta"].shape[1]]
        # a density that is infinite has overflowed
        log_ratio = np.where(proposal["value"] < np.inf, log_ratio / dynamics.temperature, -np.inf)
        accept = log_uniform < log_ratio
        if accept.all():
            state.update(proposal, lost=np.zeros_like(state["lost"]))
        else:
            # proposals in a row that no chain could ever have accepted, and the parameter in which
            # the last of them was thrown farthest
            lost = log_ratio < _LEAST
            # trajectories along which the energy was not kept at all
            astray = ~(log_ratio >= -_DIVERGED) & (proposal["value"] != -np.inf)
            state["diverged"] = state["diverged"] + astray
            state["lost"] = (state["lost"] + 1) * lost
            if lost.any():
                move = np.nan_to_num(np.abs(proposal["theta"] - state["theta"]), nan=np.inf)
                state["lost_in"] = np.where(lost, move.argmax(axis=1), state["lost_in"])
            for name, new in proposal.items():
                mask = accept.reshape(-1, *[1] * (new.ndim - 1))
                state[name] = np.where(mask, new, state[name])
        state["accepted"] = state["accepted"] + accept


@dataclass(eq=False, repr=False)
class RandomWalk(Adjusted):
    """Random walk Metropolis: the proposal is ``theta + step_size sqrt(tau) G^{1/2} noise``.

    It takes no gradient, and as many steps as there are parameters, and more, to an independent
    draw (Metropolis et al. 1953; Roberts, Gelman & Gilks 1997).

    Parameters
    ----------
    target_acceptance : float, default=0.234
        What ``step_size="auto"`` aims at: optimal in many dimensions (Roberts, Gelman & Gilks
        1997, Corollary 1.2); a single parameter wants 0.44.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="random_walk")
    SGLDLogisticRegression(sampler='random_walk')
    """

    target_acceptance: float = 0.234

    largest_step = 2.4

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """2.38 over the root of the dimension, in sds of the narrowest direction."""
        step = step or 2.38 / np.sqrt(len(rates) * rates[-1])
        return step, 34.0 / (step**2 * rates[0])

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Take a random step."""
        theta = state["theta"] + eta * noise[:, : state["theta"].shape[1]]
        value = dynamics.posterior.log_density(theta)
        return {"theta": theta, "value": value}, value - state["value"]
