"""Types as a user's checker sees them: mypy reads this file with the package (``make lint``)."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld import (
    RowBlocks,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
    SGLDPoissonRegressor,
    predict_interval,
)

Pair = tuple[NDArray[Any], NDArray[Any]]
X, Y = np.arange(12.0)[:, None], np.arange(12) % 3 + np.arange(12)
FEW: dict[str, Any] = {"n_draws": 20, "n_burnin": 5, "n_chains": 2, "random_state": 0}


def regression(model: SGLDLinearRegression | SGLDPoissonRegressor) -> None:
    """``predict`` gives an array, and two where the standard deviation is asked for."""
    mean = assert_type(model.predict(X), NDArray[Any])
    pair = assert_type(model.predict(X, return_std=True), Pair)
    assert_type(model.predict(X, return_std=False), NDArray[Any])
    assert mean.shape == pair[0].shape == pair[1].shape
    ends = assert_type(model.predict_interval(X, coverage=0.8), NDArray[Any])
    several = assert_type(model.predict_interval(X, [0.5, 0.9], kind="mean"), NDArray[Any])
    assert (*ends.shape, 2) == several.shape
    levels = assert_type(model.predict_quantiles(X, [0.1, 0.5]), NDArray[Any])
    assert assert_type(model.predict_quantiles(X, [0.1, 0.5], out=levels), NDArray[Any]) is levels


def of_blocks(model: SGLDLinearRegression | SGLDPoissonRegressor) -> None:
    """Rows in blocks give an iterator of what arrays give."""
    blocks = RowBlocks(lambda: [(X, Y)])
    assert_type(model.predict(blocks), Iterator[NDArray[Any]])
    assert_type(model.predict(blocks, return_std=True), Iterator[Pair])
    ends = assert_type(model.predict_interval(blocks), Iterator[NDArray[Any]])
    levels = assert_type(model.predict_quantiles(blocks), Iterator[NDArray[Any]])
    assert next(ends).shape == (12, 2) and next(levels).shape == (12, 3)


def classification(model: SGLDLogisticRegression) -> None:
    """All of a classifier's predictions are typed, of arrays and of blocks."""
    blocks = RowBlocks(lambda: [(X, Y % 2)])
    assert_type(model.predict(X), NDArray[Any])
    assert_type(model.decision_function(X), NDArray[Any])
    probability = assert_type(model.predict_proba(X=X), NDArray[Any])
    assert_type(model.predict_proba(X, out=probability), NDArray[Any])
    assert_type(model.predict_proba_interval(X, coverage=[0.5, 0.9]), NDArray[Any])
    assert_type(model.predict_proba_quantiles(X, q=0.5), NDArray[Any])
    found = assert_type(model.predict_proba(blocks), Iterator[NDArray[Any]])
    bands = assert_type(model.predict_proba_interval(blocks), Iterator[NDArray[Any]])
    np.testing.assert_array_equal(next(found), probability)
    assert next(bands).shape == (12, 2, 2)


def test_fit_gives_back_the_estimator_that_it_is_called_of(recwarn: Any) -> None:
    linear = assert_type(SGLDLinearRegression(**FEW).fit(X, Y), SGLDLinearRegression)
    counts = assert_type(SGLDPoissonRegressor(**FEW).fit(X, Y), SGLDPoissonRegressor)
    regression(linear)
    regression(counts)
    of_blocks(linear)
    of_blocks(counts)
    assert_type(predict_interval(linear, X, coverage=[0.5, 0.9]), Any)  # or a frame, or of blocks
    assert_type(linear.partial_fit(X, Y), SGLDLinearRegression)
    assert_type(linear.set_params(n_draws=30), SGLDLinearRegression)
    labels = SGLDLogisticRegression(**FEW).fit(X, Y % 2)
    classification(assert_type(labels, SGLDLogisticRegression))
    assert_type(SGDMAPRegressor(random_state=0).fit(X, Y), SGDMAPRegressor)


def chained() -> None:
    """A network is checked, and not fitted: it takes seconds."""
    assert_type(SGLDMLPRegressor().fit(X, Y), SGLDMLPRegressor)
    assert_type(SGLDMLPRegressor().fit(X, Y).predict(X), NDArray[Any])
