"""Draws of the stochastic volatility model: calibrated over simulated series, and reproducible."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from skbayes_sgld import sample
from skbayes_sgld.datasets import make_stochastic_volatility
from skbayes_sgld.posterior import StochasticVolatility
from skbayes_sgld.sampling import HMC, SGLD

RISK = 1e-3  # of a failure by chance, shared by all that is compared at once
IGNORED = "ignore::sklearn.exceptions.ConvergenceWarning"  # a few hundred draws are enough here
PRIOR = {"sigma_rate": 5.0, "nu_rate": 0.1, "initial_scale": 1.0}


@pytest.fixture(scope="module")
def ranks():
    """The share of draws below the truth ``(series, parameter)``: sigma, nu and the volatilities.

    The truth is drawn from the prior, so each rank is uniform (Cook, Gelman & Rubin 2006,
    Section 2), and intervals hold their share exactly.
    """
    rng = np.random.default_rng(1000)
    found = []
    for seed in range(1000, 1050):
        data = make_stochastic_volatility(
            40,
            sigma=rng.exponential(1 / PRIOR["sigma_rate"]),
            nu=rng.exponential(1 / PRIOR["nu_rate"]),
            initial_volatility=np.exp(PRIOR["initial_scale"] * rng.standard_normal()),
            random_state=seed,
        )
        posterior = StochasticVolatility(data.returns, **PRIOR)
        draws = sample(posterior, n_draws=250, check_gradient=False, random_state=seed)
        truth = np.r_[data.sigma, data.nu, data.volatility]
        found.append(np.mean(draws.values < truth, axis=(0, 1)))
    return np.array(found)


def z_of_mean(values, expected):
    """Distance of a mean over series from the expected one, in standard errors."""
    return (values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))


def two_sided(n_series, n_compared=1):
    return stats.t(n_series - 1).isf(RISK / 2 / n_compared)


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_bands_hold_the_truth_as_often_as_they_say(ranks, level):
    held = np.abs(ranks - 0.5) < level / 2
    # the days of one series are alike: it counts once
    assert abs(z_of_mean(held[:, 2:].mean(axis=1), level)) < two_sided(len(held))
    for column in (0, 1, 2, 21, 41):  # sigma, nu, the first day, one between and the last
        count = int(held[:, column].sum())
        assert stats.binomtest(count, len(held), level).pvalue > RISK / 5, (column, count)


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
def test_the_truth_is_above_and_below_as_often(ranks):
    for values in (ranks[:, 0], ranks[:, 1], ranks[:, 2:].mean(axis=1)):
        assert abs(z_of_mean(values, 0.5)) < two_sided(len(ranks), 3)


@pytest.fixture(scope="module")
def series():
    data = make_stochastic_volatility(60, sigma=0.2, nu=6.0, random_state=2)
    posterior = StochasticVolatility(data.returns, sigma_rate=5.0)
    theta = posterior.start()
    metric = 1.0 / posterior.curvature_diagonal(theta)
    reference = sample(
        posterior,
        HMC(path_length=2.0),
        preconditioner=metric,
        step_size=0.35,
        n_draws=500,
        n_burnin=300,
        thin=2,
        n_chains=24,
        random_state=1,
    )
    return posterior, metric, np.log(reference.values)


def z_scores(draws, reference):
    """Differences of the means and of the sds of two runs, in standard errors."""
    scores = []
    for method, statistic in {"mean": np.mean, "sd": np.std}.items():
        pair = draws, reference
        errors = [array_stats.mcse(x, chain_axis=0, draw_axis=1, method=method) for x in pair]
        values = [statistic(x, axis=(0, 1)) for x in pair]
        scores.append((values[0] - values[1]) / np.hypot(*errors))
    return np.concatenate(scores)


def allowed(scores):
    """Largest score that chance leaves, but for one time in a thousand."""
    return stats.norm.isf(RISK / 2 / len(scores))


def test_the_default_agrees_with_a_long_run_of_another_seed(series):
    posterior, _, reference = series
    draws = sample(posterior, n_draws=500, n_chains=8, random_state=0)
    z = z_scores(np.log(draws.values), reference)
    assert np.abs(z).max() < allowed(z)


def test_sgld_of_a_diagonal_metric_agrees_with_a_long_run_of_another_seed(series):
    posterior, metric, reference = series
    draws = sample(
        posterior,
        SGLD("leimkuhler_matthews"),
        preconditioner=metric,
        step_size=0.12,
        n_draws=230,
        n_burnin=500,
        thin=15,
        n_chains=12,
        random_state=0,
    )
    z = z_scores(np.log(draws.values), reference)
    assert np.abs(z).max() < allowed(z)
