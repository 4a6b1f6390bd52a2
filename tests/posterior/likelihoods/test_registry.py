"""Every registered likelihood, by its name: what a new family must pass, nothing edited."""

import numpy as np
import pytest

from skbayes_sgld._components import resolve
from skbayes_sgld.posterior import LIKELIHOODS, LabelLikelihood
from tests.posterior.likelihoods import in_fits
from tests.posterior.likelihoods import test_likelihoods as parts


def check_likelihood(name):
    """Raise where the likelihood of this name contradicts its own density."""
    likelihood = resolve(name, LIKELIHOODS, "likelihood")
    for own_rows in (False, True):
        parts.test_the_score_is_the_derivative_of_the_log_density(likelihood, own_rows)
    parts.test_the_curvature_is_minus_the_derivative_of_the_score(likelihood)
    parts.test_samples_have_the_mean_and_the_variance(likelihood)
    in_fits.check_in_fits(name, likelihood)
    for check in (
        in_fits.check_shape,
        in_fits.check_start,
        in_fits.check_level,
        in_fits.check_gains,
        in_fits.check_averaged,
        in_fits.check_mode,
    ):
        check(name, likelihood)
    if isinstance(likelihood, LabelLikelihood):
        parts.test_probabilities_are_those_of_the_density_and_sum_to_one(likelihood)
        in_fits.check_labels(likelihood)
        return
    check_moments(likelihood)
    parts.test_the_distribution_function_is_that_of_the_density(likelihood)
    parts.test_samples_follow_the_distribution_function(likelihood)
    for q in (0.05, 0.5, 0.9):
        parts.test_mixture_quantiles_solve_the_mean_of_the_distribution_functions(likelihood, q)


def check_moments(likelihood):
    """Mass, mean and variance of the density by sums, which know no Monte Carlo error."""
    u = parts.some_u(likelihood, 1)
    mean, variance = likelihood.mean(u), likelihood.variance(u)
    if likelihood.whole:
        y = np.tile(np.arange(np.ceil((mean + 42.0 * np.sqrt(variance)).max()) + 1), (len(u), 1))
        mass = np.exp(likelihood.log_density(np.repeat(u, y.shape[1], axis=2), y))
        error = 1e-7
    else:  # by the distribution function: the support may have an edge
        edges = mean + 30.0 * np.sqrt(variance) * np.linspace(-1.0, 1.0, 8001)
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
