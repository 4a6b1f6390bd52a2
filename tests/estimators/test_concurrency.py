"""Threads of the user's: predictions and fits side by side are those of one after the other."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    _linalg,
)
from tests.inputs.good import X, make, target
from tests.marks import slow

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short

# as many rows as are predicted in single precision, in blocks
ROWS = np.random.default_rng(0).standard_normal((900, 2))
MANY = {"n_draws": 1000, "n_chains": 4}  # the rows are in blocks
N_THREADS = 4
SECONDS = 600.0  # only a deadlock takes so long
METHODS = ("predict", "predict_proba", "predict_quantiles", "predict_proba_interval", "sample_y")
METHODS += ("predict_interval", "predict_proba_quantiles", "decision_function")


def at_once(calls):
    """Results of calls that all begin together, in their order."""
    barrier = Barrier(len(calls))

    def begin(call):
        barrier.wait(SECONDS)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begin, calls, timeout=SECONDS))


def predictions(model):
    return [getattr(model, name)(ROWS) for name in METHODS if hasattr(model, name)]


@pytest.mark.parametrize(
    ("cls", "draws"),
    [
        slow(SGLDLinearRegression, MANY),
        (SGLDLogisticRegression, MANY),
        slow(SGLDNegativeBinomialRegressor, {}),
        ("SGLDMLPClassifier", {}),
    ],
)
def test_predictions_of_four_threads_are_those_of_one_and_change_no_state(cls, draws, monkeypatch):
    cls = getattr(skbayes_sgld, cls) if isinstance(cls, str) else cls
    fitted = make(cls, **draws).fit(X, target(cls))
    before, expected = dict(vars(fitted)), predictions(fitted)
    found = at_once([lambda: predictions(fitted)] * N_THREADS)
    monkeypatch.setattr(_linalg, "cpu_count", lambda: 1)
    for each in (*found, predictions(fitted)):
        for one, other in zip(each, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())


def test_fits_side_by_side_are_those_of_one_after_the_other():
    def draws(cls, seed):
        return make(cls, random_state=seed).fit(X, target(cls)).posterior_.values

    models = (SGLDLinearRegression, skbayes_sgld.SGLDMLPClassifier)
    each = [partial(draws, cls, seed) for cls in models for seed in (1, 2)]
    for one, other in zip(at_once(each), [call() for call in each], strict=True):
        np.testing.assert_array_equal(one, other)
    errors = {tuple(np.geterr().items()) for _ in at_once([np.geterr] * 4)}
    assert errors == {tuple(np.geterr().items())}
