"""The posterior of networks: gradients, densities and layout against independent computations."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skbayes_sgld.posterior import (
    Bernoulli,
    Categorical,
    ConjugateNormal,
    FixedGaussian,
    Flat,
    Gaussian,
    GLMPosterior,
    InverseGamma,
    Laplace,
    Normal,
    Posterior,
    StudentT,
)
from skbayes_sgld.posterior.mlp import MLPPosterior, Network
from skbayes_sgld.sampling.equilibration import equilibrate, row_norms
from tests.numeric import assert_derivative, derivative_by_chain

N, D = 11, 3
LIKELIHOODS = {
    "gaussian": Gaussian(),
    "fixed_gaussian": FixedGaussian(0.7),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(4),
}
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
every_shape = pytest.mark.parametrize("hidden", [(), (5,), (4, 3)], ids=str)


def make(likelihood, hidden=(5,), prior=None, weighted=True, **kwargs):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((N, D)), rng.uniform(0.5, 2.0, N)
    labels = np.arange(N) % max(likelihood.n_predictors, 2)
    y = rng.standard_normal(N) if likelihood.quadratic else labels.astype(float)
    noise = InverseGamma(2.0, 0.5) if likelihood.infers_noise else None
    return MLPPosterior(
        X,
        y,
        likelihood,
        prior or Normal(1.3, 0.1),
        noise,
        hidden_layer_sizes=hidden,
        sample_weight=weight if weighted else None,
        **kwargs,
    )


def some_theta(posterior, n_chains=3):
    return np.random.default_rng(1).standard_normal((n_chains, posterior.n_params))


def assert_gradient(density, grad, theta):
    expected = derivative_by_chain(density, theta, h=1e-6)
    assert_derivative(grad(theta), expected, "gradient", rtol=1e-6)


@every_likelihood
@every_shape
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
def test_gradients_are_those_of_the_densities(likelihood, hidden, activation, weighted):
    posterior = make(likelihood, hidden, activation=activation, weighted=weighted)
    theta = some_theta(posterior)
    idx = np.random.default_rng(2).integers(0, N, (len(theta), 6))
    assert isinstance(posterior, Posterior)
    assert_gradient(posterior.log_density, posterior.grad, theta)
    assert_gradient(posterior.log_prior, posterior.grad_log_prior, theta)
    assert_gradient(
        lambda t: posterior.log_likelihood(t, idx).sum(axis=1),
        lambda t: posterior.grad_log_likelihood(t, idx),
        theta,
    )
    value, grad = posterior.value_and_grad(theta)
    np.testing.assert_allclose(value, posterior.log_density(theta))
    np.testing.assert_allclose(grad, posterior.grad(theta), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("prior", [Laplace(0.5), StudentT(3.0, 0.5), ConjugateNormal(2.0)], ids=str)
def test_every_proper_prior_serves(prior):
    posterior = make(Gaussian(), prior=prior)
    assert_gradient(posterior.log_prior, posterior.grad_log_prior, some_theta(posterior))


@pytest.mark.parametrize("block", [1, 4])
def test_blocks_of_rows_add_up(monkeypatch, block):
    posterior = make(Categorical(4))
    theta = some_theta(posterior)
    expected = posterior.value_and_grad(theta), posterior.log_likelihood(theta)
    monkeypatch.setattr("skbayes_sgld.posterior.mlp._BLOCK", block * 5)
    got = posterior.value_and_grad(theta), posterior.log_likelihood(theta)
    for a, b in zip((*got[0], got[1]), (*expected[0], expected[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("hidden", [(5,), (4, 3)], ids=str)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("kind", ["regression", "two classes", "four classes"])
def test_outputs_are_those_of_scikit_learns_network(hidden, activation, kind):
    likelihood = {"regression": Gaussian(), "two classes": Bernoulli()}.get(kind, Categorical(4))
    posterior = make(likelihood, hidden, activation=activation)
    cls = MLPRegressor if kind == "regression" else MLPClassifier
    model = cls(hidden_layer_sizes=hidden, activation=activation, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(posterior.X, posterior.y)
    layers = zip(model.coefs_, model.intercepts_, strict=True)
    theta = np.concatenate([np.append(w.ravel(), b) for w, b in layers])[None]
    if likelihood.infers_noise:
        theta = np.append(theta, [[0.3]], axis=1)
    u = posterior.predict(theta, posterior.X)[0]
    if kind == "regression":
        np.testing.assert_allclose(u[0], model.predict(posterior.X))
        np.testing.assert_allclose(u[1], 0.3)
    elif kind == "two classes":
        np.testing.assert_allclose(1 / (1 + np.exp(-u[0])), model.predict_proba(posterior.X)[:, 1])
    else:
        p = np.exp(u) / np.exp(u).sum(axis=0)
        np.testing.assert_allclose(p.T, model.predict_proba(posterior.X))


@every_likelihood
def test_without_hidden_layers_it_is_the_linear_model(likelihood):
    network, K = make(likelihood, ()), likelihood.n_predictors
    linear = GLMPosterior(
        network.X,
        network.y,
        likelihood,
        Normal(),
        network.noise_prior,
        sample_weight=network.weight,
    )
    theta = some_theta(network)
    width = (D + 1) * K
    coef, intercept = theta[:, : D * K].reshape(-1, D, K), theta[:, D * K : width]
    by_class = np.concatenate([coef.swapaxes(1, 2), intercept[..., None]], axis=2)
    other = np.concatenate([by_class.reshape(len(theta), width), theta[:, width:]], axis=1)
    np.testing.assert_allclose(network.log_likelihood(theta), linear.log_likelihood(other))
    # the prior of a coefficient over D inputs has 1 / sqrt(D) of the scale
    exact = stats.norm(0.1, np.r_[np.full(D * K, 1.3 / np.sqrt(D)), np.full(K, 1.3)])
    expected = exact.logpdf(theta[:, :width]).sum(axis=1)
    if likelihood.infers_noise:
        expected += network.noise_prior.log_density(theta[:, -1])
    assert np.ptp(network.log_prior(theta) - expected) < 1e-12


@pytest.mark.parametrize(
    "likelihood, first, last", [(FixedGaussian(1.0), 5 / 3, 5 / 3), (Categorical(4), 0.5, 20.0)]
)
def test_prior_scales_follow_the_inputs_and_the_gain(likelihood, first, last):
    posterior = make(likelihood, (5, 2), Normal(0.7))
    K, tanh = likelihood.n_predictors, 5 / 3
    parts = [
        np.full(D * 5, first / np.sqrt(D)),
        np.full(5, first),
        np.full(10, tanh / np.sqrt(5)),
        np.full(2, tanh),
        np.full(2 * K, last / np.sqrt(2)),
        np.full(K, last),
    ]
    theta = some_theta(posterior)
    expected = stats.norm(0.0, 0.7 * np.concatenate(parts)).logpdf(theta).sum(axis=1)
    assert np.ptp(posterior.log_prior(theta) - expected) < 1e-12


def test_names_say_which_weight_stands_where():
    network = Network((2, 3, 1))
    theta = np.arange(network.n_params, dtype=float)[None]
    coefs, intercepts = network.split(theta)
    names = network.names(["age", "mass"])
    assert names[int(coefs[0][0, 1, 2])] == "weight[0, mass, 2]"
    assert names[int(intercepts[0][0, 1])] == "bias[0, 1]"
    assert names[int(coefs[1][0, 2, 0])] == "weight[1, 2, 0]"
    assert len(set(names)) == network.n_params == 13


@every_likelihood
def test_a_chain_does_not_see_the_others(likelihood):
    posterior = make(likelihood, (5, 4))
    theta = some_theta(posterior, 6)
    together = posterior.grad(theta)
    for c in (1, 2, 5):
        np.testing.assert_array_equal(posterior.grad(theta[:c]), together[:c])


def test_what_makes_no_posterior_is_refused():
    with pytest.raises(ValueError, match=r"(?s)Flat\(\).*improper.*'normal'"):
        make(Gaussian(), prior=Flat())


def test_a_matrix_of_covariances_is_refused():
    # one weight's prior is widened to all of them; a matrix would be as wide as one
    with pytest.raises(ValueError, match="matrix of covariances.*give a scale"):
        make(Gaussian(), prior=Normal(covariance=[[4.0]]))
    with pytest.raises(ValueError, match=r"prior\.scale.*\(2,\)"):
        make(Gaussian(), prior=Normal(scale=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"activation='sine'.*'relu', 'tanh'"):
        make(Gaussian(), activation="sine")


# ---- the metric -------------------------------------------------------------------------------


def quadratic(n_chains, n_params, seed=0):
    """Symmetric matrices, one a chain, neither positive nor well scaled."""
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((n_chains, n_params, n_params))
    H = (H + H.swapaxes(1, 2)) * 10.0
    return H, lambda theta: -np.einsum("cpq,cq->cp", H, theta)


def test_row_norms_are_those_of_the_hessian_in_units_of_the_spread(monkeypatch):
    monkeypatch.setattr("skbayes_sgld.sampling.equilibration._PROBES", 2000)
    H, gradient = quadratic(2, 6)
    spread = np.array([0.2, 1.0, 3.0, 1.0, 0.5, 2.0])
    norms = row_norms(gradient, np.ones((2, 6)), spread, seed=0)
    expected = np.linalg.norm(spread[:, None] * H * spread, axis=2)
    # the square of a norm is a mean of 2,000 squares of normals
    np.testing.assert_allclose(norms, expected, rtol=4 * np.sqrt(0.5 / 2000))


def test_no_row_norm_is_below_that_of_the_spread():
    flat = row_norms(np.zeros_like, np.ones((2, 3)), np.ones(3), seed=0)
    np.testing.assert_array_equal(flat, np.ones((2, 3)))


def test_the_steepest_direction_of_the_metric_has_curvature_one():
    H, gradient = quadratic(3, 6)
    spread = np.array([0.2, 1.0, 3.0, 1.0, 0.5, 2.0])
    norms = row_norms(gradient, np.ones((3, 6)), spread, seed=0)
    metric = equilibrate(gradient, np.ones((3, 6)), spread, norms)
    roots = metric.sqrt(np.ones((3, 6)))
    np.testing.assert_allclose(metric.scale(np.ones((3, 6))), roots**2)
    np.testing.assert_array_equal(metric.sqrt(np.ones((3, 2, 6))), np.stack([roots, roots], 1))
    largest = np.abs(np.linalg.eigvalsh(roots[:, :, None] * H * roots[:, None])).max(axis=1)
    assert np.all((largest > 0.99) & (largest < 1.15))  # power iteration comes from below


def test_rounded_gradients_are_the_exact_ones_to_single_precision():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((2400, 3)), rng.standard_normal(2400)
    exact = MLPPosterior(X, y, FixedGaussian(0.3), Normal(), hidden_layer_sizes=(7, 5))
    rounded = exact.rounded()
    theta = exact.random_start(rng.standard_normal((3, exact.n_params)))
    for idx in (None, rng.integers(0, 60, (3, 20))):
        ours, theirs = (p.grad_log_likelihood(theta, idx) for p in (rounded, exact))
        assert ours.dtype == np.float64
        error = np.abs(ours - theirs).max() / np.abs(theirs).max()
        assert 1e-9 < error < 1e-5  # not exact, and not far
    np.testing.assert_array_equal(rounded.log_density(theta), exact.log_density(theta))
