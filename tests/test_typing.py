"""Types as a user's checker sees them: mypy reads this file with the package (``make lint``)."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld import (
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
)

X, Y = np.arange(12.0)[:, None], np.arange(12) % 3 + np.arange(12)
FEW: dict[str, Any] = {"n_draws": 20, "n_burnin": 5, "n_chains": 2, "random_state": 0}


def regression(model: SGLDLinearRegression | SGLDPoissonRegressor) -> None:
    """``predict`` gives an array, and two where the standard deviation is asked for."""
    mean = assert_type(model.predict(X), NDArray[Any])
    pair = assert_type(model.predict(X, return_std=True), tuple[NDArray[Any], NDArray[Any]])
    assert_type(model.predict(X, return_std=False), NDArray[Any])
    assert mean.shape == pair[0].shape == pair[1].shape


def test_fit_gives_back_the_estimator_that_it_is_called_of(recwarn: Any) -> None:
    linear = assert_type(SGLDLinearRegression(**FEW).fit(X, Y), SGLDLinearRegression)
    counts = assert_type(SGLDPoissonRegressor(**FEW).fit(X, Y), SGLDPoissonRegressor)
    regression(linear)
    regression(counts)
    assert_type(linear.partial_fit(X, Y), SGLDLinearRegression)
    assert_type(linear.set_params(n_draws=30), SGLDLinearRegression)
    assert_type(SGLDLogisticRegression(**FEW).fit(X, Y % 2), SGLDLogisticRegression)
    assert_type(SGDMAPRegressor(random_state=0).fit(X, Y), SGDMAPRegressor)


def chained() -> None:
    """A network is checked, and not fitted: it takes seconds."""
    assert_type(SGLDMLPRegressor().fit(X, Y), SGLDMLPRegressor)
    assert_type(SGLDMLPRegressor().fit(X, Y).predict(X), NDArray[Any])
