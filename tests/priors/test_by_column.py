"""Priors of some columns each: the density of all, in the order of the columns."""

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld.inference.parameterizations.learned_scales import standardise
from skbayes_sgld.likelihoods import Bernoulli, NormalNoise
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior
from skbayes_sgld.priors import (
    ConjugateNormal,
    Flat,
    HierarchicalNormal,
    Horseshoe,
    Laplace,
    Normal,
    StudentT,
)
from skbayes_sgld.priors.by_column import (
    ByColumn,
    LearnedByColumn,
    Part,
    columns_where,
    joined,
    pieces,
    replaced,
)
from tests.numeric import assert_derivative, derivative_by_chain
from tests.priors import test_registry as registry

V = np.array([[1.0, 0.5], [0.5, 2.0]])
COEF = np.random.default_rng(0).standard_normal((4, 2, 3))
GAMMA = np.array([-0.7, 0.1, 0.4, 1.2])
MIXED = {
    "Laplace and covariance": joined(
        [
            Part("b", np.array([1]), Laplace(scale=0.5, location=0.2)),
            Part("c, a", np.array([2, 0]), Normal(covariance=V, location=[0.1, -0.3])),
        ]
    ),
    "noise scales one": joined(
        [
            Part("b", np.array([1]), ConjugateNormal(scale=2.0)),
            Part("others", np.array([0, 2]), StudentT(scale=[0.4, 1.5])),
        ]
    ),
}
every = pytest.mark.parametrize("name", MIXED)


@every
def test_derivatives_are_those_of_the_density(name):
    registry.check_derivatives(MIXED[name])


@every
def test_draws_and_quantiles_agree(name):
    prior = MIXED[name]
    n, levels = 4000, np.array([0.1, 0.5, 0.9])
    drawn = prior.sample(np.random.default_rng(1), (n, 3), 1.7)
    quantiles = prior.given_noise(1.7).quantiles(levels, 3)
    below = (drawn - prior.location < quantiles[:, None]).mean(axis=1)
    error = np.sqrt(levels * (1.0 - levels) / n)[:, None]
    assert np.all(np.abs(below - levels[:, None]) < 5.0 * error)


def test_the_density_is_that_of_each_part_on_its_columns():
    found = MIXED["Laplace and covariance"].log_density(COEF, None)
    of_b = stats.laplace(0.2, 0.5).logpdf(COEF[..., 1])
    of_both = stats.multivariate_normal([0.1, -0.3], V).logpdf(COEF[..., [2, 0]])
    expected = (of_b + of_both).sum(axis=1)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-12, atol=1e-12)
    found = MIXED["noise scales one"].log_density(COEF, GAMMA)
    of_b = stats.norm(0.0, 2.0 * np.exp(0.5 * GAMMA))
    expected = of_b.logpdf(COEF[..., 1].T).sum(axis=0)
    expected += stats.t(4.0, 0.0, [0.4, 1.5]).logpdf(COEF[..., [0, 2]]).sum(axis=(1, 2))
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-12, atol=1e-12)


def test_parts_of_one_kind_are_one_prior_with_a_scale_for_each_column():
    parts = [
        Part("b", np.array([1]), Normal(scale=0.5, location=3.0)),
        Part("others", np.array([2, 0]), Normal(scale=[2.0, 7.0])),
    ]
    prior = joined(parts)
    assert type(prior) is Normal
    np.testing.assert_array_equal(prior.scale, [7.0, 0.5, 2.0])
    np.testing.assert_array_equal(prior.location, [0.0, 3.0, 0.0])
    assert isinstance(joined([parts[0], parts[1]._replace(prior=ConjugateNormal(2.0))]), ByColumn)
    assert isinstance(joined([Part("", np.array([j]), Flat()) for j in (1, 0)]), Flat)
    # the degrees of freedom differ
    t = [Part("", np.array([j]), StudentT(df=3.0 + j, scale=1.0)) for j in range(2)]
    assert isinstance(joined(t), ByColumn)


@every
def test_a_prior_is_put_together_again_from_its_pieces(name):
    prior, columns = MIXED[name], np.array([0, 2])
    assert [len(part.columns) for part in pieces(prior, columns)] == [2]
    flat = replaced(prior, columns, Flat())
    np.testing.assert_array_equal(columns_where(flat, 3, "proper"), [1])
    coef = COEF.copy()
    value = flat.log_density(coef, GAMMA)
    coef[..., columns] += 5.0
    np.testing.assert_array_equal(flat.log_density(coef, GAMMA), value)
    grad, _ = prior.grad(COEF, GAMMA)
    np.testing.assert_array_equal(flat.grad(COEF, GAMMA)[0][..., 1], grad[..., 1])


KNOWN = {
    "normal": Normal(scale=0.4, location=0.7),
    "flat": Flat(),
    "Laplace": Laplace(scale=0.5),
    "in units of the noise": ConjugateNormal(scale=0.6),
}


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("likelihood", [NormalNoise(), Bernoulli()], ids=["linear", "logistic"])
@pytest.mark.parametrize("learned", [Horseshoe(scale=0.8), HierarchicalNormal(scale=0.8)])
def test_coordinates_of_learned_scales_keep_the_density(known, likelihood, learned):
    if known == "in units of the noise" and not likelihood.quadratic:
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) + 1.0
    y = (X[:, 0] - 1.0 + rng.standard_normal(30) > 0).astype(float)
    parts = [
        Part("b, d", np.array([1, 3]), learned),
        Part("a", np.array([0]), KNOWN[known]),
        Part("c", np.array([2]), HierarchicalNormal(scale=1.5)),
    ]
    prior = LearnedByColumn(parts)
    model = GLMPosterior(X, y, likelihood, prior.conditional(), intercept_at_mean=True)
    joint = HierarchicalPosterior(model, prior)
    theta = joint.start() + 0.3 * rng.standard_normal((3, joint.n_params))
    assert_derivative(joint.grad(theta), derivative_by_chain(joint.log_density, theta), "gradient")
    values = joint.reported.values(theta)
    np.testing.assert_allclose(joint.reported.theta(values), theta, rtol=1e-9, atol=1e-9)
    found, _ = standardise(joint)
    phi = rng.standard_normal((3, joint.n_params))
    at = found.coordinates.expand(phi)
    expected = joint.log_density(at.theta) + at.log_jacobian
    value, grad = found.value_and_grad(phi)
    np.testing.assert_allclose(value - value[0], expected - expected[0], atol=1e-6)
    assert_derivative(grad, derivative_by_chain(found.log_density, phi), "gradient")
    exact = likelihood.quadratic and known in ("normal", "flat")
    assert (type(found).__name__ == "NormalCoefficients") is exact
