"""Many steps at once, of samplers whose proposals or draws do not depend on the position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skbayes_sgld.sampling.block import Block
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.run import Run

MakeSteps = Callable[[Run, Dynamics, State, Block, range], Array]
"""Function that makes a block of steps, and returns the draws after some of them."""


def path_of(run: Run, dynamics: Dynamics, one_by_one: MakeSteps) -> MakeSteps:
    """Function that makes a block of steps at once, if there is one; else ``one_by_one``."""
    if not run.sampler.at_once:
        return one_by_one

    def at_once(run: Run, dynamics: Dynamics, state: State, block: Block, kept: range) -> Array:
        path, eta = None, block.eta
        if block.tau is None and np.all(eta == eta[0]):
            sampler: Any = run.sampler
            path = sampler.make_at_once(state, float(eta[0]), block.noise, dynamics)
        if path is None:
            return one_by_one(run, dynamics, state, block, kept)
        return path[kept.start :: kept.step]

    return at_once
