"""The posterior of networks: gradients, densities and layout against independent computations."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skbayes_sgld.likelihoods import Bernoulli, Categorical, FixedNormalNoise, NormalNoise
from skbayes_sgld.neural_network.equilibration import row_norms
from skbayes_sgld.neural_network.posterior import MLPPosterior, Network
from skbayes_sgld.posterior import Posterior
from skbayes_sgld.priors import ConjugateNormal, Flat, InverseGamma, Laplace, Normal
from tests.numeric import assert_derivative, derivative_by_chain

N, D = 11, 3


def make(likelihood, hidden=(5,), prior=None, **kwargs):
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
        sample_weight=weight,
        **kwargs,
    )


def some_theta(posterior, n_chains=3):
    return np.random.default_rng(1).standard_normal((n_chains, posterior.n_params))


def assert_gradient(density, grad, theta):
    expected = derivative_by_chain(density, theta, h=1e-6)
    assert_derivative(grad(theta), expected, "gradient", rtol=1e-6)


@pytest.mark.parametrize(
    "likelihood, prior, hidden, activation",
    [
        (NormalNoise(), Normal(1.3, 0.1), (4, 3), "tanh"),
        (NormalNoise(), Laplace(0.5), (5,), "tanh"),
        (NormalNoise(), ConjugateNormal(2.0), (5,), "tanh"),
        (FixedNormalNoise(0.7), Normal(1.3, 0.1), (), "tanh"),
        (Bernoulli(), Normal(1.3, 0.1), (5,), "tanh"),
        (Categorical(4), Normal(1.3, 0.1), (4, 3), "relu"),
    ],
    ids=["noise", "laplace", "conjugate", "known noise", "classes of two", "classes of four"],
)
def test_gradients_are_those_of_the_densities(likelihood, prior, hidden, activation):
    posterior = make(likelihood, hidden, prior, activation=activation)
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


def test_blocks_of_rows_add_up(monkeypatch):
    posterior = make(Categorical(4))
    theta = some_theta(posterior)
    expected = posterior.value_and_grad(theta), posterior.log_likelihood(theta)
    monkeypatch.setattr("skbayes_sgld.neural_network.posterior._BLOCK", 20)  # four rows of 11
    got = posterior.value_and_grad(theta), posterior.log_likelihood(theta)
    for a, b in zip((*got[0], got[1]), (*expected[0], expected[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "kind, hidden, activation",
    [
        ("regression", (4, 3), "relu"),
        ("two classes", (5,), "relu"),
        ("four classes", (4, 3), "tanh"),
    ],
)
def test_likelihoods_are_those_of_scikit_learns_network(kind, hidden, activation):
    likelihood = {"regression": NormalNoise(), "two classes": Bernoulli()}.get(kind, Categorical(4))
    posterior = make(likelihood, hidden, activation=activation)
    cls = MLPRegressor if kind == "regression" else MLPClassifier
    model = cls(hidden_layer_sizes=hidden, activation=activation, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of three iterations
        model.fit(posterior.X, posterior.y)
    layers = zip(model.coefs_, model.intercepts_, strict=True)
    theta = np.concatenate([np.append(w.ravel(), b) for w, b in layers])[None]
    if likelihood.infers_noise:
        theta = np.append(theta, [[0.3]], axis=1)
    if kind == "regression":
        rows = stats.norm(model.predict(posterior.X), np.exp(0.15)).logpdf(posterior.y)
    else:
        rows = np.log(model.predict_proba(posterior.X)[np.arange(N), posterior.y.astype(int)])
    np.testing.assert_allclose(posterior.log_likelihood(theta)[0], posterior.weight * rows)


@pytest.mark.parametrize(
    "likelihood, hidden, gains",
    [
        (NormalNoise(), (5, 2), [5 / 3, 5 / 3, 5 / 3]),
        (Categorical(4), (5, 2), [0.5, 5 / 3, 20.0]),
        (Categorical(4), (), [1.0]),
    ],
    ids=["noise", "classes", "no hidden layer"],
)
def test_prior_scales_follow_the_inputs_and_the_gain(likelihood, hidden, gains):
    posterior = make(likelihood, hidden, Normal(0.7))
    sizes, scales = posterior.network.sizes, []
    for gain, n_in, n_out in zip(gains, sizes[:-1], sizes[1:], strict=True):
        scales += [gain / np.sqrt(n_in)] * (n_in * n_out) + [gain] * n_out
    theta = some_theta(posterior)
    exact = stats.norm(0.0, 0.7 * np.array(scales))
    expected = exact.logpdf(theta[:, : len(scales)]).sum(axis=1)
    if likelihood.infers_noise:
        expected += posterior.noise_prior.log_density(theta[:, -1])
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


def test_a_chain_does_not_see_the_others():
    posterior = make(NormalNoise(), (5, 4))
    theta = some_theta(posterior, 6)
    together = posterior.grad(theta)
    for c in (1, 2, 5):
        np.testing.assert_array_equal(posterior.grad(theta[:c]), together[:c])


@pytest.mark.parametrize(
    "settings, match",
    [
        ({"prior": Flat()}, r"(?s)Flat\(\).*improper.*'normal'"),
        # one weight's prior is widened to all of them; a matrix would be as wide as one
        ({"prior": Normal(covariance=[[4.0]])}, "matrix of covariances.*give a scale"),
        ({"prior": Normal(scale=[1.0, 2.0])}, r"prior\.scale.*\(2,\)"),
        ({"activation": "sine"}, r"activation='sine'.*'relu', 'tanh'"),
    ],
)
def test_what_makes_no_posterior_is_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        make(NormalNoise(), **settings)


def test_no_row_norm_is_below_that_of_the_spread():
    flat = row_norms(np.zeros_like, np.ones((2, 3)), np.ones(3), seed=0)
    np.testing.assert_array_equal(flat, np.ones((2, 3)))


def test_rounded_gradients_are_the_exact_ones_to_single_precision():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((2400, 3)), rng.standard_normal(2400)
    exact = MLPPosterior(X, y, FixedNormalNoise(0.3), Normal(), hidden_layer_sizes=(7, 5))
    rounded = exact.rounded()
    theta = exact.random_start(rng.standard_normal((3, exact.n_params)))
    for idx in (None, rng.integers(0, 60, (3, 20))):
        ours, theirs = (p.grad_log_likelihood(theta, idx) for p in (rounded, exact))
        assert ours.dtype == np.float64
        error = np.abs(ours - theirs).max() / np.abs(theirs).max()
        assert 1e-9 < error < 1e-5  # not exact, and not far
    np.testing.assert_array_equal(rounded.log_density(theta), exact.log_density(theta))
