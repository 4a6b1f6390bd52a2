"""What is said when a chain leaves the range of floating point numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.sampling import ChainOverflowError, Chains, Mode, Run, run_chains
from skbayes_sgld.sampling.preconditioners.metric import preconditioned_eigenvalues

Array = NDArray[Any]

_MOST_HALVINGS = 40


def check_constrained(posterior: Any, chains: Chains, n_burnin: int, thin: int) -> None:
    """Raise where the draws are finite and the parameters that users know are not."""
    n_chains, n_draws, P = chains.draws.shape
    with np.errstate(all="ignore"):
        values = posterior.constrain(chains.draws.reshape(-1, P))
    bad = np.argwhere(~np.isfinite(values.reshape(n_chains, n_draws, -1)))
    if len(bad):
        chain, draw, parameter = (int(k) for k in bad[bad[:, 1].argmin()])
        step = n_burnin + (draw + 1) * thin - 1
        raise ChainOverflowError(step, chain, min(parameter, P - 1))  # the noise is last in both


def explain_overflow(
    error: ChainOverflowError,
    posterior: Any,
    run: Run,
    mode: Mode,
    start: Array,
    seed: int,
    lengths: dict[str, Any],
) -> ValueError:
    """Return the error that names step, parameter, chain and a step size that was seen to hold."""
    steepest = preconditioned_eigenvalues(run.dynamics.preconditioner, mode.metric)[-1]
    largest = float(np.max(run.schedule(np.arange(100))))
    holds = min(1.0 / steepest / largest, 0.5 * run.step_size)
    for _ in range(_MOST_HALVINGS):
        shown = float(f"{holds:.2g}")
        try:
            chains = run_chains(replace(run, step_size=shown), start, seed=seed, **lengths)
            check_constrained(posterior, chains, lengths.get("n_burnin", 0), lengths["thin"])
            break
        except ChainOverflowError:
            holds *= 0.5
    who = f"chain {error.chain}" if run.sampler.uses_noise else "the optimiser"
    return ValueError(
        f"step_size={run.step_size:g}: {who} overflowed at step {error.step} in "
        f"{posterior.param_names[error.parameter]}. Step sizes up to {shown:.2g} hold here; set "
        "step_size='auto' and preconditioner='auto', or a smaller step_size."
    )
