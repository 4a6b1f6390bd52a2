"""Every registered likelihood, by its name: what a new family must pass, nothing edited."""

import warnings

import numpy as np
import pytest
from scipy import stats

from skbayes_sgld._components import resolve
from skbayes_sgld.likelihoods import LIKELIHOODS, Bernoulli, Categorical, LabelLikelihood
from skbayes_sgld.likelihoods.mixture import solve_quantile
from skbayes_sgld.posterior.glm import default_prior
from tests.likelihoods import of_density, shape, start, sums, tails


def check_own(likelihood):
    """Raise where an own parameter has no default prior, or no way back to its coordinate."""
    for own in likelihood.own:
        default_prior(own)
    far = np.repeat([[-1000.0], [600.0]], len(likelihood.own), axis=1)
    reported = likelihood.constrain_own(far)
    if not np.isfinite(likelihood.unconstrain_own(reported)).all():
        raise AssertionError(f"{likelihood}: {far[:, 0]} are reported as {reported}")


def check_likelihood(name):
    """Raise where the likelihood of this name contradicts its own density, or NumPy warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        check_quietly(name)


def check_quietly(name):
    """Raise where the likelihood of this name contradicts its own density."""
    likelihood = resolve(name, LIKELIHOODS, "likelihood")
    of_density.check_derivatives(likelihood)
    if likelihood.own:
        check_own(likelihood)
    of_density.check_draws(likelihood)
    of_density.check_spread(likelihood)
    of_density.check_effect(likelihood)
    sums.check_of_fits(name, likelihood)
    for check in (
        shape.check_shape,
        shape.check_link,
        shape.check_increasing,
        start.check_start,
        tails.check_level,
        tails.check_gains,
    ):
        check(name, likelihood)
    if isinstance(likelihood, LabelLikelihood):
        of_density.check_labels(likelihood)
        of_density.check_label_means(likelihood)
        return
    check_moments(likelihood)
    of_density.check_cdf(likelihood)
    if likelihood.has_ratios:
        of_density.check_ratios(likelihood)
    of_density.check_samples_by_cdf(likelihood)
    for q in (1e-5, 0.05, 0.5, 0.9, 0.99999):
        of_density.check_mixture_quantile(likelihood, q)


def check_moments(likelihood):
    """Mass, mean and variance of the density by sums, which know no Monte Carlo error."""
    u = of_density.some_u(likelihood, 1)
    mean, variance = likelihood.mean(u), likelihood.variance(u)
    if likelihood.whole:
        y = np.tile(np.arange(np.ceil((mean + 42.0 * np.sqrt(variance)).max()) + 1), (len(u), 1))
        mass = np.exp(likelihood.log_density(np.repeat(u, y.shape[1], axis=2), y))
        error = 1e-7
    else:  # by the distribution function: the support may have an edge
        # finest about the mean, and far out where a skewed law ends
        edges = mean + np.sqrt(variance) * np.sinh(np.linspace(-10.0, 10.0, 16001))
        near = np.sqrt(variance) * np.geomspace(1e-12, 0.1, 2000)  # of 0, a density's edge
        edges = np.sort(np.concatenate([edges, near], axis=1), axis=1)
        mass = np.diff(likelihood.cdf(np.repeat(u, edges.shape[1], axis=2), edges))
        y, error = 0.5 * (edges[:, 1:] + edges[:, :-1]), 1e-5
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, rtol=1e-7, err_msg="mass")
    first = (mass * y).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mean, first, rtol=error, err_msg="mean")
    second = (mass * np.square(y - first)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(variance, second, rtol=10 * error, err_msg="variance")


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_likelihood_is_what_its_density_says(name):
    check_likelihood(name)


@pytest.mark.parametrize("likelihood", [Bernoulli(), Categorical(3)])
def test_no_digit_of_a_small_probability_is_lost(likelihood):
    u = np.zeros((2, likelihood.n_local, 1))
    u[:, -1] = np.array([[40.0], [1000.0]])
    others = max(likelihood.n_predictors - 1, 1)
    log_p, log_rest = likelihood.log_probabilities(u)
    expected = np.array([-40.0, -1000.0]) + np.log(others)
    np.testing.assert_allclose(log_rest[:, -1, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(log_p[:, 0, 0], [-40.0, -1000.0], rtol=1e-12)
    np.testing.assert_allclose(likelihood.probabilities(u)[1][0, -1, 0], others * np.exp(-40.0))


def test_codes_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"value 2, which is not a code.*0 \.\.\. 1"):
        Bernoulli().check_target(np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match=r"value 0\.5, which is not a code.*0 \.\.\. 3"):
        Categorical(4).check_target(np.array([0.0, 0.5, 3.0]))


@pytest.mark.parametrize("q", [1e-6, 0.05, 0.5, 0.95, 0.999999])
def test_whole_quantiles_are_exact_at_every_size(q):
    rate = np.array([1e-3, 0.7, 30.0, 1e6])
    found = solve_quantile(
        lambda t, rows: stats.poisson.cdf(t, rate[rows]), q, rate, np.sqrt(rate), whole=True
    )
    np.testing.assert_allclose(found.quantile, stats.poisson.ppf(q, rate), rtol=1e-12)


@pytest.mark.parametrize(
    "law",
    [stats.logistic(), stats.t(2.5), stats.expon(), stats.lognorm(3.0)],
    ids=["logistic", "t", "exponential", "lognormal"],
)
def test_quantiles_are_found_to_a_hundred_thousandth_of_a_sd(law):
    mean, sd = np.array([law.mean()]), np.array([law.std()])
    for q in (1e-4, 0.05, 0.5, 0.74, 0.975):
        found = solve_quantile(lambda t, _: law.cdf(t), q, mean, sd)
        assert abs(found.quantile[0] - law.ppf(q)) < 1e-5 * sd[0]
