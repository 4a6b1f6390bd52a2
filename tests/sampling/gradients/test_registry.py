"""Every registered gradient estimator: its mean over all batches is the gradient from all rows."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import GRADIENTS, ControlVariate
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.metric import Dense, Diagonal
from tests.numeric import assert_derivative, derivative
from tests.references.targets import mode_of, posterior_of

N = 24


LIKELIHOODS = {"logistic": Bernoulli(), "softmax": Categorical(3), "linear": NormalNoise()}


@cache
def target(kind, n_rows=N):
    """A posterior of few rows and its mode."""
    weight = np.linspace(0.5, 2.0, n_rows)
    posterior = posterior_of(LIKELIHOODS[kind], n_rows, 2, Normal(), sample_weight=weight)
    return posterior, mode_of(posterior, posterior.start())


def batch_of(bound, rows):
    """One step's batch for one chain, as the runner prepares it."""
    return None if rows is None else bound.prepare(np.array(rows)[None, None])[0]


def wander(bound, posterior, mode, replacement):
    """Position of a chain after a few steps, and the memory of its gradient."""
    rng = np.random.default_rng(1)
    theta = (mode.theta + mode.metric.marginal_sd)[None]
    memory = bound.begin(theta)
    for _ in range(7):
        bound(theta, batch_of(bound, rng.choice(N, 5, replace=replacement)), memory)
        theta = theta + 0.4 * mode.metric.marginal_sd * rng.standard_normal(theta.shape)
    return theta, memory


def check_gradient(name):
    """Raise where the estimator of this name is biased."""
    gradient = resolve(name, GRADIENTS, "gradient")
    for kind in ("logistic", "softmax", "linear"):
        posterior, mode = target(kind)
        bound = gradient.bind(posterior, mode.theta)
        if not gradient.minibatch:
            theta, memory = (mode.theta + 2.0 * mode.metric.marginal_sd)[None], {}
            batches = [None]
        else:
            theta, memory = wander(bound, posterior, mode, gradient.replacement)
            batches = [(row,) for row in range(N)]
        truth = derivative(posterior.log_density, theta)[0]
        assert_mean(bound, theta, memory, batches, truth)
        if gradient.minibatch:
            if kind == "logistic":  # every pair equally often is drawing without replacement
                assert_mean(bound, theta, memory, list(combinations(range(N), 2)), truth)
            # at first, from wherever a chain begins
            start = (mode.theta - 2.0 * mode.metric.marginal_sd)[None]
            at_start = derivative(posterior.log_density, start)[0]
            assert_mean(bound, start, bound.begin(start), batches, at_start)
    check_in_runs(gradient)


def check_in_runs(gradient):
    """Raise where a step of a run does not move by the gradient in the metric, on average.

    A run binds the gradient to its chains, in double and in single precision, and may take a step
    as one product.
    """
    chains = 3
    # of 600 rows sums in single precision are cheaper
    for kind, n_rows in (("logistic", N), ("linear", N), ("logistic", 600)):
        posterior, mode = target(kind, n_rows)
        theta = mode.theta + mode.metric.marginal_sd * np.array([[1.0], [-0.5], [2.0]])
        truth = np.array([derivative(posterior.log_density, at[None])[0] for at in theta])
        truth = truth.reshape(chains, -1)
        metrics = [Diagonal(np.square(mode.metric.marginal_sd)), Dense(mode.metric.root)]
        for metric, rounded in [(m, r) for m in metrics for r in (False, True)]:
            exact = 2e-4 if rounded and posterior.rounded() is not posterior else 1e-6
            followed = posterior.rounded() if rounded else posterior
            dynamics = Dynamics(gradient.bind(followed, mode.theta), metric).for_thread()
            moved, n_batches = 0.0, 0
            memory = dynamics.gradient.begin(theta)
            for batch in batches_of_chains(
                dynamics.gradient, gradient.minibatch, posterior, chains
            ):
                kept = {key: np.array(value) for key, value in memory.items()}
                moved, n_batches = moved + dynamics.drift(theta, batch, kept), n_batches + 1
            expected = metric.scale(truth)
            assert_derivative(moved / n_batches, expected, "the mean drift of a run", rtol=exact)


def batches_of_chains(bound, minibatch, posterior, chains):
    """Batches of two rows, another for each chain, which hold every row equally often."""
    if not minibatch:
        yield None
        return
    n = posterior.n_samples
    order = np.arange(n)
    for shift in range(0, n, 2):
        rows = [np.roll(order, -shift - 5 * c)[:2] for c in range(chains)]
        yield bound.prepare(np.array(rows)[None])[0]


def assert_mean(bound, theta, memory, batches, truth):
    """The mean of the estimates over these batches is the derivative of the log density."""
    total = 0.0
    for rows in batches:
        kept = {key: np.array(value) for key, value in memory.items()}
        total = total + bound(theta, batch_of(bound, rows), kept)
    assert_derivative(total / len(batches), truth, "the mean of the estimates", rtol=1e-6)


@pytest.mark.parametrize("name", [*GRADIENTS, ControlVariate(1)], ids=str)
def test_a_gradient_estimator_is_unbiased(name):
    check_gradient(name)
