"""Effects of one term integrated out label by label, against grids of the effects."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.likelihoods import Bernoulli, NegativeBinomial, Poisson
from skbayes_sgld.mixed import label_rows
from skbayes_sgld.mixed.by_label import ByLabelPosterior, LabelQuadrature
from skbayes_sgld.mixed.mode import JointMode
from skbayes_sgld.mixed.working import WorkingModel
from skbayes_sgld.priors import HalfNormal

from .test_density import make_posterior

CASES = {
    "intercepts": ("intercepts", Bernoulli(), ()),
    "weighted": ("intercepts", Bernoulli(), ()),
    "empty labels": ("intercepts", Bernoulli(), ()),
    "slopes": ("slopes", Poisson(), ()),
    "own parameter": ("slope alone", NegativeBinomial(), (HalfNormal(1.0),)),
}


def make_quadrature(case, n_nodes=25):
    weight = np.arange(60) % 3.0 if case == "weighted" else None
    posterior, *_ = make_posterior(*CASES[case], weight)
    if case == "empty labels":
        codes = posterior.model.effects[0].indices
        weight = np.isin(codes, [2, codes.max()], invert=True).astype(float)
        posterior, *_ = make_posterior(*CASES[case], weight, drops=True)
    at = JointMode.of(posterior)
    quadrature = LabelQuadrature(posterior, at, n_nodes, n_newton=4)
    center = np.append(at.linear[: quadrature.n_fixed], at.eta)
    rng = np.random.default_rng(3)
    theta = center + 0.3 * rng.standard_normal((3, len(center)))
    theta[-1, quadrature.n_fixed] *= -1.0  # a negative scale
    return posterior, quadrature, theta


def on_grid(posterior, theta, label):
    """Effects on a grid ``(k, q)``, and their log density with the rows of a label."""
    d, q = posterior.parameters.at("effects").start, len(posterior.terms[0].effects)
    m = len(posterior.covariances.coordinates)
    L = len(posterior.terms[0].labels)
    axis = np.linspace(-6.0, 6.0, 2001 if q == 1 else 121)
    v = np.stack(np.meshgrid(*[axis] * q, indexing="ij"), axis=-1).reshape(-1, q)
    u = v @ posterior.covariances.each[0].root(theta[None, d : d + m])[0].T
    effects = np.zeros((len(u), L, q))
    effects[:, label] = u
    base = np.tile(np.append(theta[:d], theta[d + m :]), (len(u), 1))
    whole = np.hstack([base[:, :d], effects.reshape(len(u), -1), base[:, d:]])
    rows = np.flatnonzero(posterior.model.effects[0][:, [label * q]].toarray()[:, 0] != 0.0)
    value = np.zeros(len(u))
    for k in range(0, len(u), 512):
        value[k : k + 512] = posterior.model.log_likelihood(whole[k : k + 512])[:, rows].sum(axis=1)
    step = q * np.log((axis[1] - axis[0]) / np.sqrt(2.0 * np.pi))
    return u, value - 0.5 * np.square(v).sum(axis=1) + step


@pytest.mark.parametrize("case", CASES)
def test_the_likelihood_without_effects_is_that_of_grids_of_the_effects(case):
    posterior, quadrature, theta = make_quadrature(case)
    value, grad = quadrature.value_and_grad(theta)
    np.testing.assert_allclose(quadrature.value(theta), value, rtol=1e-12)
    for c in range(2 if quadrature.q == 1 else 1):
        each = [logsumexp(on_grid(posterior, theta[c], k)[1]) for k in range(quadrature.n_labels)]
        np.testing.assert_allclose(value[c], np.sum(each), atol=1e-3)
    for k in range(theta.shape[1]):
        move = 1e-5 * np.eye(theta.shape[1])[k]
        ends = quadrature.value(theta + move) - quadrature.value(theta - move)
        np.testing.assert_allclose(ends / 2e-5, grad[:, k], rtol=3e-3, atol=3e-3)


@pytest.mark.parametrize("case", ["intercepts", "slopes"])
def test_effects_are_drawn_with_the_moments_of_grids(case):
    posterior, quadrature, theta = make_quadrature(case)
    d, m = quadrature.n_fixed, quadrature.n_hyper
    theta = theta[[2]]
    factor = posterior.covariances.each[0].root(theta[:, d : d + m])
    normals = np.random.default_rng(0).standard_normal((quadrature.q, 40_000, quadrature.n_labels))
    drawn = quadrature.moments(theta).draw(normals, factor)
    for label in range(quadrature.n_labels):
        u, log_density = on_grid(posterior, theta[0], label)
        share = np.exp(log_density - logsumexp(log_density))
        mean = share @ u
        covariance = (u - mean).T @ (share[:, None] * (u - mean))
        sd = np.sqrt(np.diagonal(covariance))
        np.testing.assert_allclose(drawn[:, :, label].mean(axis=1) / sd, mean / sd, atol=0.025)
        found = np.cov(drawn[:, :, label]).reshape(covariance.shape)
        np.testing.assert_allclose(
            found / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=0.04
        )
        order = np.argsort(u[:, 0], kind="stable")
        for p in (0.05, 0.95) if quadrature.q == 1 else ():
            quantile = u[order][np.searchsorted(np.cumsum(share[order]), p), 0]
            assert abs(np.mean(drawn[0, :, label] < quantile) - p) < 0.012


@pytest.mark.parametrize("rest", [0.0, 1e-250, 1e-30])
def test_moments_are_finite_where_a_node_has_all_of_the_posterior(rest):
    """As far from the mode."""
    _, quadrature, theta = make_quadrature("slopes", n_nodes=9)
    nodes = quadrature._nodes(quadrature._blocks[0], theta, False)
    share = np.full_like(nodes.share, rest)
    share[7] = 1.0
    moments = quadrature._moments(nodes._replace(share=share))
    assert all(np.isfinite(each).all() for each in moments)


def frame_of(n, n_labels, sd, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.integers(n_labels, size=n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "g": g.astype(str)})
    return frame, 0.5 * frame["x"] + sd * rng.normal(size=n_labels)[g], rng


@pytest.mark.parametrize("sd", [0.7, 0.0])
def test_draws_have_the_scale_of_exact_weights(sd):
    """Where the scale may be 0 too."""
    frame, eta, rng = frame_of(1200, 40, sd)
    model = SGLDLogisticRegression(group_effects={"g": "intercept"}, random_state=0)
    model.fit(frame, (rng.random(1200) < expit(eta)).astype(int))
    assert model.result_.plan.choices["parameterization"].value == "by_label"
    posterior = model.result_.plan.posterior
    assert isinstance(posterior, ByLabelPosterior)
    theta = posterior.reported.theta(model.posterior_.flat[::4])
    exact = LabelQuadrature(posterior.model, JointMode.of(posterior.model), 11, n_newton=4)
    log_weight = exact.value(theta) - posterior._likelihood.value(theta)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    # a share of draws that the polynomials should not have, or too few, would show
    assert 1.0 / np.square(weight).sum() > 0.98 * len(theta)
    if sd > 0.0:  # three nodes have the gradients and moments of many, after correction
        few, some, sds = exact.changed(3, 1), theta[::100], theta.std(axis=0)
        corrected = few.corrected(exact, theta.mean(axis=0, keepdims=True)).everything(some)
        found, expected = few.everything(some), exact.everything(some)
        poor, good = (np.abs((x.grad - expected.grad) * sds).max() for x in (found, corrected))
        assert good < 0.4 * poor
        moments = zip(expected.moments, found.moments, corrected.moments, strict=True)
        for each, before, after in moments:
            assert np.square(after - each).mean() < 0.2 * np.square(before - each).mean()


def test_draws_of_a_chain_do_not_depend_on_other_chains():
    frame, eta, rng = frame_of(600, 30, 0.5)
    y, draws = rng.poisson(np.exp(eta)), []
    for n_chains in (2, 4):
        model = SGLDPoissonRegressor(
            group_effects={"g": "intercept"}, n_chains=n_chains, n_draws=500, random_state=0
        )
        draws.append(model.fit(frame, y).posterior_["effect[g=25, intercept]"][:2])
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("case", CASES)
def test_blocks_of_labels_add_up(case, monkeypatch):
    _, whole, theta = make_quadrature(case, 7)
    monkeypatch.setattr(label_rows, "_ROWS", 7)
    _, parts, _ = make_quadrature(case, 7)
    assert len(parts._blocks) > len(whole._blocks) == 1
    expected, found = whole.everything(theta), parts.everything(theta)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    np.testing.assert_allclose(found.grad, expected.grad, rtol=1e-7, atol=1e-7)
    for each, moments in zip(found.moments, expected.moments, strict=True):
        np.testing.assert_allclose(each, moments, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_the_expansion_by_blocks_is_that_of_all_rows(case):
    posterior, *_ = make_quadrature(case)
    working, rng = WorkingModel(posterior), np.random.default_rng(1)
    linear = 0.3 * rng.standard_normal(posterior.n_linear)
    own = 0.3 * rng.standard_normal(posterior.n_own)
    value, gram = working.expansion(linear, own)
    theta = np.append(linear, own)[None]
    np.testing.assert_allclose(value, posterior.model.log_likelihood(theta).sum(), rtol=1e-10)
    rows = posterior.model.row_sum()
    u = rows.design.apply(rows.coefficient_map.coefficients(theta), rows.design.block(np.s_[:60]))
    predictor = u[0, 0].copy()
    score, curvature = rows.kernel.derivatives(u, 1, 2)
    weight = np.maximum(curvature[0, 0, 0], 0.0)
    expected = working.gram(weight, score[0, 0] + weight * predictor)
    np.testing.assert_allclose(gram.labels, expected.labels, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gram.cross, expected.cross, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gram.shared, expected.shared, rtol=1e-10, atol=1e-10)
