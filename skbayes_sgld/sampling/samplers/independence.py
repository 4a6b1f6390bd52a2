"""The independence sampler: proposals that do not depend on the position of the chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.metropolis import LEAST, Adjusted, split_noise

SHARE = 0.1  # share of the proposals from the wide distribution

# Minus the correlation of a pair. Iris, ESS of 4,000 draws: 5,600 of a parameter, 2,000 of its
# squared distance from the centre, 2,600 of tails; 2,600, 2,750 and 2,500 without a correlation
_AGAINST = 0.7
_TOGETHER = 32  # positions of a product, so that rounding does not depend on the block
# Numbers of the positions of an evaluation, whose arrays then stay in cache. Memory of larger ones
# may go back to the system after each use: with 2**17, a gamma fit of 600 rows took 1.5 times as
# long in half of the processes
_NUMBERS = 2**16
_PARTNER = ("theta", "value", "square"), ("partner", "partner_value", "partner_square")


@dataclass(eq=False, repr=False)
class Independence(Adjusted):
    r"""Independence Metropolis: proposals from one distribution, wherever the chain is.

    Nine proposals in ten are normal about the centre, in its metric and ``step_size`` times as
    wide; the others are wider by ``1 + 1.2 / sqrt(P)`` for P parameters, so that chains leave the
    tails (Hastings 1970, Section 2.5; Tierney 1994, Section 2.3.3). It takes no gradient. Draws are
    nearly independent where the posterior is nearly normal. Elsewhere a chain may stand still for
    long at a point of the tails: ``sampler="auto"`` looks at the weights of a pilot's proposals
    first.

    Every second step swaps the position with its partner. A proposal and its partner are a pair
    from one distribution that does not change if they are swapped, of correlation -0.7 about the
    centre. A chain has a position x of the posterior p and a partner v from the distribution
    ``q(v | x)`` of pairs. As ``q(x, v) = q(v, x)``, both kinds of steps accept by the ratio of the
    weights ``p / q`` at the proposed position and at the chain's. Neighbouring draws then lie on
    opposite sides of the centre, so that means have twice the effective sample size of independent
    draws; variances have three quarters.

    ``step_size="auto"`` is 1 about the mean of the posterior, which a pilot estimates. Given a step
    size, the centre is the mode. With another preconditioner than the curvature it is zero. Draws
    are exact once step size and temperature are constant.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(sampler="independence")
    SGLDLogisticRegression(sampler='independence')
    """

    adapts = False
    at_once = True
    extra_normals = 2  # to accept or reject, and for the width

    def step_and_time(self, rates: Array, step: float | None = None) -> tuple[float, float]:
        """Step size of the sd of the widest direction, and a few steps."""
        return step or 1.0 / np.sqrt(rates[0]), 4.0

    def init(self, theta: Array) -> State:
        """State of an adjusted sampler, with partners and which kind of step comes next."""
        no, zero = np.zeros(len(theta), bool), np.zeros(len(theta))
        partner = {"partner": theta, "partner_value": zero, "partner_square": zero}
        # a chain that has just accepted a proposal has a partner only after its next step
        return super().init(theta) | {"square": zero} | partner | {"swaps": no, "new": no}

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Log density and whitened squared distance from the centre; a chain is its own partner."""
        z = dynamics.metric.whiten(theta - _center(dynamics))
        square = np.einsum("cp,cp->c", z, z)
        found = super().evaluate(theta, dynamics) | {"theta": theta, "square": square}
        return found | _as_partner(found)

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Whitened proposals, logs of uniform numbers, and partners of the proposals before."""
        by_chain = normals.swapaxes(0, 1)
        C, T, P = by_chain.shape[0], by_chain.shape[1], by_chain.shape[2] - self.extra_normals
        heat = np.sqrt(np.reshape(np.square(eta) * dynamics.temperature, (T, 1)))
        every = np.concatenate([previous[:, None], by_chain], axis=1)
        z, is_wide = every[..., :P], every[..., P + 1 :] < ndtri(SHARE)
        wide = np.where(is_wide, width(P), 1.0)
        noise = np.empty((C, T, 2 * P + 1))
        noise[..., :P], noise[..., P] = z[:, 1:] * (wide[:, 1:] * heat), log_ndtr(by_chain[..., P])
        across = np.sqrt(1.0 - _AGAINST**2) * z[:, 1:] - _AGAINST * z[:, :-1]
        noise[..., P + 1 :] = across * (wide[:, :-1] * heat)
        return noise.swapaxes(0, 1)

    def positions_at(self, z: Array, dynamics: Dynamics) -> State:
        """Positions of whitened proposals ``z (C, T, P)``, with their densities and distances."""
        theta = dynamics.metric.sqrt(z) + _center(dynamics)  # each chain's is one product
        flat, many = theta.reshape(-1, z.shape[2]), dynamics.in_groups_of(_TOGETHER)
        size = max(1, _NUMBERS // (_TOGETHER * _numbers(dynamics))) * _TOGETHER
        values = [many.log_density_at(flat[at : at + size]) for at in range(0, len(flat), size)]
        value = np.concatenate(values).reshape(z.shape[:2])
        return {"theta": theta, "value": value, "square": np.einsum("ctp,ctp->ct", z, z)}

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Propose a new position or, every second step, to swap it with its partner."""
        swaps, lost = state["swaps"], state["lost"]
        super().step(state, eta, noise, batch, dynamics)
        state["swaps"] = ~swaps
        # only new proposals can be lost: a partner may be the position itself
        state["lost"] = np.where(swaps, lost, state["lost"])

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """New positions, or partners: those of the proposals that the last step has accepted."""
        z, _, partner_z = split_noise(noise, state["theta"].shape[1])
        swaps = bool(state["swaps"][0])
        made = self.positions_at((partner_z if swaps else z)[:, None], dynamics)
        proposal = {name: array[:, 0] for name, array in made.items()}
        if swaps:
            for name, array in _as_partner(proposal).items():
                mask = state["new"].reshape(-1, *[1] * (array.ndim - 1))
                state[name] = np.where(mask, array, state[name])
            proposal = {name: state[other] for name, other in zip(*_PARTNER, strict=True)}
            proposal |= _as_partner(state)
        else:
            state["new"] = np.zeros(len(z), bool)
            proposal["new"] = ~state["new"]
        tau = dynamics.temperature
        return proposal, tau * (_log_weight(proposal, eta, tau) - _log_weight(state, eta, tau))

    def make_at_once(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> Array | None:
        """Positions ``(T, C, P)`` after steps of one size, whose state advances.

        None if single steps have more to count: proposals without a density, or that are lost.
        """
        T, C, P = noise.shape[0], noise.shape[1], state["theta"].shape[1]
        if np.isnan(state["value"]).any():
            state.update(self.evaluate(state["theta"], dynamics))
        tau, swaps = float(dynamics.temperature), (np.arange(T) % 2 == 1) != state["swaps"][0]
        z = np.where(swaps[:, None, None], noise[..., P + 1 :], noise[..., :P])
        made = self.positions_at(np.ascontiguousarray(z.swapaxes(0, 1)), dynamics)
        # a chain's position, its partner, and what the steps propose
        places = {
            name: np.concatenate([state[name][:, None], state[other][:, None], made[name]], axis=1)
            for name, other in zip(*_PARTNER, strict=True)
        }
        weights = _log_weight(places, eta, tau)
        if not (np.isfinite(weights).all() and np.ptp(weights) < -LEAST):
            return None
        # for one number at a time Python's arithmetic is faster than NumPy's
        levels, is_swap = noise[..., P].T.tolist(), swaps.tolist()
        chosen, ends = np.empty((C, T), int), np.empty((2, C), int)
        n_accepted, is_new = np.zeros(C), state["new"].copy()
        for c, weight in enumerate(weights.tolist()):
            at, partner, new, steps, n_made = 0, 1, bool(is_new[c]), [], 0
            for t, (level, swap) in enumerate(zip(levels[c], is_swap, strict=True), start=2):
                if swap:
                    if new:
                        partner = t
                    if level < weight[partner] - weight[at]:
                        at, partner = partner, at
                        n_made += 1
                else:
                    new = level < weight[t] - weight[at]
                    if new:
                        at = t
                        n_made += 1
                steps.append(at)
            chosen[c], ends[:, c], is_new[c], n_accepted[c] = steps, (at, partner), new, n_made
        every = np.arange(C)
        for names, end in zip(_PARTNER, ends, strict=True):
            state.update(zip(names, (places[k][every, end] for k in _PARTNER[0]), strict=True))
        state["new"], state["swaps"] = is_new, np.full(C, not swaps[-1])
        state["accepted"] = state["accepted"] + n_accepted
        state["lost"] = np.zeros_like(state["lost"])
        return places["theta"][every, chosen.T]


def width(n_params: int) -> float:
    """Width of the wide proposals: their distance from the centre is longer by about 1.2."""
    return 1.0 + 1.2 / float(np.sqrt(n_params))


def log_proposal(square: Array, n_params: int) -> Array:
    """Log density of proposals at whitened squared distances, up to a constant."""
    s = width(n_params)
    wide = -0.5 * square / s**2 + np.log(SHARE) - n_params * np.log(s)
    return np.logaddexp(np.log1p(-SHARE) - 0.5 * square, wide)


def _numbers(dynamics: Dynamics) -> int:
    """Numbers that the density at a position takes: predictors, if it reads the rows."""
    facts, posterior = dynamics.facts, dynamics.posterior
    if facts.cheap_full_gradient:
        return posterior.n_params
    return (posterior.n_samples or 1024) * facts.n_predictors


def _as_partner(at: State) -> State:
    """Entries of a state for partners at these positions."""
    return {other: at[name] for name, other in zip(*_PARTNER, strict=True)}


def _center(dynamics: Dynamics) -> Any:
    """Centre of the proposals."""
    return 0.0 if dynamics.center is None else dynamics.center


def _log_weight(at: State, eta: float, tau: Any) -> Array:
    """Log of the tempered density over that of the proposals, up to a constant."""
    return at["value"] / tau - log_proposal(at["square"] / (eta**2 * tau), at["theta"].shape[-1])
