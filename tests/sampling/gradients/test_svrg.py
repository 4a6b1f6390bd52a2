"""Descent on SVRG's gradient is the published recursion to the letter."""

import numpy as np
import pytest

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import NormClip, Polynomial
from skbayes_sgld.sampling.loop import run_chains
from tests.references.targets import logistic_posterior, make_run

N, D = 60, 3
POSTERIOR = logistic_posterior(N, D, Normal(2.0), fit_intercept=False)
X, Y = POSTERIOR.X, POSTERIOR.y


def full_gradient(theta):
    """Gradient of the log posterior at ``theta (D,)``, by hand."""
    return X.T @ (Y - 1.0 / (1.0 + np.exp(-X @ theta))) - theta / 4.0


def batch_gradient(theta, rows):
    p = 1.0 / (1.0 + np.exp(-X[rows] @ theta))
    return N / len(rows) * X[rows].T @ (Y[rows] - p) - theta / 4.0


def make_svrg(period, **settings):
    from skbayes_sgld.optimizers import SGD, SVRGDescent

    gradient = SVRGDescent(period).gradient(replacement=True)
    return make_run(POSTERIOR, sampler=SGD(), gradient=gradient, batch_size=4, **settings)


@pytest.mark.parametrize("period", [1, 7])
def test_it_is_the_published_recursion(period):
    run = make_svrg(period, step_size=0.01, schedule=Polynomial())
    start = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    chains = run_chains(run, start, n_draws=25, seed=3)
    for c, theta in enumerate(start):
        rows = ChainStreams(3, c).rows(25, N, 4, True)
        for t in range(25):
            if t % period == 0:
                anchor, exact = theta, full_gradient(theta)
            v = batch_gradient(theta, rows[t]) - batch_gradient(anchor, rows[t]) + exact
            theta = theta + 0.01 * (7.0 + t) ** -0.55 * v
            np.testing.assert_allclose(chains.draws[c, t], theta, rtol=1e-10)


def test_the_estimate_is_clipped_and_not_its_parts():
    run = make_svrg(1, step_size=1.0, clip=NormClip(0.5))
    start = np.array([[1.0, 1.0, 1.0]])
    step = run_chains(run, start, n_draws=1).draws[0, 0] - start[0]
    exact = full_gradient(start[0])
    np.testing.assert_allclose(step, 0.5 * exact / np.linalg.norm(exact), rtol=1e-10)
