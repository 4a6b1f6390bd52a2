"""Control variates around a point that the user gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld.sampling import Gradient
from skbayes_sgld.sampling.gradients.minibatch import MinibatchGradient


@dataclass(eq=False)
class _AroundGradient(MinibatchGradient):
    """Gradient of all rows at the point, plus a batch's estimate of the change since then."""

    point: Any = None

    def __call__(self, theta, batch, memory=None):
        bound, rows = batch
        point = np.broadcast_to(self.point, theta.shape)
        change = bound.gradient(theta, rows).copy()
        change -= bound.gradient(point.copy(), rows)
        at_point = self.full(point.copy()) - self.posterior.grad_log_prior(point)
        return self._estimate(change, bound.size, theta) + at_point


@dataclass(eq=False, repr=False)
class Around(Gradient):
    """Minibatch gradient whose noise vanishes at a point, such as an earlier fit's mean.

    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.datasets import make_logistic
    >>> X, y = make_logistic(500, random_state=0)
    >>> few = {"batch_size": 250, "step_size": 0.1, "n_draws": 300, "random_state": 0}
    >>> model = SGLDLogisticRegression(gradient=Around(point=[1.7, -3.1, 3.7]), **few)
    >>> print(model.fit(X, y).coef_.shape)
    (1, 2)
    """

    point: Any = 0.0

    def make(self, posterior, center, expansion):
        return _AroundGradient(posterior, point=np.asarray(self.point, dtype=float))
