"""SGLD: the distribution of the discretised chain, and the bound of its gradients."""

import numpy as np
import pytest
from scipy.special import expit, polygamma
from scipy.stats import loggamma, skew

from skbayes_sgld import sample
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.own_models import FunctionPosterior, as_posterior
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Laplace, Normal
from skbayes_sgld.sampling import SGLD, Minibatch, NormClip, Polynomial, ValueClip
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Diagonal
from tests.references.targets import NormalMean, make_run, stationary_draws, z_of_variance

TARGET = NormalMean()
LAM, N = TARGET.precision, TARGET.n_samples


@pytest.mark.parametrize(
    ("integrator", "eta_lambda", "temperature"),
    [
        ("euler", 0.1, 0.25),
        ("euler", 0.5, 1.0),
        ("euler", 1.2, 4.0),
        ("leimkuhler_matthews", 0.2, 1.0),
        ("leimkuhler_matthews", 1.5, 4.0),
    ],
)
def test_a_chain_has_the_mean_of_the_posterior_and_the_variance_of_its_steps(
    integrator, eta_lambda, temperature
):
    run = make_run(
        TARGET,
        sampler=SGLD(integrator),
        step_size=eta_lambda / LAM,
        temperature=temperature,
    )
    draws = stationary_draws(run, TARGET, n_draws=2000)
    # neighbouring noises of Leimkuhler and Matthews are shared: their variance stays 1 / lambda
    expected = temperature / (LAM * (1 - eta_lambda / 2 if integrator == "euler" else 1.0))
    assert abs(z_of_variance(draws, expected, abs(1 - eta_lambda))) < 4
    # of independent draws' worth of an AR(1) chain
    error = np.sqrt(expected * max(2 / eta_lambda - 1, 1) / draws.size)
    assert abs(draws.mean() - TARGET.y.mean()) < 4 * error


@pytest.mark.parametrize("n_chains", [1, 3])
@pytest.mark.parametrize("prior", [Normal(0.5), Normal(0.5, location=1.0), Laplace(0.5)])
def test_steps_on_batches_are_those_of_welling_and_teh(prior, n_chains):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), prior, fit_intercept=False)
    variances = np.array([0.5, 1.0, 2.0])
    gradient = Minibatch().bind(posterior, None)
    dynamics, state = Dynamics(gradient, Diagonal(variances)), {"theta": np.zeros((n_chains, 3))}
    idx, noise = rng.integers(0, 40, (4, n_chains, 8)), rng.standard_normal((4, n_chains, 3))
    for eta, rows, normals, batch in zip(
        [0.1, 0.1, 0.3, 0.01], idx, noise, gradient.batches(idx), strict=True
    ):
        theta = state["theta"].copy()
        residual = y[rows] - expit(np.einsum("cbd,cd->cb", X[rows], theta))
        slope = (
            np.sign(theta) / -0.5 if isinstance(prior, Laplace) else (prior.location - theta) * 4
        )
        estimate = 40 / 8 * np.einsum("cbd,cb->cd", X[rows], residual) + slope
        SGLD().step(state, eta, normals, batch, dynamics)
        np.testing.assert_allclose(
            state["theta"], theta + eta * variances * estimate + normals, rtol=1e-12
        )


@pytest.mark.parametrize("batch_size, replacement", [(1, True), (10, True), (40, False)])
def test_minibatches_add_their_term_to_the_variance(batch_size, replacement):
    eta = 0.3 / LAM
    run = make_run(TARGET, gradient=Minibatch(replacement), batch_size=batch_size, step_size=eta)
    noise = N**2 * TARGET.row_variance / batch_size
    if not replacement:
        noise *= (N - batch_size) / (N - 1)
    expected = (1 + eta * noise / 2) / (LAM * (1 - eta * LAM / 2))
    draws = stationary_draws(run, TARGET, n_draws=2000)
    assert abs(z_of_variance(draws, expected, 1 - eta * LAM)) < 4


@pytest.mark.parametrize("clip", [NormClip(threshold=3.0), ValueClip(threshold=3.0)])
def test_clipping_bounds_the_move_and_is_counted(clip):
    start = np.array([[1e4], [TARGET.y.mean()]])
    run = make_run(TARGET, step_size=1e-3, clip=clip, temperature=1e-12)
    chains = run_chains(run, start, n_draws=10, seed=0)
    np.testing.assert_allclose(np.diff(chains.draws[0, :, 0]), -3e-3, atol=1e-5)
    np.testing.assert_array_equal(chains.clipped, [1.0, 0.0])


