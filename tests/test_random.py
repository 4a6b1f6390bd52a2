"""``random_state`` as users give it: numbers, RandomStates and Generators."""

import numpy as np
import pytest
from sklearn.base import clone

import skbayes_sgld
from skbayes_sgld import (
    BayesByBackpropRegressor,
    SGDMAPClassifier,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPClassifier,
    _random,
    datasets,
)
from skbayes_sgld._random import as_random_state, check_seed, draw_seed, normals_of
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.variational import BayesByBackprop
from tests.marks import slow

# 10 or 20 draws a chain are too few, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).standard_normal((40, 2))
Y = X @ [1.0, -1.0] + np.random.default_rng(1).standard_normal(40)
NORMAL = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
MODEL = SGLDLinearRegression(
    intercept_prior="normal", noise_prior="half_normal", random_state=0
).fit(X, Y)
LABELLER = SGLDLogisticRegression(random_state=0).fit(X, Y > 0)
APPROXIMATION = BayesByBackprop(max_iter=20, random_state=0).fit(NORMAL)


def draws_of(model, y):
    return lambda seed: clone(model).set_params(random_state=seed).fit(X, y).posterior_.values


SMALL = {"hidden_layer_sizes": 2, "n_draws": 10}
USES = {
    "sampled": draws_of(SGLDLinearRegression(n_draws=20), Y),
    "minibatches": draws_of(SGLDLogisticRegression(n_draws=20, batch_size=5), Y > 0),
    "mode": draws_of(SGDMAPClassifier(max_iter=20), Y > 0),
    "network": draws_of(SGLDMLPClassifier(**SMALL, n_burnin=20, thin=1), Y > 0),
    "variational network": draws_of(BayesByBackpropRegressor(**SMALL, max_iter=20), Y),
    "sample": lambda seed: skbayes_sgld.sample(NORMAL, n_draws=20, random_state=seed).values,
    "sample_y": lambda seed: MODEL.sample_y(X, 3, seed),
    "labels": lambda seed: LABELLER.sample_y(X, 9, seed),
    "through wrappers": lambda seed: skbayes_sgld.sample_y(MODEL, X, 3, seed),
    "sample_posterior": lambda seed: MODEL.sample_posterior(7, seed).coef,
    "functions": lambda seed: MODEL.posterior_mean_draws(X, 7, seed),
    "prior": lambda seed: MODEL.sample_prior(X, 3, seed),
    "backprop": lambda seed: (
        BayesByBackprop(max_iter=20, random_state=seed).fit(NORMAL).sample(3, 0)
    ),
    "approximation": lambda seed: APPROXIMATION.sample(3, seed),
    "pair": lambda seed: datasets.make_correlated_pair(20, random_state=seed)[1],
    "cubic": lambda seed: datasets.make_cubic(20, random_state=seed)[1],
    "clusters": lambda seed: datasets.make_two_clusters(20, random_state=seed)[0],
    "logistic": lambda seed: datasets.make_logistic(20, random_state=seed)[0],
    "mixture": lambda seed: datasets.make_tied_means_mixture(20, random_state=seed)[0],
    "volatility": lambda seed: datasets.make_stochastic_volatility(20, random_state=seed).returns,
}


# networks seed what they share with linear models, and "backprop" is the variational one's own
@pytest.mark.parametrize(
    ("kind", "use"),
    [
        slow(kind, use)
        if use == "variational network" or (kind, use) == (np.random.default_rng, "network")
        else (kind, use)
        for kind in (np.random.default_rng, np.random.RandomState)
        for use in USES
    ],
)
def test_states_of_the_same_seed_agree_and_advance(kind, use):
    state = kind(5)
    first = USES[use](state)
    np.testing.assert_array_equal(USES[use](kind(5)), first)
    assert not np.array_equal(USES[use](state), first)
    assert not np.array_equal(USES[use](kind(6)), first)
    if kind is np.random.RandomState:  # which a number stands for
        np.testing.assert_array_equal(USES[use](5), first)


def test_a_check_of_the_settings_does_not_advance_a_generator():
    generator = np.random.default_rng(5)
    with pytest.raises(ValueError, match="n_chains=0"):
        SGLDLinearRegression(n_chains=0, random_state=generator).fit(X, Y)
    check_seed(generator)
    assert generator.integers(2**32) == np.random.default_rng(5).integers(2**32)


def test_a_number_and_a_random_state_stand_for_what_they_always_did():
    expected = np.random.RandomState(3).standard_normal(4)
    np.testing.assert_array_equal(as_random_state(3).standard_normal(4), expected)
    given = np.random.RandomState(3)
    assert as_random_state(given) is given
    for seed in (0, np.int64(3), 2**32 - 1):
        expected = np.random.RandomState(seed).randint(2**31 - 1)
        assert draw_seed(seed) == draw_seed(np.random.RandomState(seed)) == expected


def test_a_users_seed_draws_no_probe():
    probe = _random.probe_generator().standard_normal(8)
    assert np.array_equal(probe, _random.probe_generator().standard_normal(8))
    users = [np.random.default_rng(seed).standard_normal(8) for seed in range(1000)]
    assert np.abs(users - probe).max(axis=1).min() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normals_that_numbers_seed_depend_on_their_row_alone(dtype):
    seeds = np.random.default_rng(0).standard_normal((400, 3))
    out, alone = np.empty((400, 11), dtype), np.empty((1, 11), dtype)
    normals_of(seeds, out)
    normals_of(seeds[7:8] * (1.0 + 1e-15), alone)
    assert np.array_equal(alone[0], out[7])
    assert len(np.unique(out)) > 0.99 * out.size  # no row repeats another
    assert abs(out.mean()) < 4.0 / np.sqrt(out.size)
    assert abs(np.square(out).mean() - 1.0) < 4.0 * np.sqrt(2.0 / out.size)
