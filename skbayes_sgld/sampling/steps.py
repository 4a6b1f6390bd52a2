"""The steps of all chains, in blocks whose random numbers are drawn at once.

Every chain has its own random streams, which depend only on the seed and the number of the chain.
So its draws depend neither on the number of chains nor on how many steps are drawn at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._timings import beat
from skbayes_sgld.sampling.block import LOOK, Block, draw_block
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.overflow import ChainOverflowError, check_lost, overflow_at
from skbayes_sgld.sampling.paths import path_of
from skbayes_sgld.sampling.run import Chains, Run, RunState, StepCounts


def advance_together(
    run: Run,
    start: RunState,
    steps: StepCounts,
    block_size: int | None = None,
    progress: Callable[[int], bool] | None = None,
) -> Chains:
    """Make ``steps`` with all chains at once, in this thread.

    Parameters are those of :func:`~skbayes_sgld.sampling.loop.run_parts`. The arrays and the
    streams of ``start`` advance.
    """
    dynamics, state = run.dynamics.for_thread(), start.sampler_state
    kept = KeptDraws(state["theta"].shape, steps)
    most = block_size or block_length(run, *state["theta"].shape)
    make = path_of(run, dynamics, make_steps)
    # products are small: more threads gain nothing, and change the rounding
    with one_blas_thread(), np.errstate(all="ignore"):
        while kept.n_made < steps.n_steps:
            beat(f", step {kept.n_made:,} of {steps.n_steps:,}")
            length, first = min(most, steps.n_steps - kept.n_made), start.step + kept.n_made
            block = draw_block(run, dynamics, state, start.streams, first, length)
            kept.add(make(run, dynamics, state, block, kept.within(length)), block.eta)
            if progress is not None and progress(length):
                break
    end = RunState(start.step + kept.n_made, state, start.streams)
    return kept.chains(end, dynamics.clipped)


def make_steps(run: Run, dynamics: Dynamics, state: State, block: Block, kept: range) -> Array:
    """Draws ``(k, C, P)`` after the steps ``kept`` of a block; the state advances.

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers, or none of its proposals can be
        accepted.
    """
    before = {name: array.copy() for name, array in state.items()}
    path = [np.empty((0, state["theta"].shape[1]))]
    for t in block.advance(run.sampler, state, dynamics):
        if t in kept:
            path.append(run.sampler.draw(state))
        if (block.first + t + 1) % LOOK == 0:  # at the same steps for every block size
            if not np.isfinite(state["theta"]).all():
                break
            look(run, dynamics, state, block.first + t)
    if not np.isfinite(state["theta"]).all():
        raise first_overflow(run, dynamics, before, block)
    # np.stack takes three times as long
    return np.concatenate(path).reshape(-1, *state["theta"].shape)


def look(run: Run, dynamics: Dynamics, state: State, step: int) -> None:
    """Raise if reported parameters overflow, or if a chain is lost."""
    values = dynamics.posterior.reported.values(state["theta"])
    if not np.isfinite(values).all():
        raise overflow_at(step, values, state["theta"].shape[1])
    if run.stops_lost and "lost" in state:
        check_lost(state, step)


def first_overflow(run: Run, dynamics: Dynamics, before: State, block: Block) -> ChainOverflowError:
    """First step that overflows, found by making a block again from the state before it."""
    for t in block.advance(run.sampler, before, dynamics):
        bad = np.argwhere(~np.isfinite(before["theta"]))
        if len(bad):
            return ChainOverflowError(block.first + t, *bad[0].tolist())
    raise RuntimeError("a block of steps overflowed once, and not when it was made again.")


class KeptDraws:
    """Draws of chains, after burn-in and at every so many steps."""

    def __init__(self, shape: tuple[int, ...], steps: StepCounts) -> None:
        n_chains, n_params = shape
        self._steps, self.n_made, self._n_kept = steps, 0, 0
        self._draws = np.empty((n_chains, steps.n_draws, n_params))
        self._weights = np.empty(steps.n_draws)

    def within(self, length: int) -> range:
        """Steps of the next block, of ``length`` steps, after which a draw is kept."""
        n_burnin, thin = self._steps.n_burnin, self._steps.thin
        return range(n_burnin + (self._n_kept + 1) * thin - 1 - self.n_made, length, thin)

    def add(self, draws: Array, eta: Array) -> None:
        """Add the draws ``(k, C, P)`` of a block whose steps have the sizes ``eta``."""
        if len(draws):
            new = slice(self._n_kept, self._n_kept + len(draws))
            self._draws[:, new] = draws.swapaxes(0, 1)
            kept = self.within(len(eta))
            self._weights[new] = eta[kept.start :: kept.step]
            self._n_kept += len(draws)
        self.n_made += len(eta)

    def chains(self, end: RunState, clipped: Array | int) -> Chains:
        """Chains so far; ``clipped`` is the number of clipped gradients of each."""
        n_kept, n_chains = self._n_kept, len(self._draws)
        share = np.broadcast_to(np.asarray(clipped) / max(self.n_made, 1), (n_chains,))
        return Chains(self._draws[:, :n_kept], self._weights[:n_kept], share, end, self.n_made)


def block_length(run: Run, n_chains: int, n_params: int) -> int:
    """Steps whose random numbers fit in the cache, but at least 16.

    A dense metric multiplies the noise of 16 steps at once. A block calls the generators of each
    chain once: if many chains take few numbers each, these calls cost more than cache misses.
    """
    n_rows = (run.batch_size or 0) // run.dynamics.gradient.n_sharing
    numbers = n_chains * (n_params + n_rows)
    least = 64 if numbers <= 2**12 else 16 if numbers <= 2**16 else 1
    return int(np.clip(2**16 // numbers, least, 512))
