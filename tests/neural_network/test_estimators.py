"""The network estimators against posteriors computed otherwise, and what they promise."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skbayes_sgld import BayesByBackpropRegressor, SGLDMLPClassifier, SGLDMLPRegressor, sample
from skbayes_sgld.diagnostics import effective_sample_size, potential_scale_reduction
from skbayes_sgld.likelihoods import FixedNormalNoise, NormalNoise
from skbayes_sgld.neural_network import MLPPosterior
from skbayes_sgld.neural_network.diagnosis import diagnose_outputs
from skbayes_sgld.neural_network.ensemble import _probe_gradient
from skbayes_sgld.neural_network.posterior import Units
from skbayes_sgld.priors import HalfNormal, InverseGamma, Normal
from tests.references.closed_forms import importance_sampling, laplace_fit

# short runs from several modes: the estimators say so, and the tests have errors of their own
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, D = 40, 2
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * [3.0, 0.1] + [10.0, -1.0]
Y = 100.0 + X @ [2.0, 30.0] + 4.0 * RNG.standard_normal(N)
LABELS = (np.random.default_rng(1).random(N) < stats.norm.cdf((Y - 90.0) / 5.0)).astype(int)
LINEAR = {"hidden_layer_sizes": (), "random_state": 0}
SHORT = {"n_draws": 100, "n_burnin": 300, "thin": 3, "n_chains": 3, "random_state": 0}


def standardised(X):
    return np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])


def function_draws(model, rows):
    """Draws of the first output ``(C, S, n)``, from the weights that the user is given."""
    draws = model.sample_posterior()
    a = np.broadcast_to(rows, (len(draws.coefs[0]), *rows.shape))
    for w, b in zip(draws.coefs[:-1], draws.intercepts[:-1], strict=True):
        a = np.tanh(a @ w + b[:, None])
    f = (a @ draws.coefs[-1] + draws.intercepts[-1][:, None])[..., 0]
    return f.reshape(*model.posterior_.values.shape[:2], len(rows))


def assert_moments(draws, mean, sd, extra=0.0):
    """Check means and sds of draws ``(C, S, n)`` by their Monte Carlo standard errors."""
    flat = draws.reshape(-1, draws.shape[2])
    ess = effective_sample_size(draws)
    assert np.all(ess > 100)
    assert np.all(np.abs(flat.mean(axis=0) - mean) < (4.5 / np.sqrt(ess) + extra) * sd)
    assert np.all(np.abs(np.log(flat.std(axis=0) / sd)) < 4.5 / np.sqrt(2 * ess) + extra)


def linear_posterior(X, y, noise):
    """Mean and covariance of (coef, intercept) of the standardised linear model."""
    A = standardised(X)
    covariance = np.linalg.inv(A.T @ A / noise + np.diag(np.r_[np.full(A.shape[1] - 1, D), 1.0]))
    return covariance @ A.T @ y / noise, covariance


# ---- truth ------------------------------------------------------------------------------------


def test_without_hidden_layers_the_function_has_the_closed_form():
    noise = 16.0
    model = SGLDMLPRegressor(noise_variance=noise, thin=40, **LINEAR).fit(X, Y)
    mean, covariance = linear_posterior(X, (Y - Y.mean()) / Y.std(), noise / Y.var())
    A = standardised(X)
    sd = Y.std() * np.sqrt(np.einsum("np,pq,nq->n", A, covariance, A))
    assert_moments(function_draws(model, X), Y.mean() + Y.std() * A @ mean, sd)
    std = model.predict(X, return_std=True)[1]
    np.testing.assert_allclose(std, np.sqrt(sd**2 + noise), rtol=0.02)


@pytest.mark.slow
def test_inferred_noise_has_the_distribution_that_quadrature_gives():
    # given the noise the model is closed; the noise itself is one dimension, in units of y
    model = SGLDMLPRegressor(noise_prior=HalfNormal(2.0), thin=40, n_draws=120, **LINEAR).fit(X, Y)
    A, y = standardised(X), (Y - Y.mean()) / Y.std()
    kernel = A @ np.diag([1 / D] * D + [1.0]) @ A.T
    gamma = np.linspace(np.log(1.0), np.log(200.0), 400)
    log_weight = np.array(
        [
            stats.multivariate_normal(None, kernel + v / Y.var() * np.eye(N)).logpdf(y)
            for v in np.exp(gamma)
        ]
    )
    log_weight += stats.halfnorm(scale=2.0).logpdf(np.exp(gamma / 2)) + gamma / 2
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    mean = w @ np.exp(gamma)
    sd = np.sqrt(w @ (np.exp(gamma) - mean) ** 2)
    assert_moments(model.posterior_["noise_variance"][..., None], mean, sd, extra=0.02)


def test_without_hidden_layers_log_odds_agree_with_importance_sampling():
    A, sign = standardised(X), 2.0 * LABELS - 1.0

    def log_density(theta):
        prior = -0.5 * (D * (theta[:, :-1] ** 2).sum(axis=1) + theta[:, -1] ** 2)
        return prior - np.logaddexp(0.0, -sign * (theta @ A.T)).sum(axis=1)

    mode, covariance = laplace_fit(log_density, D + 1)
    reference = importance_sampling(
        log_density, mode, covariance, n_draws=50_000, transform=lambda t: t @ A.T
    )
    model = SGLDMLPClassifier(thin=40, **LINEAR).fit(X, LABELS)
    assert_moments(function_draws(model, X), reference.mean, reference.sd, extra=0.02)


@pytest.mark.slow
def test_a_small_network_agrees_with_importance_sampling_from_its_prior():
    # two hidden units, seven parameters, few rows: the prior itself is a good proposal
    rng = np.random.default_rng(2)
    x = np.linspace(-1.5, 1.5, 8)[:, None]
    y = np.array([-0.8, -1.3, -0.4, -0.1, 0.2, 1.4, 0.6, 0.4])
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    noise, grid = 0.5, np.array([[-2.5], [-1.0], [0.0], [1.0], [2.5]])
    z = np.sqrt(2) * rng.standard_normal((7, 400_000))
    z[4:6] /= np.sqrt(2)

    def network(rows):
        hidden = (np.maximum(rows * z[j] + z[2 + j], 0.0) * z[4 + j] for j in (0, 1))
        return sum(hidden) + z[6]

    log_weight = -0.5 * ((network(x) - y[:, None]) ** 2).sum(axis=0) / noise
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    assert 1 / (w**2).sum() > 5000
    f = network(grid)
    mean, sd = f @ w, np.sqrt((f - (f @ w)[:, None]) ** 2 @ w)
    model = SGLDMLPRegressor(
        hidden_layer_sizes=2,
        activation="relu",
        noise_variance=noise,
        n_chains=32,
        n_draws=100,
        random_state=0,
    ).fit(x, y)
    draws = model._predictor()(grid)[0].T.reshape(32, 100, 5)
    assert_moments(draws, mean, sd, extra=0.03)


@pytest.mark.slow
def test_minibatches_leave_the_posterior_as_it_was():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((5000, D))
    y = rows @ [1.0, -1.0] + rng.standard_normal(5000)
    model = SGLDMLPRegressor(noise_variance=1.0, thin=15, n_draws=120, **LINEAR).fit(rows, y)
    assert model.batch_size_ == 2000 and 0.0 < model.step_size_ < 0.25
    mean, covariance = linear_posterior(rows, (y - y.mean()) / y.std(), 1.0 / y.var())
    A = standardised(rows)[:20]
    sd = y.std() * np.sqrt(np.einsum("np,pq,nq->n", A, covariance, A))
    draws = function_draws(model, rows[:20])
    assert_moments(draws, y.mean() + y.std() * A @ mean, sd, extra=0.1)


def test_part_of_the_rows_gives_the_metric_the_gradient_of_all(monkeypatch):
    monkeypatch.setattr("skbayes_sgld.neural_network.ensemble._ALL_ROWS", 10)
    posterior = MLPPosterior(X, Y, FixedNormalNoise(1.0), Normal(), hidden_layer_sizes=(2,))
    theta = 0.1 * RNG.standard_normal((1, posterior.n_params))
    parts = np.array([_probe_gradient(posterior, 1, seed)(theta)[0] for seed in range(1000)])
    error = parts.std(axis=0) / np.sqrt(1000)
    assert np.all(np.abs(parts.mean(axis=0) - posterior.grad(theta)[0]) < 4.5 * error + 1e-9)


# ---- what it is for ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_noise_is_not_fitted_away():
    # more weights than rows: a mode with the noise free interpolates, and chains stay there
    rng = np.random.default_rng(1)
    rows = rng.random((80, 10))
    y = 10.0 * np.sin(np.pi * rows[:, 0] * rows[:, 1]) + 5.0 * rows[:, 2]
    y += rng.standard_normal(80)
    model = SGLDMLPRegressor(hidden_layer_sizes=(20,), n_draws=60, random_state=0).fit(rows, y)
    test = rng.random((400, 10))
    truth = 10.0 * np.sin(np.pi * test[:, 0] * test[:, 1]) + 5.0 * test[:, 2]
    truth += rng.standard_normal(400)
    low, high = model.predict_interval(test, coverage=0.9).T
    assert 0.8 < np.mean((low < truth) & (truth < high)) < 0.98


@pytest.mark.parametrize("seed", [3, 8])
def test_no_chain_is_caught_at_a_noise_variance_that_is_far_too_large(seed):
    # steps that suit the noise variance of y are unstable at that of the residuals, and an unstable
    # chain raises the noise variance: the metric has to be measured while it falls
    rng = np.random.default_rng(30_000 + seed)
    x = rng.uniform(-2.0, 2.0, (30, 1))
    y = np.sin(2.0 * x[:, 0]) + 0.05 * rng.standard_normal(30)
    model = SGLDMLPRegressor(n_draws=20, random_state=seed).fit(x, y)
    assert np.all(model.posterior_["noise_variance"].mean(axis=1) < 0.1 * y.var())


# ---- predictions and draws --------------------------------------------------------------------

FITS = {
    "sgld": SGLDMLPRegressor(hidden_layer_sizes=(8,), **SHORT),
    "backprop": BayesByBackpropRegressor(hidden_layer_sizes=(8, 5), max_iter=300, random_state=0),
}


@pytest.fixture(scope="module")
def network():
    return clone(FITS["sgld"]).fit(X, Y)


@pytest.mark.parametrize("name", FITS)
def test_predictions_and_table_are_of_the_weights_in_the_users_units(name, network):
    model = network if name == "sgld" else clone(FITS[name]).fit(X, Y)
    f = function_draws(model, X).reshape(-1, N)
    noise = model.sample_posterior().noise_variance
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, f.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(f.var(axis=0) + noise.mean()), rtol=1e-9)
    some = model.sample_posterior(20, random_state=0)
    assert some.coefs[0].shape == (20, D, 8) and some.intercepts[-1].shape == (20, 1)
    attrs = model.summary().attrs
    if name == "backprop":
        assert attrs["approximation"].max_iter == 300
    else:
        assert attrs["step_size"] == model.step_size_ == 0.25
        assert attrs["temperature"] == 1.0 and attrs["thin"] == 3
        assert "by Adam, from random weights" in str(model.result_.plan)


def test_the_result_of_a_network_is_the_result_of_any_model(network):
    result, theta = network.result_, network.result_.theta.reshape(300, -1)
    assert result.values is network.posterior_.values
    assert result.problems == tuple(network.diagnose().problems)
    # in the units of X and y, and back
    layout = {"hidden_layer_sizes": (8,), "units": Units(X.mean(0), X.std(0), Y.mean(), Y.std())}
    posterior = MLPPosterior(X, Y, NormalNoise(), Normal(), InverseGamma(2.0, 0.5), **layout)
    np.testing.assert_allclose(posterior.reported.values(theta), result.draws.flat, rtol=1e-10)
    np.testing.assert_allclose(posterior.reported.theta(result.draws.flat), theta, atol=1e-10)
    # sample() takes the same plan
    own = sample(posterior, n_draws=5, n_burnin=20, thin=1, random_state=0, check_gradient=False)
    assert own.choices["init"].value == "training" and own.predictions is not None


def test_a_chain_is_the_same_to_the_bit_beside_any_number_of_others(network):
    one = clone(network).set_params(n_chains=1).fit(X, Y).posterior_.values
    three = network.posterior_.values
    np.testing.assert_array_equal(one, three[:1])
    assert not np.any(three[0] == three[1])


# ---- what the user is told --------------------------------------------------------------------


@pytest.mark.parametrize("name, y", [("sgld", Y), ("labels", np.digitize(Y, [85.0, 95.0]))])
def test_the_diagnosis_is_of_the_predictions_at_the_rows_that_are_given(name, y):
    kind = SGLDMLPRegressor if name == "sgld" else SGLDMLPClassifier
    model = kind(hidden_layer_sizes=(3,), **SHORT).fit(X, y)
    rows = X[:7]
    found = model.diagnose(rows)
    assert "95 % have" in repr(found)
    by_draw = model._predictor()(rows)  # (K, n, S)
    if name == "labels":
        by_draw -= by_draw.mean(axis=0)  # what is added to all outputs changes no probability
    expected = potential_scale_reduction(by_draw[-1].T.reshape(3, 100, 7))
    last = len(by_draw) - 1
    np.testing.assert_allclose(found.table["r_hat"].xs(last, level="output"), expected)
    assert found.table.index.nlevels == 2
    assert len(found.table) == 7 * (1 if name == "sgld" else 3)
    weights = model.summary()["r_hat"].max()
    assert model.diagnose().r_hat < weights  # which label switching spoils


# the module ignores the warning whose absence is tested here
@pytest.mark.slow
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_the_defaults_do_not_warn_where_classes_are_nearly_separated():
    rows, labels = load_iris(return_X_y=True)
    SGLDMLPClassifier(hidden_layer_sizes=(20,), random_state=0).fit(scale(rows), labels)


def test_problems_of_draws_of_predictions_are_named():
    def problems(outputs, clipped=0.0):
        return diagnose_outputs(outputs[..., None], clipped).problems

    rng = np.random.default_rng(0)
    apart = rng.standard_normal((4, 200, 5)) + 3.0 * np.arange(4)[:, None, None]
    assert "R-hat of the predictions" in problems(apart)[0]
    assert problems(np.cumsum(rng.standard_normal((4, 200, 5)), axis=1))  # slow chains
    assert problems(rng.standard_normal((4, 200, 5))) == []
    assert "too few" in problems(rng.standard_normal((4, 3, 5)))[0]
    assert "bounded on 5.0%" in problems(rng.standard_normal((4, 200, 5)), 0.05)[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")  # as above
def test_weights_that_disagree_are_not_a_problem_where_predictions_agree():
    model = SGLDMLPRegressor(
        hidden_layer_sizes=2, activation="relu", noise_variance=Y.var(), n_chains=8, random_state=0
    )
    model.fit(X, Y)
    assert model.summary()["r_hat"].max() > 1.2


def test_a_step_that_is_too_large_is_told():
    with pytest.warns(ConvergenceWarning, match=r"gradient was bounded.*step_size='auto'"):
        clone(FITS["sgld"]).set_params(step_size=4.0).fit(X, Y)
