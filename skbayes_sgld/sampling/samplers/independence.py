"""The independence sampler: proposals that do not depend on the position of the chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.metropolis import LEAST, Adjusted, split_noise

SHARE = 0.1  # share of the proposals from the wide distribution

_TOGETHER = 32  # positions of a product, so that rounding does not depend on the block
# Numbers of the positions of an evaluation, whose arrays then stay in cache. Memory of larger ones
# may go back to the system after each use: with 2**17, a gamma fit of 600 rows took 1.5 times as
# long in half of the processes
_NUMBERS = 2**15


@dataclass(eq=False, repr=False)
class Independence(Adjusted):
    r"""Independence Metropolis: proposals from one distribution, wherever the chain is.

    Nine proposals in ten are normal about the centre, in its metric and ``step_size`` times as
    wide; the others are wider by ``1 + 1.2 / sqrt(P)`` for P parameters, so that chains leave the
    tails (Hastings 1970, Section 2.5; Tierney 1994, Section 2.3.3). It takes no gradient. Draws are
    nearly independent where the posterior is nearly normal. Elsewhere a chain may stand still for
    long at a point of the tails: ``sampler="auto"`` looks at the weights of a pilot's proposals
    first.

    ``step_size="auto"`` is 1 about the mean of the posterior, which a pilot estimates. Given a step
    size, the centre is the mode. With another preconditioner than the curvature it is zero.

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
        """State of an adjusted sampler, with the whitened squared distances from the centre."""
        return super().init(theta) | {"square": np.zeros(len(theta))}

    def evaluate(self, theta: Array, dynamics: Dynamics) -> State:
        """Log density, and whitened squared distance from the centre."""
        z = dynamics.metric.whiten(theta - _center(dynamics))
        return super().evaluate(theta, dynamics) | {"square": np.einsum("cp,cp->c", z, z)}

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Proposals, logs of uniform numbers, log densities, and whitened squared distances."""
        by_chain = normals.swapaxes(0, 1)  # each chain's noise is one product
        C, T, P = by_chain.shape[0], by_chain.shape[1], by_chain.shape[2] - self.extra_normals
        heat = np.reshape(np.square(eta) * dynamics.temperature, (T, 1))
        is_wide = by_chain[..., P + 1 :] < ndtri(SHARE)
        z = by_chain[..., :P] * (np.where(is_wide, width(P), 1.0) * np.sqrt(heat))
        theta = dynamics.metric.sqrt(z) + _center(dynamics)
        flat, many = theta.reshape(-1, P), dynamics.in_groups_of(_TOGETHER)
        size = max(1, _NUMBERS // (_TOGETHER * _numbers(dynamics))) * _TOGETHER
        values = [many.log_density_at(flat[at : at + size]) for at in range(0, len(flat), size)]
        noise = np.empty((C, T, P + 3))
        noise[..., :P], noise[..., P] = theta, log_ndtr(by_chain[..., P])
        noise[..., P + 1] = np.concatenate(values).reshape(C, T)
        noise[..., P + 2] = np.einsum("ctp,ctp->ct", z, z)
        return noise.swapaxes(0, 1)

    def propose(
        self, state: State, eta: float, noise: Array, dynamics: Dynamics
    ) -> tuple[State, Array]:
        """Proposals of the step, as :meth:`prepare` has made them."""
        theta, _, rest = split_noise(noise, state["theta"].shape[1])
        value, square = rest.T
        proposal = {"theta": theta, "value": value, "square": square}
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
        tau = float(dynamics.temperature)
        theta, log_uniform, rest = split_noise(noise.reshape(T * C, -1), P)
        made = {"theta": theta, "value": rest[:, 0], "square": rest[:, 1]}
        here, weights = (_log_weight(each, eta, tau) for each in (state, made))
        both = np.concatenate([here, weights])
        if not (np.isfinite(both).all() and np.ptp(both) < -LEAST):
            return None
        # for one number at a time Python's arithmetic is faster than NumPy's
        each = weights.reshape(T, C).T.tolist(), log_uniform.reshape(T, C).T.tolist()
        chosen = np.empty((C, T), int)  # step whose proposal is the position; -1 for the first one
        for c, (at, one, levels) in enumerate(zip(here.tolist(), *each, strict=True)):
            last, steps = -1, []
            for t, weight in enumerate(one):
                if levels[t] < weight - at:
                    at, last = weight, t
                steps.append(last)
            chosen[c] = steps
        index = (chosen * C + np.arange(C)[:, None]).T
        path = np.where((chosen < 0).T[..., None], state["theta"], theta[index])
        moved = np.diff(chosen, axis=1, prepend=-1) > 0
        end = chosen[:, -1] >= 0
        for name, array in made.items():
            mask = end.reshape(-1, *[1] * (array.ndim - 1))
            state[name] = np.where(mask, array[index[-1]], state[name])
        state["accepted"] = state["accepted"] + moved.sum(axis=1)
        state["lost"] = np.zeros_like(state["lost"])
        return path


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


def _center(dynamics: Dynamics) -> Any:
    """Centre of the proposals."""
    return 0.0 if dynamics.center is None else dynamics.center


def _log_weight(at: State, eta: float, tau: Any) -> Array:
    """Log of the tempered density over that of the proposals, up to a constant."""
    return at["value"] / tau - log_proposal(at["square"] / (eta**2 * tau), at["theta"].shape[1])
