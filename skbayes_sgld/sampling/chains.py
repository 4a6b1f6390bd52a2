"""Runs of chains: all chains advance together, and draws are kept.

Every chain has random streams of its own, which depend on the seed and on the chain's number alone.
So its draws depend neither on the number of chains nor on how many steps are drawn at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import ChainStreams
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.base import Algorithm, Schedule, check_requirements
from skbayes_sgld.sampling.dynamics import Dynamics, State
from skbayes_sgld.sampling.overflow import ChainOverflowError, check_lost, overflow_at
from skbayes_sgld.sampling.paths import check_path, separate_path
from skbayes_sgld.sampling.workers import (
    Processes,
    Workers,
    groups_of,
    in_groups,
    side_by_side,
)

Array = NDArray[Any]

_BLOCK_NUMBERS = 2**16  # random numbers of a block of steps, which then stays in cache
_BLOCK_STEPS = 512
_STRETCHES = 20  # parts of a run that processes share; progress is reported after each
_LOOK = 50  # steps between checks for an overflow


@dataclass
class RunState:
    """State of a run between steps: a run resumed from it equals one that never stopped."""

    step: int
    sampler_state: State
    streams: list[ChainStreams]


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

    def in_a_row(self, n_walkers: int, n_draws: int) -> Chains:
        """Chains of ``n_walkers`` neighbouring positions each, whose draws follow one another.

        Neighbouring draws are then of one walker, whose autocorrelation they have. The state stays
        that of all walkers.
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
    def acceptance(self) -> float | None:
        """Share of all proposals so far that were accepted; None without proposals."""
        accepted = self.state.sampler_state.get("accepted")
        return None if accepted is None else float(accepted.mean() / max(self.state.step, 1))

    @property
    def undefined(self) -> tuple[float, Array | None]:
        """Share of the proposals whose log density was not a number, and one of them ``(P,)``."""
        counts = self.state.sampler_state.get("undefined")
        if counts is None or not counts.any():
            return 0.0, None
        at = self.state.sampler_state["undefined_at"][int(counts.argmax())]
        return float(counts.mean() / max(self.state.step, 1)), at


def constrained_draws(
    posterior: BasePosterior, draws: Array, n_burnin: int, thin: int, n_walkers: int = 1
) -> Array:
    """Draws in the parameters' own units; raise where these overflow."""
    n_chains, n_draws, P = draws.shape
    with np.errstate(all="ignore"):
        values = posterior.constrain(draws.reshape(-1, P)).reshape(n_chains, n_draws, -1)
    if not np.isfinite(values).all():
        first = int(np.isfinite(values).all(axis=(0, 2)).argmin())
        step = n_burnin + (first % -(-n_draws // n_walkers) + 1) * thin - 1
        raise overflow_at(step, values[:, first], P)
    return values


@dataclass
class Run:
    """Everything that defines a run except its starting points and its length."""

    sampler: Algorithm  # a Sampler, or an Optimizer
    dynamics: Dynamics
    schedule: Schedule  # of the step size
    step_size: float
    n_samples: int  # rows of the posterior, of which batches are drawn
    batch_size: int | None = None  # None: every step takes all rows
    replacement: bool = True  # whether a batch may hold a row twice
    temperature: Schedule | None = None  # None: the constant one of the dynamics
    stops_lost: bool = True  # raise where a chain's proposals can never be accepted

    def step_sizes(self, t: ArrayLike) -> Array:
        """Step sizes at steps ``t``, in its shape."""
        return self.step_size * self.schedule(t)

    def initial_state(self, start: Array) -> State:
        """State of algorithm and gradient at ``start (C, P)``."""
        theta = np.array(start, dtype=float)
        return self.sampler.init(theta) | self.dynamics.gradient.begin(theta)

    def first_normals(self, streams: list[ChainStreams], n_params: int) -> Array:
        """Normals ``(C, n)`` of the step before the first, for noise that spans two steps."""
        n_normals = self.sampler.n_normals(n_params)
        return np.concatenate([s.normals(1, n_normals) for s in streams])


def run_chains(
    run: Run,
    start: Array | RunState,
    *,
    n_draws: int,
    n_burnin: int = 0,
    thin: int = 1,
    seed: int = 0,
    first_chain: int = 0,
    block_size: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], bool] | None = None,
    workers: Workers | None = None,
) -> Chains:
    """Run chains from starting points, or from the state of an earlier run.

    Chain c draws the same numbers whatever the number of chains, the block size and ``n_jobs``.

    Parameters
    ----------
    run : Run
        The algorithm and its settings.
    start : ndarray of shape (n_chains, n_params) or RunState
        The starting points, or the ``state`` of an earlier run.
    n_draws, n_burnin, thin : int
        Draws of each chain, steps before the first, and steps from one to the next.
    seed : int, default=0
        Seed of the chains; not used where an earlier run goes on.
    first_chain : int, default=0
        Number of the first chain, on which its random numbers depend.
    block_size : int or None
        Steps whose random numbers are drawn at a time. None: about a cache full.
    n_jobs : int or None
        Processes that share the chains of a long run. The first part runs in this process, and so
        does the rest where starting processes would take longer.
    progress : callable or None
        Called with the number of steps since its last call; True ends the run.
    workers : Workers or None
        Workers that run the chains in place of ``n_jobs`` processes.

    Returns
    -------
    chains : Chains

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers.
    TypeError, ValueError
        When the posterior or the gradient lacks what the algorithm needs.
    RuntimeError
        When one of the processes ends on its own.
    """
    parts = run_parts(
        run,
        start,
        Stretch(n_burnin, n_draws, thin),
        seed=seed,
        first_chain=first_chain,
        block_size=block_size,
        n_jobs=n_jobs,
        progress=progress,
        workers=workers,
    )
    return join_parts(list(parts))


