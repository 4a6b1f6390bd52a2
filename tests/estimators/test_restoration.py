"""A fit that does not end leaves the estimator as it was, whatever stopped it."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.sampling import ValueClip
from tests.inputs.good import NAMES, X, estimator, make, target

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short


class Stop(ValueClip):
    """Interrupts the fit in the middle of its steps, as the keys do."""

    left = 0

    def __call__(self, gradient):
        Stop.left -= 1
        if Stop.left < 0:
            raise KeyboardInterrupt
        return super().__call__(gradient)


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_leaves_the_last_fit_as_it_was(name, monkeypatch):
    cls = estimator(name)
    model = make(cls).fit(X, target(cls))
    before = dict(vars(model))
    predicted = model.predict(X)
    if "clip" in model.get_params():
        monkeypatch.setattr(Stop, "left", 3)
        model.set_params(clip=Stop())
    else:  # variational: its steps are of its own
        monkeypatch.setattr("skbayes_sgld.optimizers.Adam.direction", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(2.0 * X, target(cls))
    monkeypatch.undo()
    after = {name: value for name, value in vars(model).items() if name != "clip"}
    assert after.keys() == before.keys() - {"clip"}
    assert all(after[name] is before[name] for name in after)
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_an_interrupted_first_fit_leaves_nothing(monkeypatch):
    fresh = make(SGLDLinearRegression, clip=Stop())
    monkeypatch.setattr(Stop, "left", 3)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, target(SGLDLinearRegression))
    assert vars(fresh).keys() == fresh.get_params(deep=False).keys()


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt
