"""A half-space of coefficients."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.optimizers import Projection


@dataclass(eq=False, repr=False)
class HalfSpace(Projection):
    """Coefficients whose sum is at most ``bound``.

    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGDMAPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = X[:, [2, 3, 8]]  # body mass index, blood pressure and triglycerides
    >>> model = SGDMAPRegressor(projection=HalfSpace(bound=500.0), random_state=0).fit(X, y)
    >>> bool(model.coef_.sum() <= 500.0 + 1e-9)
    True
    """

    bound: float = 0.0

    def _excess(self, coef):
        return np.maximum(coef.sum(axis=1, keepdims=True) - self.bound, 0.0)

    def nearest(self, coef):
        return coef - self._excess(coef) / coef.shape[1]

    def shortest(self, coef, root):
        normal = root.sum(axis=1)  # of the edge, in the coordinates of the metric (C, P)
        y = -self._excess(coef) * normal / np.square(normal).sum(axis=1, keepdims=True)
        return y, self.nearest(coef + np.einsum("cdp,cp->cd", root, y))
