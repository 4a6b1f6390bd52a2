"""How a refusal is looked at: the error names the argument, and the estimator stays as it was."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from tests.inputs.good import make, of_support

REGRESSORS, CLASSIFIERS = (SGLDLinearRegression,), (SGLDLogisticRegression,)

N, D = 30, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(N)
FRAME = pd.DataFrame(X, columns=["age", "bmi", "bp"])


def target(cls, y=Y):
    """Labels, counts or numbers, as a class takes them."""
    if is_classifier(cls()):
        return (y > 0).astype(float)
    return of_support(cls, y)


def refuse(model, match, X=X, y=None, weight=None, error=(ValueError, TypeError)):
    """Message of the refusal to fit; ``y`` may be a function of the good target."""
    good = target(type(model))
    y = good if y is None else y(good) if callable(y) else y
    before = copy(vars(model))
    with pytest.raises(error, match=match) as raised:
        model.fit(X, y, weight)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    return str(raised.value)


def cases(label, match, classes, *data, **params):
    """A case for each of the classes: an estimator, a pattern and the data of ``refuse``."""
    given = {name: params.pop(name) for name in ("X", "y", "weight") if name in params}
    given |= dict(zip(("X", "y"), data, strict=False))
    return [
        pytest.param(make(cls, **params), match, given, id=f"{label}-{cls.__name__}")
        for cls in classes
    ]
