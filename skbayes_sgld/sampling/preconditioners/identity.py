"""No preconditioning."""

from __future__ import annotations

from dataclasses import dataclass

from skbayes_sgld.sampling.base import Preconditioner
from skbayes_sgld.sampling.metric import Metric, identity


@dataclass(eq=False, repr=False)
class Identity(Preconditioner):
    """No preconditioning: the step size is in the raw units of the parameters.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="none", step_size=1e-4)
    SGLDLogisticRegression(preconditioner='none', step_size=0.0001)
    """

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """The identity."""
        return identity(n_params)
