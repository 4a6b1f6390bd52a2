"""Products with the columns of effects, against dense ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skbayes_sgld.mixed.label_design import LabelDesign

N, L, Q, C = 40, 9, 2, 5


@pytest.fixture(params=["ones", "values"])
def effects(request):
    """Columns of the effects of labels: those of an intercept alone, or of slopes too."""
    rng = np.random.default_rng(0)
    codes = rng.integers(L, size=N)
    q = 1 if request.param == "ones" else Q
    columns = q * codes[:, None] + np.arange(q)
    values = np.ones((N, 1)) if q == 1 else rng.standard_normal((N, q))
    parts = values.ravel(), columns.ravel(), np.arange(N + 1) * q
    return csr_array(parts, shape=(N, L * q))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", ["all", "block", "gathered"])
def test_products_of_effects_are_those_of_their_matrix(effects, dtype, rows):
    rng, design = np.random.default_rng(1), LabelDesign(effects, dtype)
    at = {"all": slice(0, N), "block": slice(7, 19), "gathered": np.array([3, 30, 3, 11])}[rows]
    block = design.rows(at) if rows == "gathered" else design.block(at)
    dense = effects.toarray()[at]
    assert design.shape == effects.shape and block.shape == dense.shape
    coefficients = rng.standard_normal((C, 1, design.shape[1])).astype(dtype)
    score = rng.standard_normal((C, 1, len(dense))).astype(dtype)
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(block.toarray(), dense, **close)
    np.testing.assert_allclose(design.apply(coefficients, block), coefficients @ dense.T, **close)
    np.testing.assert_allclose(design.adjoint(score, block), score @ dense, **close)
    weights = np.square(score[:, 0])
    np.testing.assert_allclose(design.squares(weights, block), weights @ dense**2, **close)


def test_no_position_changes_the_rounding_of_another(effects):
    rng, design = np.random.default_rng(1), LabelDesign(effects, float)
    block = design.block(slice(0, N))
    coefficients = rng.standard_normal((C, 1, design.shape[1]))
    score = rng.standard_normal((C, 1, N))
    for product, values in ((design.apply, coefficients), (design.adjoint, score)):
        assert np.array_equal(product(values, block)[2:3], product(values[2:3], block))
