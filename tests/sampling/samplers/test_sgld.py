"""SGLD: the distribution of the discretised chain, its limits, and what steers it."""

import numpy as np
import pytest

from skbayes_sgld.posterior import (
    FixedGaussian,
    GLMPosterior,
    Normal,
)
from skbayes_sgld.sampling import (
    SGLD,
    Curvature,
    Harmonic,
    Identity,
    Matrix,
    Minibatch,
    NormClip,
    Polynomial,
    ValueClip,
    find_mode,
)
from skbayes_sgld.sampling.loop import run_chains
from tests.references.targets import NormalMean, make_run, stationary_draws, z_of_variance


@pytest.fixture(scope="module")
def target():
    return NormalMean()


@pytest.mark.parametrize("temperature", [1.0, 0.25, 4.0])
@pytest.mark.parametrize("eta_lambda", [0.1, 0.5, 1.2])
def test_euler_has_the_variance_of_the_discretised_chain(target, eta_lambda, temperature):
    run = make_run(target, step_size=eta_lambda / target.precision, temperature=temperature)
    draws = stationary_draws(run, target)
    expected = temperature / (target.precision * (1 - eta_lambda / 2))
    assert abs(z_of_variance(draws, expected, 1 - eta_lambda)) < 4


@pytest.mark.parametrize(
    "batch_size, replacement", [(1, True), (10, True), (10, False), (40, False)]
)
def test_minibatches_add_their_term_to_the_variance(target, batch_size, replacement):
    eta, lam, n = 0.3 / target.precision, target.precision, target.n_samples
    run = make_run(target, gradient=Minibatch(replacement), batch_size=batch_size, step_size=eta)
    noise = n**2 * target.row_variance / batch_size
    if not replacement:
        noise *= (n - batch_size) / (n - 1)
    expected = (1 + eta * noise / 2) / (lam * (1 - eta * lam / 2))
    assert abs(z_of_variance(stationary_draws(run, target), expected, 1 - eta * lam)) < 4


@pytest.mark.parametrize("eta_lambda", [0.2, 0.8, 1.5])
def test_leimkuhler_matthews_has_no_error_on_a_normal_target(target, eta_lambda):
    run = make_run(
        target, sampler=SGLD("leimkuhler_matthews"), step_size=eta_lambda / target.precision
    )
    draws = stationary_draws(run, target)
    # neighbouring noises are shared: the chain is an ARMA(1, 1); its variance stays 1 / lambda
    assert abs(z_of_variance(draws, 1 / target.precision, abs(1 - eta_lambda))) < 4


def test_the_mean_is_that_of_the_posterior(target):
    draws = stationary_draws(make_run(target, step_size=0.5 / target.precision), target)
    sd = np.sqrt(1 / (target.precision * 0.75))
    standard_error = sd * np.sqrt(3.0 / draws.size)
    assert abs(draws.mean() - target.y.mean()) < 4 * standard_error


def correlated_posterior():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 3)) @ np.array([[1, 0.9, 0], [0, 0.3, 0], [0, 0, 20.0]])
    y = X @ [0.5, -1.0, 0.1] + rng.standard_normal(40)
    return GLMPosterior(X, y, FixedGaussian(1.0), Normal(2.0), fit_intercept=False)


@pytest.mark.parametrize("kind", ["curvature", "matrix", "diagonal"])
def test_preconditioned_chains_sample_the_same_distribution(kind):
    posterior = correlated_posterior()
    mode = find_mode(posterior, posterior.start())
    covariance = np.linalg.inv(posterior.curvature(mode.theta))
    matrix = covariance @ np.diag([1.0, 1.3, 0.8])
    preconditioner = {
        "curvature": Curvature(),
        "matrix": Matrix(0.5 * (matrix + matrix.T)),
        "diagonal": Matrix(0.05 * np.diag(covariance)),
    }[kind]
    run = make_run(
        posterior, sampler=SGLD(), preconditioner=preconditioner, step_size=0.4, mode=mode
    )
    start = np.tile(mode.theta, (60, 1))
    thin = {"diagonal": 20}.get(kind, 4)
    draws = run_chains(run, start, n_draws=700, n_burnin=700, thin=thin, seed=3).draws
    by_chain = np.array([np.cov(chain.T) for chain in draws])
    error = by_chain.mean(0) - covariance
    standard_error = by_chain.std(0, ddof=1) / np.sqrt(len(draws))
    assert np.all(np.abs(error) < 4.5 * standard_error)


def test_one_preconditioner_gives_drift_and_noise_of_one_matrix():
    matrix = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    for given, full in [(matrix, matrix), (np.diag(matrix), np.diag(np.diag(matrix)))]:
        bound = Matrix(given).bind(3, None)
        unit = np.eye(3)
        np.testing.assert_allclose(bound.scale(unit), full, atol=1e-12)
        root = bound.sqrt(unit).T
        np.testing.assert_allclose(root @ root.T, full, atol=1e-12)
        np.testing.assert_allclose(bound.sqrt_t(unit), root, atol=1e-12)
    np.testing.assert_array_equal(Identity().bind(3, None).scale(unit), unit)


def test_draws_are_weighted_by_their_step_sizes(target):
    schedule = Polynomial(offset=6, power=0.55)
    run = make_run(target, step_size=0.01, schedule=schedule)
    chains = run_chains(run, np.zeros((2, 1)), n_draws=20, n_burnin=7, thin=3, seed=0)
    kept = 7 + 3 * np.arange(1, 21)  # the steps, counted from 1, after which a draw is kept
    np.testing.assert_allclose(chains.weights, 0.01 * (6.0 + kept) ** -0.55)


def test_the_weighted_average_of_a_decaying_run_is_the_posterior_mean(target):
    run = make_run(target, step_size=0.5 / target.precision, schedule=Harmonic(t0=20))
    start = np.tile(target.y.mean(), (400, 1))
    chains = run_chains(run, start, n_draws=400, seed=2)
    means = np.average(chains.draws[..., 0], axis=1, weights=chains.weights)
    assert abs(means.mean() - target.y.mean()) < 4 * means.std() / np.sqrt(len(means))


def test_clipping_bounds_the_move_and_is_counted(target):
    start = np.array([[1e4], [target.y.mean()]])
    for clip in (NormClip(threshold=3.0), ValueClip(threshold=3.0)):
        run = make_run(target, step_size=1e-3, clip=clip, temperature=1e-12)
        chains = run_chains(run, start, n_draws=10, seed=0)
        moved = np.diff(chains.draws[0, :, 0])
        np.testing.assert_allclose(moved, -3e-3, atol=1e-5)
        np.testing.assert_array_equal(chains.clipped, [1.0, 0.0])
