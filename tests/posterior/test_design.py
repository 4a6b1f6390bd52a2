"""Sums and batches of a design that is neither dense nor sparse: columns beside labels."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld.likelihoods import Bernoulli, NegativeBinomial
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.coefficient_maps import ByBlock
from skbayes_sgld.posterior.design import Design
from skbayes_sgld.posterior.parameters import ParameterBlock
from skbayes_sgld.posterior.sparse_design import SparseDesign
from skbayes_sgld.priors import Normal

RNG = np.random.default_rng(0)
N, D, LABELS = 300, 3, 5
X, CODES = RNG.standard_normal((N, D)) + 1.0, RNG.integers(LABELS, size=N)
Z = np.eye(LABELS)[CODES]
TARGETS = {Bernoulli: RNG.integers(0, 2, N) * 1.0, NegativeBinomial: RNG.poisson(2.0, N) * 1.0}


class Block:
    """Rows of both parts."""

    def __init__(self, columns, labels):
        self.columns, self.labels = columns, labels
        self.shape = len(columns), columns.shape[1] + labels.shape[1]

    def gram(self, weights):
        both = np.hstack([self.columns, self.labels.toarray()])
        return (both.T * weights) @ both


class Stacked(Design):
    """Columns and a level, then sparse labels."""

    def __init__(self, columns, labels):
        self.columns, self.labels, self.dtype = columns, labels, columns.dtype
        self.shape = N, columns.shape[1] + labels.shape[1]

    def parts(self, *size, **sizes):
        return self.labels.parts(*size, **sizes)

    def block(self, rows, room=None):
        return Block(self.columns.block(rows), self.labels.block(rows))

    as_they_are = block

    def rows(self, idx):
        return Block(self.columns.rows(idx), self.labels.rows(idx))

    def _split(self, values):
        return np.split(values, [self.columns.shape[1]], axis=-1)

    def apply(self, coefficients, rows):
        own, effects = self._split(coefficients)
        u = self.columns.apply(own, rows.columns)
        return u + self.labels.apply(effects, rows.labels)

    def adjoint(self, score, rows):
        parts = (self.columns, rows.columns), (self.labels, rows.labels)
        return np.concatenate([design.adjoint(score, block) for design, block in parts], axis=-1)

    def squares(self, weights, rows):
        parts = (self.columns, rows.columns), (self.labels, rows.labels)
        return np.concatenate([design.squares(weights, block) for design, block in parts], axis=-1)


class Effects(ParameterBlock):
    """Effects of the labels, under a standard normal prior."""

    name = "effects"
    coordinates = tuple(f"effect[{label}]" for label in range(LABELS))

    def in_design(self, n_predictors, level):
        return np.zeros(LABELS, int), level + 1 + np.arange(LABELS)

    def log_prior(self, values):
        return -0.5 * np.square(values).sum(axis=1)

    def grad_log_prior(self, values):
        return -values

    def prior_curvature(self, values):
        return np.ones(len(values))


class Grouped(GLMPosterior):
    """A generalised linear model with effects of labels."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.parameters = self.parameters.plus(Effects())

    def _design(self, dtype):
        labels = sparse.csr_array(np.eye(LABELS, dtype=dtype)[CODES])
        return Stacked(super()._design(dtype), SparseDesign(labels, None, False))

    def _coefficient_map(self):
        return ByBlock(self.parameters)


@pytest.mark.parametrize("family", TARGETS)
@pytest.mark.parametrize("center", [False, True])
def test_labels_beside_columns_are_as_dense_columns(family, center):
    y = TARGETS[family]
    grouped = Grouped(X, y, family(), Normal(1.0), intercept_at_mean=center)
    dense = GLMPosterior(np.hstack([X, Z]), y, family(), Normal(1.0))
    theta = grouped.start() + 0.3 * RNG.standard_normal((4, grouped.n_params))
    blocks, flat = grouped.parameters, np.empty((4, dense.n_params))
    flat[:, : D + LABELS] = np.hstack([blocks.coef(theta)[:, 0], theta[:, blocks.at("effects")]])
    shift = 0.0 if grouped.x_mean is None else blocks.coef(theta)[:, 0] @ grouped.x_mean
    flat[:, D + LABELS] = blocks.intercept(theta)[:, 0, 0] - shift
    dense.parameters.own(flat)[...] = blocks.own(theta)

    value, grad = grouped.value_and_grad(theta)
    expected, _ = dense.value_and_grad(flat)
    np.testing.assert_allclose(value - value[0], expected - expected[0], rtol=1e-9)
    move = 1e-6 * np.eye(grouped.n_params)
    slopes = grouped.log_density(theta[0] + move) - grouped.log_density(theta[0] - move)
    np.testing.assert_allclose(grad[0], slopes / 2e-6, rtol=1e-5, atol=1e-4)
    of_grad = grouped.grad(theta[0] + move) - grouped.grad(theta[0] - move)
    curvature = grouped.curvature(theta[0])
    np.testing.assert_allclose(curvature, -of_grad / 2e-6, rtol=1e-5, atol=1e-4)
    factor, _ = grouped.curvature_factor(theta[0])
    np.testing.assert_allclose(factor, np.diagonal(curvature), rtol=1e-8)
    idx = RNG.integers(N, size=(4, 50))
    batch = dense.grad_log_likelihood(flat, idx)
    found = grouped.grad_log_likelihood(theta, idx)[:, blocks.at("effects")]
    np.testing.assert_allclose(found, batch[:, D : D + LABELS], rtol=1e-9, atol=1e-9)