def run_parts(
    run: Run,
    start: Array | RunState,
    rest: Stretch,
    *,
    seed: int = 0,
    first_chain: int = 0,
    block_size: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], bool] | None = None,
    seconds: float | None = None,
    workers: Workers | None = None,
) -> Iterator[Chains]:
    """Yield the parts of a run of the steps ``rest``, one after the other.

    ``seconds`` is about the time of a part; None makes as few parts as possible.
    """
    check_requirements(run.sampler, run.dynamics.gradient.posterior, run.batch_size)
    state = start if isinstance(start, RunState) else _begin(run, start, seed, first_chain)
    whole, n_positions = run.dynamics.whole, len(state.sampler_state["theta"])
    n_wholes = -(-n_positions // whole)  # a process takes whole groups of walkers
    if workers is None and effective_n_jobs(n_jobs) > 1:
        workers = Processes(n_jobs)
    n_workers = 1 if workers is None else min(workers.n_workers, n_wholes)
    share, made, spent = -(-rest.n_steps // _STRETCHES), 0, 0.0
    size = rest.n_steps if n_workers == 1 else share
    if seconds is not None:
        size = rest.thin  # later parts are about as long as the seconds allow
    while True:
        stretch, rest = rest.cut(size)
        begin = perf_counter()
        owned = made == 0 and state is not start  # a later state is the caller's too
        part = _advance(run, state, stretch, block_size, progress, owned)
        made, spent, state = made + stretch.n_steps, spent + perf_counter() - begin, part.state
        yield part
        if not rest.n_steps or part.n_steps < stretch.n_steps:
            return
        left = spent / made * rest.n_steps
        if workers and n_workers > 1 and made >= share and left >= workers.least_seconds:
            break
        size = rest.n_steps
        if seconds is not None:
            size = max(1, min(2 * stretch.n_steps, int(seconds * made / spent)))
    edges = np.minimum(np.linspace(0, n_wholes, n_workers + 1).astype(int) * whole, n_positions)
    if seconds is not None:
        share = max(1, min(share, int(seconds * made / spent)))
    with workers.open(n_workers) as parallel:
        while rest.n_steps:
            stretch, rest = rest.cut(share)
            part = side_by_side(
                parallel, _run_share, run, state, edges.tolist(), (stretch, block_size), n_jobs
            )
            state = part.state
            yield part
            if progress is not None and progress(stretch.n_steps):
                return


@dataclass(frozen=True)
class Stretch:
    """Consecutive steps: ``n_burnin`` of them, and ``thin`` for each of ``n_draws``."""

    n_burnin: int
    n_draws: int
    thin: int

    @property
    def n_steps(self) -> int:
        """Steps of each chain."""
        return self.n_burnin + self.n_draws * self.thin

    def cut(self, n_steps: int) -> tuple[Stretch, Stretch]:
        """First ``n_steps`` steps, to the end of a draw, and the rest."""
        n_burnin = min(self.n_burnin, n_steps)
        n_draws = 0
        if n_burnin == self.n_burnin:
            n_draws = min(self.n_draws, -(-(n_steps - n_burnin) // self.thin))
        first = replace(self, n_burnin=n_burnin, n_draws=n_draws)
        rest = replace(self, n_burnin=self.n_burnin - n_burnin, n_draws=self.n_draws - n_draws)
        return first, rest


def _run_share(run: Run, first: int, state: RunState, *how: Any, advance: Any = None) -> Chains:
    """Run the chains of a state, the first of which is number ``first`` of all."""
    dynamics = run.dynamics.of_chains(slice(first, first + len(state.streams)))
    return (advance or _advance)(replace(run, dynamics=dynamics), state, *how)


def _advance(
    run: Run,
    state: RunState,
    stretch: Stretch,
    block_size: int | None,
    progress: Callable[[int], bool] | None = None,
    owned: bool = False,
) -> Chains:
    """Split a stretch into groups of chains where the rows of one step exceed the cache."""
    groups = groups_of(run, len(state.streams)) if run.batch_size else None
    if groups is None:
        return _run(run, state, stretch, block_size, progress, owned)
    share, how = partial(_run_share, advance=_run), (block_size, None, owned)
    return join_parts(list(in_groups(share, run, state, stretch, groups, how, progress)))


def _begin(run: Run, start: Array, seed: int, first_chain: int) -> RunState:
    """State before the first step: streams of random numbers, and the algorithm at its start."""
    streams = [ChainStreams(seed, first_chain + c) for c in range(start.shape[0])]
    state = run.initial_state(start)
    if run.sampler.uses_noise:
        state["normals"] = run.first_normals(streams, start.shape[1])
    return RunState(0, state, streams)


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


def _run(
    run: Run,
    start: RunState,
    stretch: Stretch,
    block_size: int | None,
    progress: Callable[[int], bool] | None = None,
    owned: bool = False,
) -> Chains:
    """Run a stretch from ``start``; its streams advance where they are ``owned``."""
    n_burnin, n_draws, thin = stretch.n_burnin, stretch.n_draws, stretch.thin
    # copies: the dynamics count, the streams advance
    dynamics = run.dynamics.for_thread()
    state = {name: array.copy() for name, array in start.sampler_state.items()}
    streams = start.streams if owned else deepcopy(start.streams)
    n_chains, n_params = state["theta"].shape
    n_steps = stretch.n_steps
    draws, weights = np.empty((n_chains, n_draws, n_params)), np.empty(n_draws)
    block = block_size or _default_block(run, n_chains, n_params)
    done = kept = 0
    slope = dynamics.slope_of_last() if run.sampler.separate and run.batch_size is None else None
    # products are small: more threads would only change the rounding
    with one_blas_thread(), np.errstate(all="ignore"):
        while done < n_steps:
            length = min(block, n_steps - done)
            steps = start.step + done + np.arange(length)
            eta = run.step_sizes(steps)
            tau = None if run.temperature is None else run.temperature(steps)
            before = {name: array.copy() for name, array in state.items()}
            normals, idx = draw_block(run, streams, length, n_params)
            at_each = dynamics if tau is None else replace(dynamics, temperature=tau)
            noise = None
            if normals is not None:
                noise = run.sampler.prepare(normals, state["normals"], eta, at_each)
                state["normals"] = normals[-1].copy()
            path: list[Array] = []
            next_kept = n_burnin + (kept + 1) * thin - 1 - done
            next_look = (-1 - start.step - done) % _LOOK  # whatever the block size
            every = separate_path(state["theta"], eta, noise, dynamics, slope) if slope else None
            if every is not None:  # positions after every step of the block
                check_path(dynamics.posterior, every, next_look, _LOOK, start.step + done)
                path, state["theta"] = [every[next_kept::thin]], every[-1].copy()
            else:
                for t in _steps(run.sampler, state, eta, tau, noise, idx, dynamics):
                    if t == next_kept:
                        path.append(state["theta"])
                        next_kept += thin
                    if t == next_look:
                        next_look += _LOOK
                        if not np.isfinite(state["theta"]).all():
                            break
                        values = dynamics.posterior.constrain(state["theta"])
                        if not np.isfinite(values).all():
                            raise overflow_at(start.step + done + t, values, n_params)
                        if run.stops_lost and "lost" in state:
                            check_lost(state, start.step + done + t)
            if not np.isfinite(state["theta"]).all():
                # repeat the block to find the step: it overflows again
                for t in _steps(run.sampler, before, eta, tau, noise, idx, dynamics):
                    bad = np.argwhere(~np.isfinite(before["theta"]))
                    if len(bad):
                        raise ChainOverflowError(start.step + done + t, *bad[0].tolist())
            if path:
                # np.stack takes three times as long
                new_draws = np.concatenate(path).reshape(-1, n_chains, n_params)
                new = slice(kept, kept + len(new_draws))
                draws[:, new] = new_draws.swapaxes(0, 1)
                weights[new] = eta[n_burnin + (kept + 1) * thin - 1 - done :: thin]
                kept += len(new_draws)
            done += length
            if progress is not None and progress(length):
                break
    draws, weights = draws[:, :kept], weights[:kept]
    share = np.broadcast_to(np.asarray(dynamics.clipped) / max(done, 1), (n_chains,))
    return Chains(draws, weights, share, RunState(start.step + done, state, streams), done)


def _steps(
    sampler: Algorithm,
    state: State,
    eta: Array,
    tau: Array | None,
    noise: Array | None,
    idx: Array | None,
    dynamics: Dynamics,
) -> Iterator[int]:
    """Advance the state by the steps of a block; yield the number of each once it is made."""
    batches = repeat(None) if idx is None else dynamics.gradient.batches(idx)
    each = zip(eta, repeat(None) if noise is None else noise, batches, strict=False)
    step = sampler.step
    for t, (size, row, batch) in enumerate(each):
        if tau is not None:
            dynamics.temperature = tau[t]
        step(state, size, row, batch, dynamics)
        yield t


def _default_block(run: Run, n_chains: int, n_params: int) -> int:
    numbers = n_chains * (n_params + (run.batch_size or 0) // run.dynamics.shared)
    # a dense metric multiplies 16 steps' noise at a time; of many chains the calls cost more
    least = 64 if numbers <= 2**12 else 16 if numbers <= _BLOCK_NUMBERS else 1
    return int(np.clip(_BLOCK_NUMBERS // numbers, least, _BLOCK_STEPS))


def draw_block(
    run: Run, streams: list[ChainStreams], length: int, n_params: int
) -> tuple[Array | None, Array | None]:
    """Standard normals ``(T, C, n)`` of the next steps, and row numbers ``(T, C, B)``.

    Walkers that share a batch have one entry for all: the rows come from the first one's stream.
    """
    normals = None
    if run.sampler.uses_noise:
        n_normals = run.sampler.n_normals(n_params)
        # chains first in memory: the noise of each is a product of its own
        normals = np.stack([s.normals(length, n_normals) for s in streams]).swapaxes(0, 1)
    if run.batch_size is None:
        return normals, None
    drawing = streams[:: run.dynamics.shared]
    rows = [s.rows(length, run.n_samples, run.batch_size, run.replacement) for s in drawing]
    return normals, np.stack(rows, axis=1)
