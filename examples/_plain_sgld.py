"""Plain SGLD, as the documents print it: settings of an estimator, and a run on any posterior."""

from __future__ import annotations

from typing import Any

from skbayes_sgld.sampling import SGLD, Identity, Minibatch, Schedule
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.dynamics import Dynamics

PLAIN: dict[str, Any] = {
    "sampler": SGLD(integrator="euler"),
    "preconditioner": None,
    "gradient": "minibatch",
    "n_burnin": 0,
    "thin": 1,
}


def plain_run(
    posterior: Any,
    epsilon: float,
    schedule: Schedule,
    batch_size: int,
    sampler: Any = PLAIN["sampler"],
) -> Run:
    """A run with step sizes ``epsilon * schedule(t)`` in Welling & Teh's unit.

    It can start anywhere, and be gone on with by another run; ``sampler`` may be an optimizer.
    """
    gradient = Minibatch(replacement=False).bind(posterior, None)
    metric = Identity().bind(posterior.n_params, None)
    return Run(
        sampler,
        Dynamics(gradient, metric),
        schedule,
        step_size=epsilon / 2.0,
        n_samples=posterior.n_samples,
        batch_size=batch_size,
        replacement=False,
    )
