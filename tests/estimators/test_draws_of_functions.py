"""Draws of regression functions and of probabilities, against closed forms."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from skbayes_sgld import (
    SGDMAPClassifier,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
)

RNG = np.random.default_rng(0)
N, D = 50, 2
X = RNG.standard_normal((N, D))
Y = X @ [1.0, -2.0] + 0.5 + RNG.standard_normal(N)
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 0]))
NEW = 2.0 * RNG.standard_normal((5, D))
# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def softmaxed(eta):
    return softmax(eta, axis=2)


def of_two(eta):
    return np.stack([1.0 - expit(eta), expit(eta)], axis=2)


SHORT = {"n_draws": 100, "random_state": 0}
THREE = np.digitize(Y, [-1, 1.5])
FUNCTIONS = {
    "linear": (SGLDLinearRegression(**SHORT), Y, np.asarray),
    "weighted draws": (SGLDLinearRegression(schedule="polynomial", **SHORT), Y, np.asarray),
    "rates": (SGLDPoissonRegressor(**SHORT), COUNTS, np.exp),
    "two classes": (SGLDLogisticRegression(**SHORT), np.where(Y > 0, "up", "down"), of_two),
    "mode": (SGDMAPClassifier(random_state=0), np.where(Y > 0, "up", "down"), of_two),
    "three classes": (SGLDLogisticRegression(**SHORT), THREE, softmaxed),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n_samples", [None, 7])
def test_draws_are_functions_of_the_draws_of_the_parameters(name, n_samples):
    model, y, link = FUNCTIONS[name]
    draws = model.fit(X, y).sample_posterior(n_samples, random_state=3)
    assert (model.posterior_.weights is not None) == (name == "weighted draws")
    eta = np.einsum("s...d,nd->sn...", draws.coef, NEW) + draws.intercept[:, None]
    found = model.posterior_mean_draws(NEW, n_samples, random_state=3)
    np.testing.assert_allclose(found, link(eta))
    if name == "rates":
        exposure = np.arange(1.0, 6.0)
        over = model.posterior_mean_draws(NEW, n_samples, random_state=3, exposure=exposure)
        np.testing.assert_allclose(over, found * exposure)
    if name == "three classes" and n_samples is None:
        np.testing.assert_allclose(found.mean(axis=0), model.predict_proba(NEW), rtol=1e-5)


def test_networks_average_to_their_prediction():
    model = SGLDMLPRegressor(hidden_layer_sizes=3, n_burnin=50, n_draws=20, thin=1, random_state=0)
    model.fit(X, Y)
    np.testing.assert_allclose(model.posterior_mean_draws(NEW).mean(axis=0), model.predict(NEW))
