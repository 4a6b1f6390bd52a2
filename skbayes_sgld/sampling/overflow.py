"""Chains that leave the range of floating point numbers: the error, and what looks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.protocol import State

Array = NDArray[Any]

_LOST = 50  # proposals in a row that cannot be accepted: what chains that mix never see


class ChainOverflowError(FloatingPointError):
    """A chain left the range of floating point numbers.

    Attributes
    ----------
    step, chain, parameter : int
        Step, chain and parameter at which it happened first.
    rejected : int
        Proposals in a row, from that step on, whose probability of acceptance was 0; 0 where it
        is the chain itself that overflowed.
    """

    def __init__(self, step: int, chain: int, parameter: int, rejected: int = 0) -> None:
        super().__init__(f"chain {chain} overflowed at step {step} in parameter {parameter}")
        self.step, self.chain, self.parameter = step, chain, parameter
        self.rejected = rejected

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the numbers, since workers raise it across processes."""
        return type(self), (self.step, self.chain, self.parameter, self.rejected)


def check_range(posterior: BasePosterior, state: State, step: int) -> None:
    """Raise where parameters leave the range of numbers in their own units, or a chain is stuck."""
    values = posterior.constrain(state["theta"])
    if not np.isfinite(values).all():
        chain, parameter = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise ChainOverflowError(step, chain, min(parameter, posterior.n_params - 1))
    lost = state.get("lost")
    if lost is not None and lost.max() >= _LOST:
        chain, rejected = int(lost.argmax()), int(lost.max())
        parameter = int(state["lost_in"][chain])
        raise ChainOverflowError(step + 1 - rejected, chain, parameter, rejected)


def constrained_draws(posterior: BasePosterior, draws: Array, n_burnin: int, thin: int) -> Array:
    """Draws in the parameters' own units; raise where they are finite and these are not."""
    n_chains, n_draws, P = draws.shape
    with np.errstate(all="ignore"):
        values = posterior.constrain(draws.reshape(-1, P)).reshape(n_chains, n_draws, -1)
    if not np.isfinite(values).all():
        bad = np.argwhere(~np.isfinite(values))
        chain, draw, parameter = (int(k) for k in bad[bad[:, 1].argmin()])
        step = n_burnin + (draw + 1) * thin - 1
        # the noise variance is the last of both
        raise ChainOverflowError(step, chain, min(parameter, P - 1))
    return values
