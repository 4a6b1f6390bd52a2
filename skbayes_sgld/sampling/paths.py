"""Many steps at once: of SGLD in independent coordinates, and of independent proposals.

Linear regression has independent coordinates if the noise scales its priors. With
``prior="conjugate_normal"`` a fit of the diabetes data takes 10 ms instead of 50 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

import numpy as np

from skbayes_sgld.sampling.block import LOOK, Block
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.sgld import SGLD

MakeSteps = Callable[[Run, Dynamics, State, Block, range], Array]
"""Function that makes a block of steps, and returns the positions after some of them."""


def path_of(run: Run, dynamics: Dynamics, one_by_one: MakeSteps) -> MakeSteps:
    """Function that makes a block of steps at once, if there is one; else ``one_by_one``."""
    if run.sampler.at_once:
        return _proposals_at_once(one_by_one)
    if dynamics.gradient.posterior.facts.normal_but_last is not None:
        return _coordinates_at_once(run, dynamics, one_by_one)
    return one_by_one


def _proposals_at_once(one_by_one: MakeSteps) -> MakeSteps:
    """Function that makes a block of steps whose proposals do not depend on the position."""

    def at_once(run: Run, dynamics: Dynamics, state: State, block: Block, kept: range) -> Array:
        path, eta = None, block.eta
        if block.tau is None and np.all(eta == eta[0]):
            sampler: Any = run.sampler
            path = sampler.make_at_once(state, float(eta[0]), block.noise, dynamics)
        if path is None:
            return one_by_one(run, dynamics, state, block, kept)
        return path[kept.start :: kept.step]

    return at_once


def _coordinates_at_once(run: Run, dynamics: Dynamics, one_by_one: MakeSteps) -> MakeSteps:
    """Function that makes a block of SGLD's steps on all rows at once; else ``one_by_one``."""
    is_sgld = type(run.sampler).step is SGLD.step and run.batch_size is None
    if not is_sgld or dynamics.clip is not None or dynamics.metric.diagonal is None:
        return one_by_one

    def at_once(run: Run, dynamics: Dynamics, state: State, block: Block, kept: range) -> Array:
        slope = dynamics.gradient.posterior.facts.normal_but_last
        assert slope is not None
        every = separate_path(state["theta"], block.eta, block.noise, dynamics, slope)
        at_looks = every[(-1 - block.first) % LOOK :: LOOK].reshape(-1, every.shape[2])
        values = dynamics.posterior.reported.values(at_looks)
        if not (np.isfinite(every).all() and np.isfinite(values).all()):
            return one_by_one(run, dynamics, state, block, kept)  # they find the step
        state["theta"] = every[-1].copy()
        return every[kept.start :: kept.step]

    return at_once


def separate_path(
    start: Array, eta: Array, noise: Any, dynamics: Dynamics, slope: tuple[float, float, float]
) -> Array:
    """Positions ``(T, C, P)`` after steps ``theta <- theta + eta G g(theta) + noise`` on all rows.

    All coordinates but the last are standard normal; the last one's gradient is
    ``a exp(-w x) + b`` with ``slope = (a, b, w)``. Positions that overflow are infinite.
    """
    metric, path = dynamics.metric.diagonal, np.empty(noise.shape)
    assert metric is not None
    shares = 1.0 - metric[:-1] * eta[:, None]
    if shares.any():
        at = start[:, :-1]
        for t, share in enumerate(shares):
            at = np.multiply(at, share, out=path[t, :, :-1])
            at += noise[t, :, :-1]
    else:  # every step is a new draw
        path[..., :-1] = noise[..., :-1]
    # for one number at a time Python's arithmetic is faster than NumPy's
    (a, b, w), eta = slope, metric[-1] * eta
    pulls, rest = (a * eta).tolist(), (noise[..., -1] + (b * eta)[:, None]).T.tolist()
    for c, x in enumerate(start[:, -1].tolist()):
        try:
            last = [x := x + pull * exp(-w * x) + e for pull, e in zip(pulls, rest[c], strict=True)]
        except OverflowError:
            last = [np.inf] * len(pulls)
        path[:, c, -1] = last
    return path
