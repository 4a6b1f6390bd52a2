"""Plain SGLD, as the documents print it: settings of an estimator, and a run on any posterior."""

from __future__ import annotations

from typing import Any

from skbayes_sgld.kernels import Kernel
from skbayes_sgld.sampling import SGLD, Minibatch, Schedule

PLAIN: dict[str, Any] = {
    "sampler": SGLD(integrator="euler"),
    "preconditioner": None,
    "gradient": "minibatch",
    "n_burnin": 0,
    "thin": 1,
}


def plain_sgld(
    posterior: Any,
    epsilon: float,
    schedule: Schedule,
    batch_size: int,
    algorithm: Any = PLAIN["sampler"],
) -> Kernel:
    """Kernel with step sizes ``epsilon * schedule(t)`` in Welling & Teh's unit."""
    return Kernel(
        posterior,
        algorithm,
        step_size=epsilon / 2.0,
        schedule=schedule,
        gradient=Minibatch(replacement=False),
        batch_size=batch_size,
    )
