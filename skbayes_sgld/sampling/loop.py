"""The loop of a run: all chains advance together, and draws are kept.

Every chain has its own random streams, which depend only on the seed and the number of the chain.
So its draws depend neither on the number of chains nor on how many steps are drawn at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise, repeat
from math import ceil, lcm
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed, effective_n_jobs

from skbayes_sgld._linalg import GROUP, cpu_count, in_threads, one_blas_thread
from skbayes_sgld._random import ChainStreams
from skbayes_sgld.sampling.base import Algorithm, check_requirements
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.overflow import ChainOverflowError, check_lost, overflow_at
from skbayes_sgld.sampling.paths import separate_path, slope_of_last
from skbayes_sgld.sampling.run import Chains, Run, RunState, Steps, join_chains, join_parts
from skbayes_sgld.sampling.workers import Processes, Share, Workers

_LOOK = 50  # steps between checks for an overflow
_INTERRUPT_NUMBERS = 2**28  # numbers of X that threads read before they look for an interrupt


def run_chains(
    run: Run,
    start: Array | RunState,
    *,
    n_draws: int,
    n_burnin: int = 0,
    thin: int = 1,
    **how: Any,
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
    **how
        Further parameters of :func:`run_parts`, whose errors are raised too.

    Returns
    -------
    chains : Chains
    """
    return join_parts(list(run_parts(run, start, Steps(n_burnin, n_draws, thin), **how)))


