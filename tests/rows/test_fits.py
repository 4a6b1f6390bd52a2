"""A fit makes a value and writes it once: an error or a warning on the way leaves no trace."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 2))
FEW = {"n_draws": 250, "random_state": 0}


def state(model):
    return {name: value for name, value in vars(model).items() if not name.startswith("_skl")}


def test_a_later_fit_leaves_nothing_of_the_last():
    y = RNG.integers(0, 2, 200)
    frame = SGLDLogisticRegression(**FEW).fit(X, y)
    two = SGLDLinearRegression(**FEW).fit(X, np.column_stack([X[:, 0], y]))
    alone = SGLDLinearRegression(**FEW).fit(X, X[:, 0] + y)
    assert set(vars(two.fit(X, X[:, 0] + y))) == set(vars(alone))
    assert "estimators_" not in vars(two) and frame._fitted.target.classes.tolist() == [0, 1]


def test_blocks_of_averages_are_refused_where_their_noise_has_another_distribution():
    from skbayes_sgld import RowBlocks

    size = RNG.integers(1, 9, 200)
    blocks = RowBlocks(lambda: iter([(X, X[:, 0], None, size)]))
    with pytest.raises(ValueError, match="n_averaged is given, and noise_distribution='student_t'"):
        SGLDLinearRegression(noise_distribution="student_t").fit(blocks)
