"""A fit that does not end leaves the estimator as it was, whatever stopped it."""

import numpy as np
import pytest

from skbayes_sgld import (
    BayesByBackpropRegressor,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
)
from skbayes_sgld.sampling import ValueClip

# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = X @ [1.0, -1.0] + 0.3 * RNG.standard_normal(40)
MODELS = [
    SGLDLinearRegression(n_draws=20, random_state=0),
    SGLDLogisticRegression(n_draws=20, random_state=0),
    SGDMAPRegressor(max_iter=5, random_state=0),
    SGLDMLPRegressor(
        hidden_layer_sizes=(3,), n_draws=5, n_burnin=5, thin=1, n_chains=2, random_state=0
    ),
    BayesByBackpropRegressor(hidden_layer_sizes=(3,), max_iter=5, random_state=0),
]


class Stop(ValueClip):
    """Interrupts the fit in the middle of its steps, as the keys do."""

    left = 0

    def __call__(self, gradient):
        Stop.left -= 1
        if Stop.left < 0:
            raise KeyboardInterrupt
        return super().__call__(gradient)


def target(model):
    return (
        Y
        if "Regress" in type(model).__name__ and "Logistic" not in type(model).__name__
        else (Y > 0)
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_an_interrupt_leaves_the_last_fit_as_it_was(model, monkeypatch):
    model.fit(X, target(model))
    before = dict(vars(model))
    predicted = model.predict(X)
    if "clip" in model.get_params():
        monkeypatch.setattr(Stop, "left", 3)
        model.set_params(clip=Stop())
    else:  # variational: its steps are of its own
        monkeypatch.setattr("skbayes_sgld.sampling.Adam.direction", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(2.0 * X, target(model))
    monkeypatch.undo()
    after = {name: value for name, value in vars(model).items() if name != "clip"}
    assert after.keys() == before.keys() - {"clip"}
    assert all(after[name] is before[name] for name in after)
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_an_interrupted_first_fit_leaves_nothing(monkeypatch):
    fresh = SGLDLinearRegression(clip=Stop(), n_draws=20, random_state=0)
    monkeypatch.setattr(Stop, "left", 3)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, Y)
    assert vars(fresh).keys() == fresh.get_params(deep=False).keys()


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt
