"""Steps by the signs of the gradient."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.optimizers import Optimizer


@dataclass(eq=False, repr=False)
class SignDescent(Optimizer):
    """Steps of one length in every coordinate (Bernstein, Wang, Azizzadenesheli & Anandkumar 2018).

    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGDMAPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGDMAPRegressor(optimizer=SignDescent(), preconditioner="curvature", random_state=0)
    >>> bool(model.fit(X, y).distance_ < 0.1)
    True
    """

    unit_steps = True  # a step's length does not depend on the gradient's

    def direction(self, state, gradient):
        return np.sign(gradient)

    def step_size(self, steepest, away):
        return away / 20.0 / np.sqrt(steepest)  # twenty steps from the start to the mode
