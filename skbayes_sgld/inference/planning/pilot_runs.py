"""The run of a pilot, and the autocorrelation time that follows from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.adaptation import on_posterior
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.precision import round_gradient


def pilot_run(run: Run, mode: Mode) -> Run:
    """Run of a pilot: on all rows if separate batches without visible noise cost more."""
    several = run.dynamics.gradient.posterior.facts.shares_batches
    if several and run.n_samples <= (run.batch_size or 0) * pilots.n_chains(run):
        return on_all_rows(run, mode)
    return run


def on_all_rows(run: Run, mode: Mode) -> Run:
    """Run whose steps take all rows."""
    if run.batch_size is None:
        return run
    posterior = run.dynamics.posterior  # the one with all rows, rather than the batches'
    dynamics = round_gradient(on_posterior(run, posterior).dynamics, mode)
    return replace(run, batch_size=None, n_samples=posterior.n_samples, dynamics=dynamics)


def said_of(step_size: float, bias: pilots.Bias) -> str:
    """Sentence on a pilot's finding at a step size."""
    return f"a pilot's moments are off by {bias.size:.1%} +- {bias.doubt:.1%} at {step_size:g}"


def time_of(sampler: Sampler, step_size: float, n_params: int, pilot: pilots.Bias) -> float:
    """Autocorrelation time, in steps, of a sampler that a pilot has run."""
    declared = sampler.step_and_time(np.ones(n_params), step_size)[1]
    # a declared time has no Monte Carlo error, and is better unless it is wrong (with one parameter
    # the measured time has an error of a quarter)
    time = pilot.time if pilot.time > 2.0 * declared else declared
    # with a variance w times that at the mode, a step of size 1 has the autocorrelation 1 - 1/w:
    # draws 2 w - 2 steps apart are worth at least half of independent ones
    return max(time, float(np.rint(time * (pilot.width - 1.0))))
