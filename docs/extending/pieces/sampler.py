"""Heun's method: the drift at both ends of a step, averaged."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.sampling import Sampler


@dataclass(eq=False, repr=False)
class Heun(Sampler):
    """Langevin dynamics by Heun's method, of second order in the step size.

    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(sampler=Heun(), random_state=0).fit(X, y)
    >>> model.sampler_, model.result_.problems
    (Heun(), ())
    """

    def gaussian_inflation(self, eta):
        """Variance of the chain on a normal target of precision 1."""
        return (2.0 - eta) / (2.0 - eta + 0.5 * eta**2)

    def prepare(self, normals, previous, eta, dynamics):
        """Noise of many steps, from standard normals ``(T, C, P)``."""
        scale = np.sqrt(2.0 * dynamics.temperature * eta)
        # chains first: the metric's root is applied to one chain after another
        by_chain = np.ascontiguousarray(normals.swapaxes(0, 1))
        return dynamics.metric.sqrt(by_chain).swapaxes(0, 1) * scale[:, None, None]

    def step(self, state, eta, noise, batch, dynamics):
        theta = state["theta"]
        first = dynamics.drift(theta, batch, state)
        second = dynamics.drift(theta + eta * first + noise, batch, state)
        state["theta"] = theta + 0.5 * eta * (first + second) + noise
