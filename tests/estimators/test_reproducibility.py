"""The draws depend on the data and the seed: not on memory, chains beside them, or jobs."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from tests.estimators.test_sklearn_api import assert_equal, draws
from tests.sharing import share_after

# 100 draws and fewer are too few for the summaries to be relied on, and the estimators say so
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # the conjugate prior warns of few rows a column
    pytest.mark.filterwarnings(r"ignore:\d+ rows for \d+ columns"),
]
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


@pytest.mark.slow
def test_jobs_that_share_chains_along_whitened_rows_draw_the_same_to_the_bit(monkeypatch):
    share_after(0.0, monkeypatch)
    wide = np.random.default_rng(7).standard_normal((320, 300))
    y = wide[:, :50].sum(axis=1) > 0
    # four walkers of each of 24 chains: two products of 64 positions, the last one filled up
    model = SGLDLogisticRegression(prior="normal", n_draws=16, n_chains=24, random_state=0)
    model.fit(wide, y)
    with joblib.parallel_config(backend="threading"):
        shared = clone(model).set_params(n_jobs=3).fit(wide, y)
    assert model.result_.plan.run.dynamics.whitened is not None
    assert_equal(draws(shared), draws(model))
