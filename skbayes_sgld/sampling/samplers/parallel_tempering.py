"""Parallel tempering of Hamiltonian Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skbayes_sgld._checks import check_number
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.samplers.hmc import HMC


@dataclass(eq=False, repr=False)
class ParallelTempering(HMC):
    r"""Hamiltonian Monte Carlo on a ladder of temperatures, whose rungs swap places.

    Each chain is a ladder of replicas at temperatures tau, ..., ``max_temperature`` tau, in
    geometric progression. All make a trajectory; then neighbours i and j, even and odd pairs in
    turn, swap with probability
    :math:`\min(1, \exp((1 / \tau_i - 1 / \tau_j) (\log p_j - \log p_i)))`
    (Geyer 1991; Earl & Deem 2005, eq. 3). The draws are the coldest rung's, and exact: each mode
    has its mass, provided that the hottest rung crosses from one to the other.

    Parameters
    ----------
    n_temperatures : int, default=6
        Rungs of the ladder. Neighbours swap often if the ratio of their temperatures is within
        ``1 + sqrt(2 / n_params)``.
    max_temperature : float, default=20.0
        Temperature of the hottest rung, in units of the run's. The default lets chains cross a
        barrier of twenty nats.
    path_length, target_acceptance : float
        Parameters of :class:`HMC`.

    Examples
    --------
    >>> from skbayes_sgld.sampling import ParallelTempering
    >>> ParallelTempering(n_temperatures=4).ladder.round(2).tolist()
    [1.0, 2.71, 7.37, 20.0]
    """

    n_temperatures: int = 6
    max_temperature: float = 20.0

    rotates = False  # no normal distribution is close to a posterior with several modes

    def check(self) -> None:
        """Raise if the ladder has fewer than two rungs or does not rise."""
        super().check()
        check_number(
            self.n_temperatures, "sampler.n_temperatures", low=2, closed="left", integer=True
        )
        check_number(self.max_temperature, "sampler.max_temperature", low=1)

    @property
    def ladder(self) -> Array:
        """The temperatures, in units of the run's."""
        return np.geomspace(1.0, float(self.max_temperature), self.n_temperatures)

    def n_normals(self, n_params: int) -> int:
        """Number of standard normals of a step: for each rung's trajectory and for the swaps."""
        K = self.n_temperatures
        return K * super().n_normals(n_params) + K - 1

    def init(self, theta: Array) -> State:
        """State of HMC, and the states ``rung_...`` of the rungs, which all start at ``theta``."""
        rungs = super().init(np.repeat(theta, self.n_temperatures, axis=0))
        state = super().init(theta) | {"count": np.zeros(len(theta))}
        return state | {f"rung_{name}": self._by_chain(a) for name, a in rungs.items()}

    def _by_chain(self, array: Array) -> Array:
        """Array ``(C, K, ...)`` from one ``(C K, ...)`` with a row for each rung."""
        return array.reshape(-1, self.n_temperatures, *array.shape[1:])

    def prepare(self, normals: Array, previous: Array, eta: Array, dynamics: Dynamics) -> Array:
        """Noise of the rungs' trajectories, side by side, and logs of uniform numbers for swaps."""
        K = self.n_temperatures
        by_rung = np.split(normals[..., : 1 - K], K, axis=-1)
        moves = []
        for tau, part in zip(self.ladder, by_rung, strict=True):
            hot = replace(dynamics, temperature=tau * dynamics.temperature)
            moves.append(super().prepare(part, previous, eta, hot))
        return np.concatenate([*moves, log_ndtr(normals[..., 1 - K :])], axis=-1)

    def step(self, state: State, eta: float, noise: Array, batch: Any, dynamics: Dynamics) -> None:
        """Follow a trajectory on every rung, then swap neighbours."""
        K, (C, _) = self.n_temperatures, state["theta"].shape
        tau = self.ladder * dynamics.temperature
        rungs = {
            name.removeprefix("rung_"): array.reshape(C * K, *array.shape[2:])
            for name, array in state.items()
            if name.startswith("rung_")
        }
        hot = replace(dynamics, temperature=np.tile(tau, C))
        super().step(rungs, eta, noise[:, : 1 - K].reshape(C * K, -1), batch, hot)
        by_chain = {name: self._by_chain(array) for name, array in rungs.items()}
        order = self._swap(by_chain["value"], tau, noise[:, 1 - K :], state)
        for name in ("theta", "value", "z", "force"):
            at = order.reshape(C, K, *[1] * (by_chain[name].ndim - 2))
            by_chain[name] = np.take_along_axis(by_chain[name], at, axis=1)
        state.update({f"rung_{name}": array for name, array in by_chain.items()})
        # the coldest rung is the chain; the chain is lost if all rungs are
        state.update({name: by_chain[name][:, 0] for name in ("theta", "accepted", "lost_in")})
        state["lost"] = by_chain["lost"].min(axis=1)
        state["diverged"] = by_chain["diverged"][:, 0]
        undefined = by_chain["undefined"]
        worst = np.arange(C), undefined.argmax(axis=1)
        state.update(undefined=undefined.mean(axis=1), undefined_at=by_chain["undefined_at"][worst])

    def _swap(self, values: Array, tau: Array, log_uniform: Array, state: State) -> Array:
        """Rung from which each rung takes its replica ``(C, K)``."""
        order = np.tile(np.arange(len(tau)), (len(values), 1))
        low = np.arange(int(state["count"][0]) % 2, len(tau) - 1, 2)  # even and odd pairs in turn
        gain = (1.0 / tau[low] - 1.0 / tau[low + 1]) * (values[:, low + 1] - values[:, low])
        swap = log_uniform[:, low] < gain
        order[:, low] += swap
        order[:, low + 1] -= swap
        state["count"] = state["count"] + 1
        return order
