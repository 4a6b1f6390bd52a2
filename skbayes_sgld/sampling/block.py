"""A block: the step sizes and random numbers of consecutive steps, drawn at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.sampling.base import Algorithm
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.run import Run

LOOK = 50  # steps between checks for an overflow


class Block(NamedTuple):
    """Settings and random numbers of consecutive steps.

    Attributes
    ----------
    first : int
        Number of the first step.
    eta : ndarray of shape (T,)
        Step sizes.
    tau : ndarray of shape (T,) or None
        Temperatures; None: the constant one of the dynamics.
    noise : ndarray of shape (T, C, n)
    idx : ndarray of shape (T, C, B) or None
        Rows of the batches. Walkers that share a batch have one entry for all.
    """

    first: int
    eta: Array
    tau: Array | None
    noise: Array
    idx: Array | None

    def advance(self, sampler: Algorithm, state: State, dynamics: Dynamics) -> Iterator[int]:
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
    return Block(first, eta, tau, noise, idx)


def draw_normals(run: Run, streams: list[ChainStreams], length: int, n_params: int) -> Array:
    """Standard normals ``(T, C, n)`` of the next steps."""
    shape = len(streams), length, run.sampler.n_normals(n_params)
    if streams[0] is streams[-1]:  # the chains of a pilot share a stream: the same numbers at once
        return streams[0].normals(shape[0] * length, shape[2]).reshape(shape).swapaxes(0, 1)
    # chains first in memory, so that each chain's noise is one product
    return np.stack([s.normals(*shape[1:]) for s in streams]).swapaxes(0, 1)
