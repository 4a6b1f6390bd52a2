"""Sparse rows: every sum and product equals that of the same rows as an array."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld import _linalg
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise, Poisson
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import ConjugateNormal, Flat, InverseGamma, Normal
from tests.numeric import sparse_normals

LIKELIHOODS = {
    "gaussian": NormalNoise(),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(3),
    "poisson": Poisson(),
}
SEED = np.random.default_rng(0)
X = sparse_normals(SEED, (60, 7))
X += sparse.csr_array(np.outer(np.ones(60), np.eye(7)[6]))  # a column without zeros
DENSE, THETA = X.toarray(), 0.5 * SEED.standard_normal((5, 40))
TARGETS = {
    "gaussian": DENSE[:, 0] + 3.0 + SEED.normal(size=60),
    "bernoulli": (DENSE[:, 0] + SEED.normal(size=60) > 0).astype(float),
    "categorical": SEED.integers(0, 3, 60).astype(float),
    "poisson": SEED.poisson(2.0, 60).astype(float),
}


def pair(family, *, prior=None, weight=None, X=X, **kwargs):
    """Posteriors of sparse rows and of the same rows made dense."""
    noise = InverseGamma(2.0, 1.0) if family == "gaussian" else None
    priors = prior or (ConjugateNormal(2.0) if family == "gaussian" else Normal(2.0)), noise
    rows = X, DENSE.astype(X.dtype)
    y, likelihood = TARGETS[family], LIKELIHOODS[family]
    return [GLMPosterior(A, y, likelihood, *priors, sample_weight=weight, **kwargs) for A in rows]


FORMS = {
    "flat prior": {"prior": Flat()},
    "weights and a centre": {"weight": np.linspace(0.5, 2.0, 60), "intercept_at_mean": True},
    "float32": {"X": X.astype(np.float32)},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", LIKELIHOODS)
def test_density_gradient_and_curvature_equal_those_of_dense_rows(family, form):
    ours, theirs = pair(family, **FORMS[form])
    theta, idx = THETA[:, : ours.n_params], np.arange(50).reshape(5, 10)
    for quantity in (
        lambda posterior: posterior.log_density(theta),
        lambda posterior: posterior.grad(theta),
        lambda posterior: posterior.log_likelihood(theta, idx),
        lambda posterior: posterior.grad_log_likelihood(theta, idx),
        lambda posterior: posterior.curvature(theta[0]),
        lambda posterior: posterior.curvature_factor(theta[0])[0],
        lambda posterior: posterior.expand_likelihood(theta[0]).grad,
    ):
        np.testing.assert_allclose(quantity(ours), quantity(theirs), rtol=1e-10, atol=1e-10)
    alone = np.concatenate([ours.grad(row[None]) for row in theta])
    np.testing.assert_array_equal(ours.grad(theta), alone)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_columns_equal_those_of_dense_columns(weighted):
    rng = np.random.default_rng(1)
    columns = np.column_stack(
        [
            rng.normal(size=40) * (rng.random(40) < 0.2),
            (rng.random(40) < 0.3) * 5.0,  # two values
            (rng.random(40) < 0.3) * -2.0,
            np.where(rng.random(40) < 0.5, 3.0, 4.0),  # two values, no zero
            np.full(40, 7.0),  # one value
            np.zeros(40),
            rng.integers(-1, 2, 40),  # three values, of which one is zero
        ]
    ).astype(float)
    weight = rng.integers(0, 3, 40).astype(float) if weighted else None
    ours = _linalg.column_moments(sparse.csr_array(columns), weight)
    for a, b in zip(ours, _linalg.column_moments(columns, weight), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_entries_stored_twice_or_as_zeros_and_wide_indices_are_the_same_rows():
    data, where = np.array([1.0, 2.0, 0.0, 5.0]), np.array([0, 0, 1, 2])
    odd = sparse.csr_array((data, where, np.array([0, 3, 4])), shape=(2, 3))
    odd.indices, odd.indptr = odd.indices.astype(np.int64), odd.indptr.astype(np.int64)
    y, theta = np.array([0.0, 1.0]), np.array([[0.3, -0.2, 0.4, 0.1]])
    dense = np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    ours, theirs = (GLMPosterior(A, y, Bernoulli(), Normal()) for A in (odd, dense))
    np.testing.assert_allclose(ours.grad(theta), theirs.grad(theta), rtol=1e-12)
    assert odd.nnz == 4  # the caller's rows are as they were