def run_parts(
    run: Run,
    start: Array | RunState,
    rest: Steps,
    *,
    seed: int = 0,
    first_chain: int = 0,
    block_size: int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], bool] | None = None,
    seconds: float | None = None,
    workers: Workers | None = None,
) -> Iterator[Chains]:
    """Run the steps ``rest``, and yield the draws part by part.

    Parameters
    ----------
    run : Run
        The algorithm and its settings.
    start : ndarray of shape (n_chains, n_params) or RunState
        The starting points, or the ``state`` of an earlier run.
    rest : Steps
        Steps to make.
    seed : int, default=0
        Seed of the chains; not used if an earlier run continues.
    first_chain : int, default=0
        Number of the first chain, on which its random numbers depend.
    block_size : int or None
        Steps whose random numbers are drawn at a time. None: as many as fit in the cache.
    n_jobs : int or None
        Processes that share the chains of a long run. The first part runs in this process, and so
        does the rest if starting processes would take longer.
    progress : callable or None
        Called with the number of steps since its last call; True ends the run.
    seconds : float or None
        Approximate time of a part; None makes as few parts as possible.
    workers : Workers or None
        Workers that run the chains in place of ``n_jobs`` processes.

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers.
    TypeError, ValueError
        When the posterior or the gradient lacks what the algorithm needs.
    RuntimeError
        When one of the processes ends on its own.
    """
    check_requirements(run.sampler, run.dynamics.gradient.posterior, run.batch_size)
    if isinstance(start, RunState):
        state = start
    else:
        streams = [ChainStreams(seed, first_chain + c) for c in range(len(start))]
        state = RunState(0, run.initial_state(start), streams)
    # Chains are shared out in units of the neighbouring positions of one matrix product. In
    # products of another size sums would be rounded differently, and draws would change
    unit_size, whitened = run.dynamics.n_walkers, run.dynamics.whitened
    unit_size = unit_size if whitened is None else lcm(unit_size, whitened.group)
    n_positions = len(state.streams)
    n_units = -(-n_positions // unit_size)
    if workers is None and effective_n_jobs(n_jobs) > 1:
        workers = Processes(n_jobs)
    n_workers = 1 if workers is None else min(workers.n_workers, n_units)
    # processes share a twentieth of the run at a time; progress is reported after each
    n_shared, n_made, duration = -(-rest.n_steps // 20), 0, 0.0
    size = rest.n_steps if n_workers == 1 else n_shared
    if seconds is not None:
        size = rest.thin  # later parts take about ``seconds``
    while True:
        steps, rest = rest.cut(size)
        begin = perf_counter()
        # later states belong to the caller and are copied; the first is not, because copying its
        # random streams takes 5 times as long as making them
        own = deepcopy(state) if n_made or state is start else state
        part = advance(run, own, steps, block_size, progress)
        n_made, duration = n_made + steps.n_steps, duration + perf_counter() - begin
        state = part.state
        yield part
        if not rest.n_steps or part.n_steps < steps.n_steps:
            return
        to_go = duration / n_made * rest.n_steps
        if workers and n_workers > 1 and n_made >= n_shared and to_go >= workers.least_seconds:
            break
        size = rest.n_steps
        if seconds is not None:
            size = max(1, min(2 * steps.n_steps, int(seconds * n_made / duration)))
    edges = np.linspace(0, n_units, n_workers + 1).astype(int) * unit_size
    edges = np.minimum(edges, n_positions)
    if seconds is not None:
        n_shared = max(1, min(n_shared, int(seconds * n_made / duration)))
    with workers.open(n_workers) as share:
        while rest.n_steps:
            steps, rest = rest.cut(n_shared)
            own = deepcopy(state)  # workers may be threads
            try:
                part = side_by_side(share, advance, run, own, edges.tolist(), steps, block_size)
            except BrokenExecutor:
                raise RuntimeError(
                    f"n_jobs={n_jobs}: a process that runs chains {state.step} steps into the run "
                    "has ended before it was done. It was killed, the memory was at an end, or the "
                    "model itself ended it; set n_jobs=None, with which all runs in this process."
                ) from None
            state = part.state
            yield part
            if progress is not None and progress(steps.n_steps):
                return


def side_by_side(
    share: Share,
    function: Callable[..., Chains],
    run: Run,
    state: RunState,
    edges: list[int],
    *how: Any,
) -> Chains:
    """Call ``function(run, state, *how)`` for the chains between successive edges, and join them.

    Raises
    ------
    ChainOverflowError
        When chains overflow: the earliest, in the order of steps.
    BrokenExecutor
        When one of the processes ends on its own.
    """
    # the run is the first argument, which a cluster sends to each worker once
    results = share(
        delayed(_attempt)(run, function, first, state.for_chains(slice(first, last)), *how)
        for first, last in pairwise(edges)
    )
    errors = [each for each in results if isinstance(each, ChainOverflowError)]
    if errors:
        raise min(errors, key=lambda error: (error.step, error.chain))
    return join_chains(results)


def _attempt(
    run: Run, function: Callable[..., Chains], first: int, state: RunState, *how: Any
) -> Chains | ChainOverflowError:
    """Chains from number ``first`` on, or their overflow: another group may overflow earlier."""
    some = slice(first, first + len(state.streams))
    try:
        return function(replace(run, dynamics=run.dynamics.for_chains(some)), state, *how)
    except ChainOverflowError as error:
        return ChainOverflowError(error.step, error.chain + first, error.parameter, error.rejected)


def advance(
    run: Run,
    state: RunState,
    steps: Steps,
    block_size: int | None = None,
    progress: Callable[[int], bool] | None = None,
) -> Chains:
    """Make ``steps``, in threads if steps are long; arrays and streams advance."""
    n_chains, parts = len(state.streams), list[Chains]()
    size = group_size(run, n_chains)
    if size is None or not steps.n_steps:
        return advance_together(run, state, steps, block_size, progress)
    edges, numbers = [*range(0, n_chains, size), n_chains], n_chains * _numbers(run)
    n_steps = max(1, run.dynamics.gradient.n_sharing * _INTERRUPT_NUMBERS // numbers)
    while steps.n_steps:
        now, steps = steps.cut(n_steps)
        part = side_by_side(_in_threads, advance_together, run, state, edges, now, block_size)
        parts.append(part)
        state = part.state
        if progress is not None and progress(now.n_steps):
            break
    return join_parts(parts)


def _in_threads(calls: Iterable[Any]) -> list[Any]:
    """Results of joblib's delayed calls, computed in threads of this process."""
    return in_threads(lambda call: call[0](*call[1], **call[2]), list(calls))


def _numbers(run: Run) -> int:
    """Numbers of X that a chain reads in a step on a batch, approximately."""
    return (run.batch_size or 0) * run.dynamics.posterior.n_params


def group_size(run: Run, n_chains: int) -> int | None:
    """Number of chains that a thread advances; None: this thread advances all of them.

    On two cores threads halve the time of long steps (1,000 rows of 100 columns).
    """
    numbers, n_sharing = _numbers(run), run.dynamics.gradient.n_sharing
    stays_in_cache = n_chains * numbers <= 2**16
    if stays_in_cache or numbers < 2**12 or cpu_count() == 1 or not run.dynamics.facts.thread_safe:
        return None
    # as many chains as fit in the cache, and enough that threads do not wait for the interpreter
    most = min(ceil(n_chains / cpu_count()), n_sharing * 2**19 / numbers)
    size = max(most, 2**15 / numbers)
    # products with a dense metric, or with rows that walkers share, take several chains at once
    multiple = GROUP if run.dynamics.metric.diagonal is None else 1
    multiple = lcm(multiple, n_sharing)
    n_groups = ceil(n_chains / (multiple * max(1, int(size / multiple))))
    even = multiple * ceil(n_chains / n_groups / multiple)  # the last group may be smaller
    return even if even < n_chains else None


def advance_together(
    run: Run,
    start: RunState,
    steps: Steps,
    block_size: int | None = None,
    progress: Callable[[int], bool] | None = None,
) -> Chains:
    """Make ``steps`` with all chains at once, in this thread; see :func:`advance`."""
    n_burnin, n_draws, thin = steps.n_burnin, steps.n_draws, steps.thin
    dynamics = run.dynamics.for_thread()
    state, streams = start.sampler_state, start.streams
    n_chains, n_params = state["theta"].shape
    draws, weights = np.empty((n_chains, n_draws, n_params)), np.empty(n_draws)
    # as many random numbers as fit in the cache, but at least 16 steps, since a dense metric
    # multiplies the noise of 16 steps at once. A block calls the generators of each chain once: if
    # many chains take few numbers each, these calls cost more than cache misses
    numbers = n_chains * (n_params + (run.batch_size or 0) // dynamics.gradient.n_sharing)
    least = 64 if numbers <= 2**12 else 16 if numbers <= 2**16 else 1
    most = block_size or int(np.clip(2**16 // numbers, least, 512))
    n_made = n_kept = 0
    slope = slope_of_last(run.sampler, dynamics) if run.batch_size is None else None
    # products are small: more threads gain nothing, and change the rounding
    with one_blas_thread(), np.errstate(all="ignore"):
        while n_made < steps.n_steps:
            length, first = min(most, steps.n_steps - n_made), start.step + n_made
            before = {name: array.copy() for name, array in state.items()}
            block = draw_block(run, dynamics, state, streams, first, length)
            path: list[Array] = []
            next_kept = n_burnin + (n_kept + 1) * thin - 1 - n_made
            next_look = (-1 - first) % _LOOK  # at the same steps for every block size
            every = None
            if slope is not None:  # positions after every step of the block
                every = separate_path(state["theta"], block.eta, block.noise, dynamics, slope)
                at_looks = every[next_look::_LOOK].reshape(-1, n_params)
                values = dynamics.posterior.reported.values(at_looks)
                if not (np.isfinite(every).all() and np.isfinite(values).all()):
                    every = None  # single steps find the one that overflows
            if every is not None:
                path, state["theta"] = [every[next_kept::thin]], every[-1].copy()
            else:
                for t in block.steps(run.sampler, state, dynamics):
                    if t == next_kept:
                        path.append(state["theta"])
                        next_kept += thin
                    if t == next_look:
                        next_look += _LOOK
                        if not np.isfinite(state["theta"]).all():
                            break
                        values = dynamics.posterior.reported.values(state["theta"])
                        if not np.isfinite(values).all():
                            raise overflow_at(first + t, values, n_params)
                        if run.stops_lost and "lost" in state:
                            check_lost(state, first + t)
            if not np.isfinite(state["theta"]).all():
                # repeat the block to find the step: it overflows again
                for t in block.steps(run.sampler, before, dynamics):
                    bad = np.argwhere(~np.isfinite(before["theta"]))
                    if len(bad):
                        raise ChainOverflowError(first + t, *bad[0].tolist())
            if path:
                # np.stack takes three times as long
                new_draws = np.concatenate(path).reshape(-1, n_chains, n_params)
                new = slice(n_kept, n_kept + len(new_draws))
                draws[:, new] = new_draws.swapaxes(0, 1)
                weights[new] = block.eta[n_burnin + (n_kept + 1) * thin - 1 - n_made :: thin]
                n_kept += len(new_draws)
            n_made += length
            if progress is not None and progress(length):
                break
    clipped = np.broadcast_to(np.asarray(dynamics.clipped) / max(n_made, 1), (n_chains,))
    end = RunState(start.step + n_made, state, streams)
    return Chains(draws[:, :n_kept], weights[:n_kept], clipped, end, n_made)


class Block(NamedTuple):
    """Settings and random numbers of consecutive steps.

    Attributes
    ----------
    eta : ndarray of shape (T,)
        Step sizes.
    tau : ndarray of shape (T,) or None
        Temperatures; None: the constant one of the dynamics.
    noise : ndarray of shape (T, C, n)
    idx : ndarray of shape (T, C, B) or None
        Rows of the batches. Walkers that share a batch have one entry for all.
    """

    eta: Array
    tau: Array | None
    noise: Array
    idx: Array | None

    def steps(self, sampler: Algorithm, state: State, dynamics: Dynamics) -> Iterator[int]:
        """Advance the state step by step; yield the number of each step after it."""
        batches = repeat(None) if self.idx is None else dynamics.gradient.batches(self.idx)
        step = sampler.step
        each = zip(self.eta.tolist(), self.noise, batches, strict=False)
        for t, (size, row, batch) in enumerate(each):
            if self.tau is not None:
                dynamics.temperature = self.tau[t]
            step(state, size, row, batch, dynamics)
            yield t


def draw_block(
    run: Run,
    dynamics: Dynamics,
    state: State,
    streams: list[ChainStreams],
    first: int,
    length: int,
) -> Block:
    """Draw the random numbers of the steps from ``first`` on.

    The last of the normals are kept in the state, for noise that spans two steps.
    """
    t = first + np.arange(length)
    eta, tau = run.step_sizes(t), None if run.temperature is None else run.temperature(t)
    n_params = state["theta"].shape[1]
    if "normals" not in state:  # normals of the step before the first
        state["normals"] = draw_normals(run, streams, 1, n_params)[0]
    normals = draw_normals(run, streams, length, n_params)
    at_each = dynamics if tau is None else replace(dynamics, temperature=tau)
    noise = run.sampler.prepare(normals, state["normals"], eta, at_each)
    state["normals"] = normals[-1].copy()
    idx = None
    if run.batch_size is not None:
        # walkers that share a batch take its rows from the first one's stream
        drawing = streams[:: run.dynamics.gradient.n_sharing]
        rows = [s.rows(length, run.n_samples, run.batch_size, run.replacement) for s in drawing]
        idx = np.stack(rows, axis=1)
    return Block(eta, tau, noise, idx)


def draw_normals(run: Run, streams: list[ChainStreams], length: int, n_params: int) -> Array:
    """Standard normals ``(T, C, n)`` of the next steps."""
    n_normals = run.sampler.n_normals(n_params)
    # chains first in memory, so that each chain's noise is one product
    return np.stack([s.normals(length, n_normals) for s in streams]).swapaxes(0, 1)
