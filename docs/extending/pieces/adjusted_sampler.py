"""Barker's proposal: a random move whose sign follows the gradient."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_expit, log_ndtr

from skbayes_sgld.sampling import Adjusted


@dataclass(eq=False, repr=False)
class Barker(Adjusted):
    """Moves whose signs are likelier uphill, accepted or rejected (Livingstone & Zanella 2022).

    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SGLDLogisticRegression(sampler=Barker(), random_state=0).fit(X[50:], y[50:])
    >>> model.sampler_, model.result_.problems
    (Barker(), ())
    """

    target_acceptance: float = 0.4  # step_size="auto" aims at it

    largest_step = 2.0  # that step_size="auto" tries, in sds of the posterior

    def step_and_time(self, rates, step=None):
        """Step size, and steps to an independent draw, on a normal of these curvatures."""
        step = step or 1.5 / np.sqrt(rates[-1])
        return step, 8.0 / (step**2 * rates[0])

    def n_normals(self, n_params):
        """Normals of a step: a size for each parameter, to accept, and a sign for each."""
        return 2 * n_params + 1

    def prepare(self, normals, previous, eta, dynamics):
        """Sizes, the log of a uniform number, and numbers of a logistic distribution."""
        P = normals.shape[-1] // 2
        sizes, uniform, signs = np.split(normals, [P, P + 1], axis=-1)
        return np.concatenate([sizes, log_ndtr(uniform), log_ndtr(signs) - log_ndtr(-signs)], -1)

    def init(self, theta):
        """State of the chains: that of every adjusted sampler, and the force."""
        return super().init(theta) | {"force": np.zeros_like(theta)}

    def evaluate(self, theta, dynamics):
        """Log density, and its gradient in the coordinates of the metric."""
        value, gradient = dynamics.value_and_gradient_at(theta)
        return {"value": value, "force": dynamics.metric.sqrt_t(gradient)}

    def propose(self, state, eta, noise, dynamics):
        """State at the proposals, and tau times the logs of their acceptance ratios."""
        tau = np.reshape(dynamics.temperature, (-1, 1))  # for all chains, or one each
        P = state["theta"].shape[1]
        size, slope = eta * np.sqrt(tau) * noise[:, :P], state["force"] / tau
        move = np.where(noise[:, P + 1 :] < size * slope, size, -size)
        theta = state["theta"] + dynamics.metric.sqrt(move)
        end = {"theta": theta} | self.evaluate(theta, dynamics)
        back, there = log_expit(-move * end["force"] / tau), log_expit(move * slope)
        return end, end["value"] - state["value"] + (tau * (back - there)).sum(axis=1)
