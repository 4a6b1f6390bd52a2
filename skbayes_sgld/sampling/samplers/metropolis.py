"""Random walk Metropolis, and the base of samplers that accept or reject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State

LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of the least positive probability

_DIVERGED = 1e3  # change of the energy at which a trajectory has diverged, as in Stan


class StepNoise(NamedTuple):
    """Noise of one step of a sampler that accepts or rejects, by its columns.

    Attributes
    ----------
    move : ndarray of shape (C, P)
        One number per parameter, such as the momentum.
    log_uniform : ndarray of shape (C,)
        Log of the uniform number that decides on the proposal.
    rest : ndarray of shape (C, n_extra - 1)
        Further columns, such as the jittered step size.
    """

    move: Array
    log_uniform: Array
    rest: Array


def split_noise(noise: Array, n_params: int) -> StepNoise:
    """Parts of the noise ``(C, P + n_extra)`` that :meth:`Adjusted.prepare` returns for a step."""
    return StepNoise(noise[:, :n_params], noise[:, n_params], noise[:, n_params + 1 :])


class Adjusted(Sampler):
    """A sampler whose proposals are accepted or rejected: exact for any step size.

    Subclasses define :meth:`propose`, and :meth:`evaluate` if a proposal takes more than the log
    density. Every step takes all rows, since the log density does.

    Attributes
    ----------
    extra_normals : int
        Normals of a step besides one per parameter. The first decides on the proposal:
        :meth:`prepare` replaces it by the log of a uniform number.
    largest_step : float
        Longest step that ``step_size="auto"`` tries, in posterior sds.
    target_acceptance : float
        Share of the proposals to accept, at which ``step_size="auto"`` aims.
    adapts : bool
        Whether a pilot of ``step_size="auto"`` changes the step size for that.
    """

    exact = adjusted = True
    full_gradient = True
    extra_normals = 1
    adapts = True
    largest_step = 1.0
    target_acceptance: float = 0.574  # optimal for Langevin proposals in many dimensions

    def check(self) -> None:
        """Raise if the target acceptance is not a probability."""
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
        """``sqrt(tau) G^{1/2} z`` of every step, and the log of a uniform number to accept by."""
        # chains first, so that each chain's noise is one product
        by_chain = np.ascontiguousarray(normals[..., :-1].swapaxes(0, 1))
        noise = dynamics.metric.sqrt(by_chain).swapaxes(0, 1)
        # one temperature for all steps, or one for each
        noise = noise * np.reshape(np.sqrt(dynamics.temperature), (-1, 1, 1))
        return np.concatenate([noise, log_ndtr(normals[..., -1:])], axis=-1)

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Entries of the state that depend on the density at ``theta``, ``value`` among them."""
        return {"value": dynamics.log_density_at(theta)}

    def whole_steps(self, step: float) -> float:
        """Step size near ``step`` of which a proposal takes a whole number."""
        return step

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Proposals, and tau times the logs of their acceptance ratios ``(C,)``.

        The proposals are the entries of the state that they change: ``theta``, ``value`` and
        whatever else :meth:`evaluate` returns.
        """
        raise self._undefined("propose")

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Propose, and accept or reject."""
        if np.isnan(state["value"]).any():
            state.update(self.evaluate(state["theta"], dynamics))
        proposal, log_ratio = self.propose(state, eta, noise, dynamics)
        if np.isnan(log_ratio).any():
            # neither an overflow nor a density of 0, whose gradient may be anything
            undefined = np.isfinite(proposal["theta"]).all(axis=1) & np.isnan(log_ratio)
            undefined &= proposal["value"] != -np.inf
            state["undefined"] = state["undefined"] + undefined
            at = np.where(undefined[:, None], proposal["theta"], state["undefined_at"])
            state["undefined_at"] = at
        log_uniform = split_noise(noise, state["theta"].shape[1]).log_uniform
        # an infinite density is an overflow
        log_ratio = np.where(proposal["value"] < np.inf, log_ratio / dynamics.temperature, -np.inf)
        accept = log_uniform < log_ratio
        if accept.all():
            state.update(proposal, lost=np.zeros_like(state["lost"]))
        else:
            # count consecutive proposals of acceptance probability 0, and keep the parameter that
            # the last of them moved farthest
            lost = log_ratio < LEAST
            # divergent trajectories: the energy was not conserved at all
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

    It takes no gradient. An independent draw takes at least as many steps as there are parameters
    (Metropolis et al. 1953; Roberts, Gelman & Gilks 1997).

    Parameters
    ----------
    target_acceptance : float, default=0.234
        Acceptance that ``step_size="auto"`` aims at: optimal in many dimensions (Roberts, Gelman &
        Gilks 1997, Corollary 1.2). For a single parameter 0.44 is best.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="random_walk")
    SGLDLogisticRegression(sampler='random_walk')
    """

    target_acceptance: float = 0.234

    largest_step = 2.4

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Step size of 2.38 sds of the narrowest direction, over the root of the dimension."""
        step = step or 2.38 / np.sqrt(len(rates) * rates[-1])
        return step, 34.0 / (step**2 * rates[0])

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Take a random step."""
        theta = state["theta"] + eta * split_noise(noise, state["theta"].shape[1]).move
        value = dynamics.log_density_at(theta)
        return {"theta": theta, "value": value}, value - state["value"]
