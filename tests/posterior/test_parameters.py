"""Theta as a list of blocks: places, names, and the maps to reported parameters and back."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods import (
    Categorical,
    NegativeBinomial,
    NormalNoise,
    Ordinal,
    StudentTNoise,
)
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior, LogLinearNoise
from skbayes_sgld.posterior.coefficient_maps import ByBlock
from skbayes_sgld.posterior.parameters import ParameterBlock
from skbayes_sgld.priors import HierarchicalNormal, Horseshoe, Normal

RNG = np.random.default_rng(0)
X, N = RNG.standard_normal((40, 3)) + 2.0, 40
COUNTS = RNG.poisson(2.0, N).astype(float)


def hierarchical(prior):
    def make(**options):
        model = GLMPosterior(X, X[:, 0], NormalNoise(), prior.conditional(), **options)
        return HierarchicalPosterior(model, prior)

    return make


def log_linear(likelihood):
    def make(**options):
        return LogLinearNoise(columns=[2, 0]).bind(
            X, X[:, 0], likelihood, Normal(), None, **options
        )

    return make


def glm(y, likelihood):
    return lambda **options: GLMPosterior(X, y, likelihood, Normal(), **options)


MODELS = {
    "constant noise": glm(X[:, 0], NormalNoise()),
    "Student-t noise": glm(X[:, 0], StudentTNoise()),
    "three classes": glm(np.arange(N) % 3.0, Categorical(3)),
    "ordered classes": glm(np.arange(N) % 4.0, Ordinal(4)),
    "dispersed counts": glm(COUNTS, NegativeBinomial()),
    "log-linear noise": log_linear(NormalNoise()),
    "log-linear Student-t noise": log_linear(StudentTNoise()),
    "learned scale": hierarchical(HierarchicalNormal()),
    "horseshoe": hierarchical(Horseshoe()),
}
every_model = pytest.mark.parametrize("name", MODELS)
every_intercept = pytest.mark.parametrize(
    "options",
    [{}, {"intercept_at_mean": True}, {"fit_intercept": False}],
    ids=lambda o: str(o or "at 0"),
)


@every_model
@every_intercept
def test_the_blocks_cover_theta_and_its_reported_parameters(name, options):
    posterior = MODELS[name](**options)
    blocks = posterior.parameters
    places = [blocks.at(block.name) for block in blocks.blocks]
    covered = np.concatenate([np.arange(at.start, at.stop) for at in places])
    np.testing.assert_array_equal(covered, np.arange(posterior.n_params))
    assert len(set(posterior.param_names)) == len(posterior.param_names) == posterior.n_params
    assert len(set(posterior.reported.names)) == posterior.n_params
    theta = posterior.start() + 0.3 * RNG.standard_normal((5, posterior.n_params))
    if posterior.n_predictors > 1:  # whose common shift is not reported
        linear = blocks.linear(theta)
        linear -= linear.mean(axis=1, keepdims=True)
    values = posterior.reported.values(theta)
    np.testing.assert_allclose(posterior.reported.theta(values), theta, rtol=1e-9, atol=1e-9)


@every_model
def test_parts_of_theta_are_views_that_go_together_again(name):
    blocks = MODELS[name]().parameters
    theta = RNG.standard_normal((2, blocks.size))
    for block in blocks.blocks[1:]:
        others, part = blocks.split(theta, block.name)
        np.testing.assert_array_equal(blocks.join(others, part, block.name), theta)
    together = [blocks.coef(theta), blocks.intercept(theta)]
    np.testing.assert_array_equal(np.concatenate(together, axis=2), blocks.linear(theta))
    blocks.intercept(theta)[...] = 7.0
    assert (theta == 7.0).sum() == 2 * blocks.linear(theta).shape[1]


class Effects(ParameterBlock):
    """Effects of two labels, whose columns follow the level in the design."""

    name = "effects"
    coordinates = ("Shop[a]", "Shop[b]")

    def in_design(self, n_predictors, level):
        return np.zeros(2, int), level + 1 + np.arange(2)


@every_intercept
@pytest.mark.parametrize("name", ["ordered classes", "dispersed counts", "constant noise"])
def test_a_block_of_labels_stands_between_coefficients_and_own_parameters(name, options):
    model = MODELS[name](**options)
    without, blocks = model.parameters, model.parameters.plus(Effects())
    effects, base = np.array([[0.3, -2.0]] * 4), model.start() + RNG.standard_normal((4, 1))
    theta = blocks.join(base, effects, "effects")
    values, names = blocks.to_reported(theta), blocks.reported_names
    np.testing.assert_allclose(blocks.from_reported(values), theta, atol=1e-12)
    others, found = blocks.split(values, "effects")
    np.testing.assert_array_equal(found, effects)
    np.testing.assert_array_equal(others, without.to_reported(base))
    at = blocks.at("effects")
    assert names[at] == ["Shop[a]", "Shop[b]"]
    assert names[: at.start] + names[at.stop :] == without.reported_names

    layout, alone = blocks.layout(names), without.layout(without.reported_names)
    parts, expected = layout.split(values), alone.split(without.to_reported(base))
    np.testing.assert_array_equal(parts.pop("Shop"), effects)
    assert parts.keys() == expected.keys() and layout.own == alone.own
    for part in parts:
        np.testing.assert_array_equal(parts[part], expected[part])

    # columns and labels make one predictor; own parameters are of the level alone
    Z = np.eye(2)[np.arange(N) % 2]
    design = np.column_stack([X, np.ones(N), Z])
    products = ByBlock(blocks).coefficients(theta) @ design.T
    u = blocks.coef(theta)[:, 0] @ X.T + blocks.intercept(theta)[:, 0].sum(1)[:, None]
    np.testing.assert_allclose(products[:, 0], u + effects @ Z.T)
    own = np.broadcast_to(blocks.own(theta)[..., None], (4, blocks.n_own, N))
    np.testing.assert_allclose(products[:, 1:], own)
