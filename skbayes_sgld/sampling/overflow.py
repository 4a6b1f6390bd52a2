"""Error of a chain that leaves the range of floating point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.sampling.dynamics import State


class ChainOverflowError(ValueError):
    """A chain or an optimizer overflowed, because its steps are too long.

    Fits and :func:`~skbayes_sgld.sample` raise it.

    Parameters
    ----------
    step, chain, parameter : int
        Step, chain and parameter at which it happened first.
    rejected : int, default=0
        Consecutive proposals, from that step on, whose acceptance probability was 0; 0 if the
        chain itself overflowed.
    message : str or None, default=None
        Text of the error.
    held : float or None, default=None
        Smaller step size at which a run did not overflow; None if none was found.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.sampling import ChainOverflowError
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(step_size=1e6, random_state=0)
    >>> try:
    ...     _ = model.fit(X, y)
    ... except ChainOverflowError as error:
    ...     _ = model.set_params(step_size=error.held).fit(X, y)
    """

    def __init__(
        self,
        step: int,
        chain: int,
        parameter: int,
        rejected: int = 0,
        message: str | None = None,
        held: float | None = None,
    ) -> None:
        where = f"chain {chain} overflowed at step {step} in parameter {parameter}"
        super().__init__(where if message is None else message)
        self.step, self.chain, self.parameter = step, chain, parameter
        self.rejected, self.held = rejected, held

    def explained(self, message: str, held: float | None = None) -> ChainOverflowError:
        """Error with a text for the user, and a step size that held."""
        return type(self)(self.step, self.chain, self.parameter, self.rejected, message, held)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the numbers, since workers raise it across processes."""
        where = self.step, self.chain, self.parameter, self.rejected
        return type(self), (*where, str(self), self.held)


def overflow_at(step: int, values: Array, n_params: int) -> ChainOverflowError:
    """Overflow at a step whose reported parameters ``values (C, K)`` are not all finite."""
    chain, parameter = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
    return ChainOverflowError(step, chain, min(parameter, n_params - 1))


def check_lost(state: State, step: int) -> None:
    """Raise if a chain stands still because none of its proposals can be accepted.

    Chains that mix never make 50 consecutive proposals of acceptance probability 0.
    """
    lost = state["lost"]
    if lost.max() >= 50:
        chain, rejected = int(lost.argmax()), int(lost.max())
        parameter = int(state["lost_in"][chain])
        raise ChainOverflowError(step + 1 - rejected, chain, parameter, rejected)
