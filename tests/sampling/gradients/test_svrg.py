"""Descent on SVRG's gradient: the published recursion to the letter, and where it ends."""

import numpy as np
import pytest

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
from skbayes_sgld.sampling import SGD, Curvature, NormClip, Polynomial, SVRGDescent, find_mode
from skbayes_sgld.sampling.loop import run_chains
from tests.references.targets import NormalMean, make_run

N, D = 60, 3
X = np.random.default_rng(0).standard_normal((N, D))
Y = (X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).logistic(size=N) > 0).astype(float)


@pytest.fixture(scope="module")
def posterior():
    return GLMPosterior(X, Y, Bernoulli(), Normal(2.0), fit_intercept=False)


def full_gradient(theta):
    """Gradient of the log posterior at ``theta (D,)``, by hand."""
    return X.T @ (Y - 1.0 / (1.0 + np.exp(-X @ theta))) - theta / 4.0


def batch_gradient(theta, rows):
    p = 1.0 / (1.0 + np.exp(-X[rows] @ theta))
    return N / len(rows) * X[rows].T @ (Y[rows] - p) - theta / 4.0


def make_svrg(posterior, period, **settings):
    gradient = SVRGDescent(period).gradient(replacement=True)
    return make_run(posterior, sampler=SGD(), gradient=gradient, batch_size=4, **settings)


@pytest.mark.parametrize("period", [1, 7])
def test_it_is_the_published_recursion(posterior, period):
    run = make_svrg(posterior, period, step_size=0.01, schedule=Polynomial())
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


def test_the_estimate_is_clipped_and_not_its_parts(posterior):
    run = make_svrg(posterior, 1, step_size=1.0, clip=NormClip(0.5))
    start = np.array([[1.0, 1.0, 1.0]])
    step = run_chains(run, start, n_draws=1).draws[0, 0] - start[0]
    exact = full_gradient(start[0])
    np.testing.assert_allclose(step, 0.5 * exact / np.linalg.norm(exact), rtol=1e-10)


def test_at_a_constant_step_size_it_comes_to_rest_where_sgd_keeps_moving(posterior):
    mode = find_mode(posterior, posterior.start())
    settings = {"step_size": 0.2, "preconditioner": Curvature(), "mode": mode}
    start = np.zeros((20, D))
    runs = {
        "svrg": make_svrg(posterior, 20, **settings),
        "sgd": make_run(posterior, sampler=SGD(), batch_size=4, **settings),
    }
    ends = {name: run_chains(run, start, n_draws=1, thin=600).draws for name, run in runs.items()}
    errors = {
        name: np.abs((end - mode.theta) / mode.metric.marginal_sd).max()
        for name, end in ends.items()
    }
    assert errors["svrg"] < 1e-6 < 0.1 < errors["sgd"]


def test_a_normal_likelihood_has_no_noise_at_all():
    # its rows' gradients all change alike, so that every batch tells the whole of the change
    target = NormalMean()
    run = make_svrg(target, 9, step_size=0.4 / target.precision)
    draws = run_chains(run, np.full((2, 1), 5.0), n_draws=30, seed=1).draws[..., 0]
    mean = target.y.mean()
    expected = mean + (5.0 - mean) * 0.6 ** np.arange(1, 31)
    np.testing.assert_allclose(draws, np.tile(expected, (2, 1)), rtol=1e-12)
