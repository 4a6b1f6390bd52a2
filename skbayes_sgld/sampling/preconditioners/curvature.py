"""The inverse curvature at the mode as preconditioner."""

from __future__ import annotations

from dataclasses import dataclass

from skbayes_sgld.sampling.base import Preconditioner
from skbayes_sgld.sampling.metric import Metric


@dataclass(eq=False, repr=False)
class Curvature(Preconditioner):
    """The inverse curvature at the mode, ``G = H^{-1}``: Newton's metric.

    In it a step size has no unit: 0.2 moves a fifth of the way to the mode, on any data. Up to
    3,000 parameters it is a matrix. Above, it is diagonal; but where a single linear predictor
    has fewer rows than parameters, and no more than 3,000, it is exact: the prior's diagonal and
    a term for each row.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(preconditioner="curvature", step_size=0.2)
    SGLDLogisticRegression(preconditioner='curvature', step_size=0.2)
    """

    uses_curvature = True

    def bind(self, n_params: int, metric: Metric | None) -> Metric:
        """Metric of the mode."""
        assert metric is not None
        return metric
