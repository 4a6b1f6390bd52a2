"""The draws depend on the data and the seed: not on memory, chains beside them, or jobs."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_regressor

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from tests.estimators.test_sklearn_api import X, assert_equal, draws, make, predictions
from tests.sharing import share_after

# 100 draws and fewer are too few for the summaries to be relied on, and the estimators say so
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]
# one estimator of each way to a posterior
EACH_WAY = ["linear", "map_linear", "network_linear", "backprop_labels"]


@pytest.mark.parametrize("name", EACH_WAY)
def test_a_read_only_memory_map_fits_as_the_array_does(name, tmp_path):
    model, y = make(name)
    dtype = np.float32 if name == "linear" else np.float64
    arrays = X.astype(dtype), y.astype(dtype) if is_regressor(model) else y
    joblib.dump(arrays, tmp_path / "data")
    mapped = joblib.load(tmp_path / "data", mmap_mode="r")
    assert all(isinstance(a, np.memmap) and not a.flags.writeable for a in mapped)
    in_memory = clone(model).fit(*arrays)
    assert_equal(draws(model.fit(*mapped)), draws(in_memory))
    assert_equal(predictions(model, mapped[0]), predictions(in_memory, arrays[0]))


@pytest.mark.parametrize("name", EACH_WAY)
def test_the_draws_depend_on_random_state_alone(name):
    model, y = make(name)
    instance = np.random.RandomState(3)
    seeds = [3, 3, 4, instance, instance]
    first, again, other, given, later = (
        draws(model.set_params(random_state=seed).fit(X, y)) for seed in seeds
    )
    assert_equal(first, again)
    assert not np.any(first == other)
    assert_equal(given, first)
    assert not np.any(later == first)  # the instance has gone on


WIDE = np.random.default_rng(5).standard_normal((90, 70))
WIDE_Y = WIDE[:, :5].sum(axis=1) + np.random.default_rng(6).standard_normal(90)
# steps so short that their bias is known without a pilot, which takes twenty times the run's time
FAST = {"n_draws": 20, "random_state": 0, "step_size": 0.02, "n_burnin": 5, "thin": 2}
BATCH = {**FAST, "batch_size": 13}
CHAINS = {
    "auto": (SGLDLogisticRegression(n_draws=20, random_state=0), 8, WIDE_Y > 0),
    "linear": (SGLDLinearRegression(**FAST), 70, WIDE_Y),
    "minibatch": (SGLDLogisticRegression(**BATCH, gradient="minibatch"), 70, WIDE_Y > 0),
    "control": (SGLDLinearRegression(**BATCH, gradient="control_variate"), 70, WIDE_Y),
    "softmax": (SGLDLogisticRegression(**BATCH), 24, np.digitize(WIDE_Y, [-1, 1])),
}


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_is_the_same_to_the_bit_beside_any_number_of_others_and_in_two_jobs(
    kind, monkeypatch
):
    model, d, y = CHAINS[kind]
    fits = (clone(model).set_params(n_chains=c).fit(WIDE[:, :d], y) for c in (1, 2, 5))
    one, two, five = (draws(fit) for fit in fits)
    assert_equal(one, five[:1])
    assert_equal(two, five[:2])
    assert not np.any(five[0] == five[1])
    share_after(0.0, monkeypatch)
    backend = "loky" if kind == "linear" else "threading"  # processes take seconds to start
    with joblib.parallel_config(backend=backend):
        shared = clone(model).set_params(n_chains=5, n_jobs=2).fit(WIDE[:, :d], y)
    assert_equal(draws(shared), five)


def test_jobs_that_share_chains_along_whitened_rows_draw_the_same_to_the_bit(monkeypatch):
    share_after(0.0, monkeypatch)
    wide = np.random.default_rng(7).standard_normal((320, 300))
    y = wide[:, :50].sum(axis=1) > 0
    # four walkers of each of 24 chains: two products of 64 positions, the last one filled up
    model = SGLDLogisticRegression(prior="normal", n_draws=16, n_chains=24, random_state=0)
    model.fit(wide, y)
    with joblib.parallel_config(backend="threading"):
        shared = clone(model).set_params(n_jobs=3).fit(wide, y)
    assert model.sampler_.path_length == 2.0  # that of whitened rows
    assert_equal(draws(shared), draws(model))
