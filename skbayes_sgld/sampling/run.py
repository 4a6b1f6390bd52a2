"""A run of chains: its definition, its steps, its state and its draws; `loop.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.base import Algorithm, Schedule
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.overflow import overflow_at


@dataclass
class Run:
    """Everything that defines a run except its starting points and its length."""

    sampler: Algorithm  # a Sampler, or an Optimizer
    dynamics: Dynamics
    schedule: Schedule  # multiplies the step size
    step_size: float
    n_samples: int  # rows of the posterior, of which batches are drawn
    batch_size: int | None = None  # None: every step takes all rows
    replacement: bool = True  # whether a batch may hold a row twice
    temperature: Schedule | None = None  # None: the constant one of the dynamics
    stops_lost: bool = True  # raise if none of a chain's proposals can be accepted

    def step_sizes(self, t: ArrayLike) -> Array:
        """Step sizes at steps ``t``, in its shape."""
        return self.step_size * self.schedule(t)

    def initial_state(self, start: Array) -> State:
        """State of algorithm and gradient at ``start (C, P)``."""
        theta = np.array(start, dtype=float)
        return self.sampler.init(theta) | self.dynamics.gradient.begin(theta)


@dataclass(frozen=True)
class StepCounts:
    """Consecutive steps: ``n_burnin`` of them, and ``thin`` for each of ``n_draws``."""

    n_burnin: int
    n_draws: int
    thin: int

    @property
    def n_steps(self) -> int:
        """Steps of each chain."""
        return self.n_burnin + self.n_draws * self.thin

    def cut(self, n_steps: int) -> tuple[StepCounts, StepCounts]:
        """First ``n_steps`` steps, rounded up to the end of a draw, and the rest."""
        n_burnin = min(self.n_burnin, n_steps)
        n_draws = 0
        if n_burnin == self.n_burnin:
            n_draws = min(self.n_draws, -(-(n_steps - n_burnin) // self.thin))
        first = replace(self, n_burnin=n_burnin, n_draws=n_draws)
        rest = replace(self, n_burnin=self.n_burnin - n_burnin, n_draws=self.n_draws - n_draws)
        return first, rest


@dataclass
class RunState:
    """State of a run between steps: a run resumed from it equals one that never stopped."""

    step: int
    sampler_state: State
    streams: list[ChainStreams]

    def for_chains(self, some: slice) -> RunState:
        """State of some of the chains."""
        arrays = {name: array[some] for name, array in self.sampler_state.items()}
        return RunState(self.step, arrays, self.streams[some])


@dataclass
class Chains:
    """Draws of a run, and its last state.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_params)
    weights : ndarray of shape (n_draws,)
        The step size at each draw (Karagiannis, Handout 6, eq. 3.8).
    clipped : ndarray of shape (n_chains,)
        Share of steps on which the gradient was clipped.
    state : RunState
        State after the last step, from which a run can go on.
    n_steps : int
        Steps of each chain.
    """

    draws: Array
    weights: Array
    clipped: Array
    state: RunState
    n_steps: int

    def join_walkers(self, n_walkers: int, n_draws: int) -> Chains:
        """Chains that concatenate the draws of ``n_walkers`` neighbouring positions each.

        Neighbouring draws of a chain come from one walker and have its autocorrelation. The state
        remains that of all walkers.
        """
        if n_walkers == 1:
            return self
        n_chains = len(self.draws) // n_walkers
        return Chains(
            self.draws.reshape(n_chains, -1, self.draws.shape[2])[:, :n_draws],
            np.tile(self.weights, n_walkers)[:n_draws],
            self.clipped.reshape(n_chains, n_walkers).mean(axis=1),
            self.state,
            self.n_steps,
        )

    @property
    def positions(self) -> Array:
        """Positions after the last step ``(C, P)``; a draw may be a corrected position."""
        return self.state.sampler_state["theta"]

    @property
    def acceptance(self) -> float | None:
        """Share of all proposals so far that were accepted; None without proposals."""
        accepted = self.state.sampler_state.get("accepted")
        return None if accepted is None else float(accepted.mean() / max(self.state.step, 1))

    @property
    def diverged(self) -> float | None:
        """Share of all proposals so far whose energy grew by more than 1,000."""
        counts = self.state.sampler_state.get("diverged")
        return None if counts is None else float(counts.mean() / max(self.state.step, 1))

    @property
    def undefined(self) -> tuple[float, Array | None]:
        """Share of the proposals whose log density was nan, and one such proposal ``(P,)``."""
        counts = self.state.sampler_state.get("undefined")
        if counts is None or not counts.any():
            return 0.0, None
        at = self.state.sampler_state["undefined_at"][int(counts.argmax())]
        return float(counts.mean() / max(self.state.step, 1)), at


def join_parts(parts: list[Chains]) -> Chains:
    """Chains of consecutive parts."""
    if len(parts) == 1:
        return parts[0]
    n_steps = sum(part.n_steps for part in parts)
    return Chains(
        np.concatenate([part.draws for part in parts], axis=1),
        np.concatenate([part.weights for part in parts]),
        np.sum([part.clipped * part.n_steps for part in parts], axis=0) / max(n_steps, 1),
        parts[-1].state,
        n_steps,
    )


def join_chains(groups: list[Chains]) -> Chains:
    """Chains that made the same steps in several groups."""
    states = [group.state for group in groups]
    arrays = {
        name: np.concatenate([state.sampler_state[name] for state in states])
        for name in states[0].sampler_state
    }
    return Chains(
        np.concatenate([group.draws for group in groups]),
        groups[0].weights,
        np.concatenate([group.clipped for group in groups]),
        RunState(states[0].step, arrays, [each for state in states for each in state.streams]),
        groups[0].n_steps,
    )


def reported_draws(posterior: BasePosterior, draws: Array, n_burnin: int, thin: int) -> Array:
    """Draws of the reported parameters; raise if they overflow."""
    n_chains, n_draws, P = draws.shape
    with np.errstate(all="ignore"):
        values = posterior.reported.values(draws.reshape(-1, P)).reshape(n_chains, n_draws, -1)
    if not np.isfinite(values).all():
        first = int(np.isfinite(values).all(axis=(0, 2)).argmin())
        raise overflow_at(n_burnin + (first + 1) * thin - 1, values[:, first], P)
    return values
