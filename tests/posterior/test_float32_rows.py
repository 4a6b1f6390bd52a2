"""Fits and products of float32 rows, which are those of the same numbers in float64."""

import tracemalloc

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, _linalg
from skbayes_sgld._linalg import BLOCK_NUMBERS
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal


def float32_data(n, d, offset=0.0):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, d)) + offset).astype(np.float32)
    signal = (X - np.float32(offset)) @ rng.standard_normal(d) / np.sqrt(d)
    return X, signal + rng.logistic(size=n)


# a few draws tell whether there is a mode, and whether they are the same
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PLAIN = {"preconditioner": None, "step_size": 1e-4, "gradient": "minibatch", "batch_size": 32}
MODELS = {  # with rows, columns and the edges of classes
    "logistic, in blocks": (SGLDLogisticRegression(), 15_000, 10, [0]),
    "three classes": (SGLDLogisticRegression(), 300, 5, [-1, 1]),
    "plain": (SGLDLogisticRegression(fit_intercept=False, **PLAIN), 500, 20, [0]),
    "linear": (SGLDLinearRegression(), 300, 10, None),
    "more columns than rows": (SGLDLinearRegression(), 12, 20, None),
}


@pytest.mark.parametrize("name", MODELS)
def test_draws_depend_neither_on_the_dtype_nor_on_the_order_of_X(name):
    # float32 products left Newton's method without a mode in one fit of seven, and the layouts
    # parted at 1e-15, which a chain that accepts or rejects makes as large as the posterior
    model, n, d, edges = MODELS[name]
    X, z = float32_data(n, d)
    y = z if edges is None else np.digitize(z, edges)
    model.set_params(random_state=0, n_draws=50)
    layouts = X.astype(np.float64), np.asfortranarray(X)
    np.testing.assert_array_equal(*(model.fit(Z, y).posterior_.values for Z in layouts))


def test_a_network_of_float32_data_is_that_of_the_same_numbers():
    from skbayes_sgld.neural_network import SGLDMLPRegressor

    X, z = float32_data(60, 2)
    model = SGLDMLPRegressor(hidden_layer_sizes=3, n_burnin=50, thin=1, n_draws=50, random_state=0)
    draws = [model.fit(Z, z).posterior_.values for Z in (X, X.astype(np.float64))]
    # the columns are standardised in float32
    assert np.abs(draws[0] - draws[1]).max() < 1e-4 * draws[1].std()


def test_float32_data_far_from_zero_have_their_mode():
    # no search of products in float32 reached a mode here; at offset 0 one in seven did not
    n, d, offset = 500, 20, 1000.0
    X, z = float32_data(n, d, offset)
    model = SGLDLogisticRegression(n_draws=20, random_state=0)
    draws = [model.fit(Z, z > 0).posterior_.flat[:, :d] for Z in (X, X.astype(np.float64) - offset)]
    shift = np.abs(draws[0].mean(axis=0) - draws[1].mean(axis=0))
    assert shift.max() < 0.02 * draws[1].std(axis=0).min()


def test_large_float32_data_are_not_copied_to_float64(monkeypatch):
    monkeypatch.setattr(_linalg, "cpu_count", lambda: 1)  # each thread has a block of its own
    X, z = float32_data(200_000, 20)
    posterior = GLMPosterior(
        X, (z > 0).astype(float), Bernoulli(), Normal(), intercept_at_mean=True
    )
    theta = np.zeros((4, posterior.n_params))
    tracemalloc.start()
    posterior.value_and_grad(theta)
    posterior.curvature(theta[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes  # a copy in float64 would take twice that
    assert peak < 100 * BLOCK_NUMBERS
