"""Trajectories of samplers that accept or reject: density, centre and cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.posterior.whitening import CollapsedPosterior, WhitenedPosterior
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.collapsed import CollapsedHMC
from skbayes_sgld.sampling.samplers.hmc import HMC
from skbayes_sgld.sampling.tuning.mode import Mode

Array = NDArray[Any]

# Along whitened rows: 1,500 rows of 1,050 columns, nearly separated, give 0.85, 1.1 and 1.3
# effective draws of a mean, and 1.24, 0.95 and 0.46 of a square, for a gradient of 32 positions of
# paths of 1.5, 2 and 2.8
_ALONG_ROWS = {"path_length": 2.0, "target_acceptance": 0.8}


def along_rows(rows: WhitenedPosterior, n_points: int = 1) -> HMC:
    """HMC along whitened rows, with ``n_points`` draws a trajectory."""
    if isinstance(rows, CollapsedPosterior):
        sampler: HMC = CollapsedHMC()
    else:
        sampler = HMC(**_ALONG_ROWS, n_points=n_points)
    sampler.most_steps = 1000  # whose length is known beforehand
    return sampler


def soften(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Dynamics whose trajectories follow a smoothed density, where the density has kinks.

    Every kink that a leapfrog step crosses costs an error of first order in the step; a gradient
    that is rounded there costs none, and the density itself still accepts or rejects.
    """
    posterior = dynamics.gradient.posterior
    smooth = posterior.softened(mode.metric.marginal_sd)
    if smooth is posterior:
        return dynamics
    return replace(dynamics, gradient=Full().bind(smooth, None), target=posterior)


def affordable(run: Run) -> int:
    """Most steps from draw to draw that can be afforded, however slowly the chain mixes.

    A gradient takes two products with the rows, and one with the metric where that is dense.
    """
    P = run.dynamics.preconditioner.n_params
    # the cost of a user's own gradient is not known
    rows = run.n_samples if "local_rows" in run.dynamics.gradient.posterior.abilities else 1
    work = 2 * rows * P + (P * P if P <= MAX_DENSE else P)
    # a minute for a thousand draws of four chains
    return max(1, round(5e7 / work / run.sampler.gradients(run.step_size)))
