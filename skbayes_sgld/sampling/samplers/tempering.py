"""Parallel tempering: chains at higher temperatures carry the coldest from mode to mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld._components import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.hmc import HMC


@dataclass(eq=False, repr=False)
class ParallelTempering(HMC):
    """Hamiltonian Monte Carlo on a ladder of temperatures, whose rungs swap places.

    Each chain is a ladder of replicas at temperatures tau, ..., ``max_temperature`` tau, in
    geometric progression. All make a trajectory; then neighbours i and j, even and odd pairs in
    turn, swap with probability ``min(1, exp((1 / tau_i - 1 / tau_j) (log p_j - log p_i)))``
    (Geyer 1991; Earl & Deem 2005, eq. 3). The draws are the coldest rung's, and exact: each mode
    has its mass, provided that the hottest rung crosses from one to the other.

    Parameters
    ----------
    n_temperatures : int, default=6
        Rungs of the ladder. Neighbours swap often where the ratio of their temperatures is within
        ``1 + sqrt(2 / n_params)``.
    max_temperature : float, default=20.0
        Of the hottest rung, in units of the run's: enough to melt a barrier of twenty nats.
    path_length, target_acceptance : float
        As :class:`HMC`'s.

    Examples
    --------
    >>> from skbayes_sgld.sampling import ParallelTempering
    >>> ParallelTempering(n_temperatures=4).ladder.round(2).tolist()
    [1.0, 2.71, 7.37, 20.0]
    """

    n_temperatures: int = 6
    max_temperature: float = 20.0

    turns = False  # no normal distribution is near to several modes

    def check(self) -> None:
        """Raise where the ladder has fewer than two rungs or does not rise."""
        super().check()
        check_number(
            self.n_temperatures, "sampler.n_temperatures", low=2, closed="left", integer=True
        )
        check_number(self.max_temperature, "sampler.max_temperature", low=1)

    @property
    def ladder(self) -> Array:
        """The temperatures, in units of the run's."""
        return np.geomspace(1.0, self.max_temperature, self.n_temperatures)

    def n_normals(self, n_params: int) -> int:
        """Standard normals that a step takes: for the trajectory of each rung and for the swaps."""
        K = self.n_temperatures
        return K * super().n_normals(n_params) + K - 1

    def init(self, theta: Array, noise: Array | None) -> State:
        """State: all rungs at ``theta``, and counts of the coldest's acceptances."""
        shape = (theta.shape[0], self.n_temperatures)
        rungs = np.repeat(theta[:, None], self.n_temperatures, axis=1)
        zero = np.zeros(theta.shape[0])
        places = np.zeros((*shape, 2, theta.shape[1]))
        known = {"values": np.full(shape, np.nan), "places": places}
        seen = {"undefined": zero, "undefined_at": np.full_like(theta, np.nan)}
        seen |= {name: np.zeros(theta.shape[0], dtype=int) for name in ("lost", "lost_in")}
        return {"theta": theta, "rungs": rungs, "accepted": zero, "count": zero, **known, **seen}

    def prepare(
        self, state: State, normals: Array | None, eta: Array, dynamics: Dynamics
    ) -> Array | None:
        """Noise of each rung's trajectory, side by side, and the logs of the swaps' uniforms."""
        assert normals is not None
        K = self.n_temperatures
        by_rung = np.split(normals[..., : 1 - K], K, axis=-1)
        moves = []
        for tau, part in zip(self.ladder, by_rung, strict=True):
            hot = replace(dynamics, temperature=tau * dynamics.temperature)
            moves.append(super().prepare(state, part, eta, hot))
        return np.concatenate([*moves, log_ndtr(normals[..., 1 - K :])], axis=-1)

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Follow a trajectory on every rung, then swap neighbours."""
        assert noise is not None
        K, (C, P) = self.n_temperatures, state["theta"].shape
        tau = self.ladder * dynamics.temperature
        flat = {
            "theta": state["rungs"].reshape(-1, P),
            "value": state["values"].ravel(),
            "place": state["places"].reshape(-1, 2, P),
            "accepted": np.zeros(C * K),
            "undefined": np.zeros(C * K),
            "undefined_at": np.repeat(state["undefined_at"], K, axis=0),
            "lost": np.zeros(C * K, dtype=int),
            "lost_in": np.repeat(state["lost_in"], K),
        }
        rows = noise[:, : 1 - K].reshape(C * K, -1)
        hot = replace(dynamics, temperature=np.tile(tau, C))
        super().step(flat, eta, rows, batch, hot)
        state["accepted"] = state["accepted"] + flat["accepted"].reshape(C, K)[:, 0]
        state["lost"] = (state["lost"] + 1) * flat["lost"].reshape(C, K).all(axis=1)
        state["lost_in"] = flat["lost_in"].reshape(C, K)[:, 0]
        if flat["undefined"].any():
            _merge_undefined(state, flat, K)
        rungs, places = flat["theta"].reshape(C, K, P), flat["place"].reshape(C, K, 2, P)
        order, values = self._swap(flat["value"].reshape(C, K), tau, noise[:, 1 - K :], state)
        state["rungs"] = np.take_along_axis(rungs, order[..., None], axis=1)
        state["places"] = np.take_along_axis(places, order[..., None, None], axis=1)
        state["values"], state["theta"] = values, state["rungs"][:, 0]

    def _swap(
        self, values: Array, tau: Array, log_uniform: Array, state: State
    ) -> tuple[Array, Array]:
        """Rung whose replica each rung takes over, and the log density of that replica."""
        order = np.tile(np.arange(len(tau)), (len(values), 1))
        low = np.arange(int(state["count"][0]) % 2, len(tau) - 1, 2)  # even and odd pairs in turn
        gain = (1.0 / tau[low] - 1.0 / tau[low + 1]) * (values[:, low + 1] - values[:, low])
        swap = log_uniform[:, low] < gain
        order[:, low] += swap
        order[:, low + 1] -= swap
        state["count"] = state["count"] + 1
        return order, np.take_along_axis(values, order, axis=1)


def _merge_undefined(state: State, flat: State, n_rungs: int) -> None:
    """Add the rungs' undefined proposals to their chain, as shares of a step's proposals."""
    by_rung = flat["undefined"].reshape(-1, n_rungs)
    first = by_rung.argmax(axis=1)
    at = flat["undefined_at"].reshape(len(by_rung), n_rungs, -1)[np.arange(len(by_rung)), first]
    state["undefined"] = state["undefined"] + by_rung.mean(axis=1)
    state["undefined_at"] = at
