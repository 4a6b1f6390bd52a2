"""Base of samplers that accept or reject."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State

_LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of an acceptance probability: below, it is 0


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
        lost = {name: np.zeros(n_chains, dtype=int) for name in ("lost", "lost_in")}
        unknown = {"value": np.full(n_chains, np.nan)}  # the first step computes it
        seen = {"undefined": np.zeros(n_chains), "undefined_at": np.full_like(theta, np.nan)}
        return {"theta": theta, "accepted": np.zeros(n_chains), **unknown, **seen, **lost}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """``sqrt(tau) G^{1/2} z`` of every step, and the log of a uniform number."""
        # chains first, so that each chain's noise is a product of its own
        by_chain = np.ascontiguousarray(normals[..., :-1].swapaxes(0, 1))
        noise = dynamics.preconditioner.sqrt(by_chain).swapaxes(0, 1)
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
        raise NotImplementedError

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
            state["lost"] = (state["lost"] + 1) * lost
            if lost.any():
                move = np.nan_to_num(np.abs(proposal["theta"] - state["theta"]), nan=np.inf)
                state["lost_in"] = np.where(lost, move.argmax(axis=1), state["lost_in"])
            for name, new in proposal.items():
                chosen = accept.reshape(-1, *[1] * (new.ndim - 1))
                state[name] = np.where(chosen, new, state[name])
        state["accepted"] = state["accepted"] + accept