def log_gamma(shape):
    """Density of the logarithm of a gamma variable; a shape of 12 has a skewness of -0.3."""
    return FunctionPosterior(
        lambda x: (shape * x - np.exp(x))[:, 0], lambda x: shape - np.exp(x), n_params=1
    )


def hyperbolic_secant(a):
    """Density of ``sech(x)^a``, whose mean curvature is ``a / (a + 1)`` of that at the mode."""
    return FunctionPosterior(
        lambda x: -a * np.log(np.cosh(x))[:, 0], lambda x: -a * np.tanh(x), n_params=1
    )


@pytest.mark.filterwarnings("ignore")  # the draws are measured here, whatever the fit says
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_draws_of_long_steps_keep_skewness_and_extreme_quantiles(temperature):
    found = sample(
        log_gamma(12.0),
        SGLD(),
        step_size=1.0,
        temperature=temperature,
        random_state=0,
        n_chains=64,
        n_draws=4000,
        thin=2,
    )
    draws = found.values.ravel()
    # exp((a x - e^x) / tau) is the density of the logarithm of tau times a gamma variable
    truth = loggamma(12.0 / temperature, loc=np.log(temperature))
    error = 1.0 / np.sqrt(draws.size / 2)  # neighbouring draws share little
    # three quarters of the skewness are 7 to 10 standard errors off
    assert abs(skew(draws) - truth.stats("s")) < 4 * np.sqrt(6) * error
    level = np.array([0.005, 0.025, 0.975, 0.995])
    at = truth.ppf(level)
    doubt = error * np.sqrt(level * (1 - level)) / truth.pdf(at)
    # 99.5 % would be 0.1 sds off at a step of 1; second order leaves 0.02
    assert np.all(np.abs(np.quantile(draws, level) - at) < 4 * doubt + 0.02 * truth.std())
    assert abs(draws.std() / truth.std() - 1.0) < 4 * error


@pytest.mark.filterwarnings("ignore")
def test_the_correction_keeps_the_variance_where_curvature_falls_off_the_mode():
    a = 6.0
    found = sample(hyperbolic_secant(a), SGLD(), random_state=0, n_chains=64, n_draws=8000)
    draws, step = found.values.ravel(), found.plan.choices["step_size"].value
    assert step == 1.0
    # about the mode's curvature it would make the sd 0.65 % too large
    sd = np.sqrt(0.5 * polygamma(1, a / 2))
    assert abs(draws.std() / sd - 1.0) < 4 / np.sqrt(2 * draws.size)


def test_draws_have_a_part_of_the_noise_of_their_batches():
    """A correction by 1/9 of two gradients' difference leaves (8/9)^2 + (1/9)^2 of a step's noise.

    The strategy of nearly normal posteriors leaves as much out of the noise of its steps.
    """
    run = make_run(TARGET, sampler=SGLD(), batch_size=25, step_size=1.0 / LAM)
    run.dynamics.curvature = LAM  # a step of size 1 / LAM is one of size 1 in the curvature
    draws = stationary_draws(run, TARGET, n_draws=4000)
    noise = N**2 * TARGET.row_variance / 25 / LAM  # relative to the variance 1 / LAM
    expected = (1.0 + 65 / 81 * noise) / LAM
    assert abs(z_of_variance(draws, expected, 0.5)) < 4
    assert abs(z_of_variance(draws, (1.0 + noise) / LAM, 0.5)) > 10


def test_draws_are_corrected_positions_of_the_same_chain_whatever_their_spacing():
    shape, scale = 12.0, 0.9  # of the density, and of the curvature
    run = make_run(
        as_posterior(log_gamma(shape)), sampler=SGLD(), step_size=0.3, schedule=Polynomial()
    )
    start = np.log(shape) + np.array([[0.3], [-0.2]])
    positions = run_chains(run, start, n_draws=30).draws[..., 0]
    run.dynamics.curvature = scale
    every = run_chains(run, start, n_draws=30)
    kept = run_chains(run, start, n_draws=6, n_burnin=3, thin=4, block_size=5)
    # the chain is the same, and a draw is that of the position before the last step
    np.testing.assert_array_equal(every.positions[:, 0], positions[:, -1])
    before = np.column_stack([start[:, 0], positions[:, :-1]])
    newton = before + (shape - np.exp(before)) / scale
    s = scale * 0.3 * run.schedule(np.arange(30))
    c = s / (3 * (4 - s) * (3 - 3 * s + s**2))
    expected = before + c * np.diff(newton, axis=1, prepend=newton[:, :1])
    np.testing.assert_allclose(every.draws[..., 0], expected, rtol=1e-12)
    np.testing.assert_array_equal(kept.draws, every.draws[:, 6:27:4])
