"""The gradient from all rows."""

from __future__ import annotations

from dataclasses import dataclass

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.base import Gradient
from skbayes_sgld.sampling.dynamics import Array, BoundGradient


@dataclass(eq=False, repr=False)
class Full(Gradient):
    """The gradient from all rows; for a normal likelihood from its sufficient statistics.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> SGLDLogisticRegression(gradient="full")
    SGLDLogisticRegression(gradient='full')
    """

    requires = ()
    minibatch = False

    def make(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion | None
    ) -> BoundGradient:
        """Exact gradient."""
        return BoundGradient(posterior)
