"""The curvature's diagonal as preconditioner."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.sampling import Preconditioner
from skbayes_sgld.sampling.metric import Diagonal


@dataclass(eq=False, repr=False)
class MarginalVariances(Preconditioner):
    """Posterior variances at the mode, without correlations.

    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.datasets import make_logistic
    >>> X, y = make_logistic(500, random_state=0)
    >>> model = SGLDLogisticRegression(preconditioner=MarginalVariances(), random_state=0)
    >>> print(model.fit(X, y).preconditioner_)
    MarginalVariances()
    """

    uses_curvature = True  # the metric of the mode is computed and handed to bind

    def bind(self, n_params, metric):
        return Diagonal(np.square(metric.marginal_sd))
