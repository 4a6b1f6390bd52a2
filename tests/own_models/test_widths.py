"""Densities whose widths the curvature does not show, and the energy of trajectories."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import skbayes_sgld
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.own_models.widths import find_far_part, with_widths
from skbayes_sgld.sampling import HMC, ParallelTempering
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.marks import slow

NARROW = 1e-3
Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # eight schools (Rubin 1981)
SE = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def power(p, n_params=1):
    def grad(x):
        return -p * np.sign(x) * np.abs(x) ** (p - 1.0)

    return FunctionPosterior(lambda x: -(np.abs(x) ** p).sum(1), grad, n_params=n_params)


def spike_on_a_normal(n_params=1, narrow=NARROW):
    def parts(x):
        square = 0.5 * np.square(x).sum(1)
        return np.stack([-square, -square / narrow**2 - n_params * np.log(narrow)])

    def grad(x):
        each = parts(x)
        share = np.exp(each - np.logaddexp(*each))
        return -x * (share[0] + share[1] / narrow**2)[:, None]

    return FunctionPosterior(lambda x: np.logaddexp(*parts(x)), grad, n_params=n_params)


def schools(centered):
    """Effects of schools, or their standard scores, under a half-Cauchy(5) scale."""

    def parts(x):
        mu, log_tau, z = x[:, :1], x[:, 1:2], x[:, 2:]
        tau = np.exp(log_tau)
        return mu, log_tau, tau, (z - mu) / tau if centered else z

    def log_density(x):
        mu, log_tau, tau, z = parts(x)
        value = -0.5 * (np.square((Y - mu - tau * z) / SE) + np.square(z)).sum(1)
        value += (log_tau - 0.02 * mu**2 - np.log1p(tau**2 / 25.0))[:, 0]
        return value - 8.0 * log_tau[:, 0] if centered else value

    def grad(x):
        mu, _, tau, z = parts(x)
        residual = (Y - mu - tau * z) / SE**2
        of_tau = 1.0 - 2.0 * tau**2 / (25.0 + tau**2)
        if centered:
            of_z = residual - z / tau
            of_mu = -0.04 * mu + (z / tau).sum(1, keepdims=True)
            of_tau = of_tau - 8.0 + np.square(z).sum(1, keepdims=True)
        else:
            of_z = residual * tau - z
            of_mu = -0.04 * mu + residual.sum(1, keepdims=True)
            of_tau = of_tau + tau * (residual * z).sum(1, keepdims=True)
        return np.concatenate([of_mu, of_tau, of_z], axis=1)

    names = ["mu", "log_tau", *(f"z{j}" for j in range(8))]
    return FunctionPosterior(log_density, grad, n_params=10, param_names=names)


def quantile_of_log_tau(q):
    """Quantile of the marginal of log tau, in which the effects are integrated out."""
    log_tau = np.linspace(-15.0, 6.0, 8001)
    variance = np.square(SE) + np.exp(2.0 * log_tau)[:, None]
    precision = (1.0 / variance).sum(1) + 0.04
    of_mu = np.square((Y / variance).sum(1)) / precision - np.log(precision)
    value = 0.5 * (of_mu - (np.log(variance) + Y**2 / variance).sum(1))
    value += log_tau - np.log1p(np.exp(2.0 * log_tau) / 25.0)
    cumulative = np.cumsum(np.exp(value - value.max()))
    return np.interp(q, cumulative / cumulative[-1], log_tau)


@pytest.mark.parametrize("p", [1.0, 4.0, slow(20.0)])
def test_kinks_and_flat_tops_are_drawn_right_and_without_a_warning(p):
    result = skbayes_sgld.sample(power(p), random_state=0)
    assert isinstance(result.choices["sampler"].value, HMC)
    summary = result.summary().iloc[0]
    sd = stats.gennorm(p).std()
    assert summary["sd"] == pytest.approx(sd, abs=4.0 * summary["mcse_sd"])
    assert abs(summary["mean"]) < 4.0 * summary["mcse_mean"]


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_widths_are_those_at_which_the_density_falls_by_two_nats(scale):
    mode = Mode(np.zeros(3), Diagonal(np.array([scale, 1.0, 0.5])))
    found = with_widths(power(2.0, 3), mode, tau=1.0)
    sd = np.array([np.sqrt(0.5), 1.0, np.sqrt(0.5)])  # the last two are right to a factor 2
    np.testing.assert_allclose(found.metric.marginal_sd, sd, rtol=1e-3)
    assert with_widths(power(2.0, 3), found, tau=1.0) is found


@pytest.mark.parametrize("times", [3.0, 1.0 / 3.0])
def test_a_width_that_is_wrong_by_a_factor_of_3_is_measured(times):
    sd = np.sqrt(0.5)
    mode = Mode(np.zeros(1), Diagonal(np.array([np.square(times * sd)])))
    found = with_widths(power(2.0), mode, tau=1.0)
    np.testing.assert_allclose(found.metric.marginal_sd, sd, rtol=1e-3)


@pytest.mark.parametrize("n_params", [1, 4])
def test_a_spike_on_a_wide_density_has_a_far_part(n_params):
    mode = Mode(np.zeros(n_params), Diagonal(np.full(n_params, NARROW**2)))
    far = find_far_part(spike_on_a_normal(n_params), mode, 1.0, seed=0)
    assert far.share == pytest.approx(0.5, abs=0.02)
    assert 0.5 < far.distance * NARROW < 2.0
    wide = Mode(np.zeros(n_params), Diagonal(np.ones(n_params)))
    for density in (power(2.0, n_params), power(1.0, n_params)):
        assert find_far_part(density, wide, 1.0, seed=0) is None


# so few draws have converged by some seeds only
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_auto_draws_the_spike_and_the_wide_density():
    result = skbayes_sgld.sample(spike_on_a_normal(), n_draws=100, thin=20, random_state=0)
    assert isinstance(result.choices["sampler"].value, ParallelTempering)
    assert "of the mass is some" in result.choices["sampler"].why
    assert np.mean(np.abs(result.values) > 5.0 * NARROW) == pytest.approx(0.5, abs=0.3)


def test_a_sampler_by_name_that_stays_in_the_spike_is_told():
    with pytest.warns(ConvergenceWarning, match="50% of the posterior is some 1.03e.03 sds.*auto"):
        skbayes_sgld.sample(spike_on_a_normal(), "hmc", n_draws=100, random_state=0)


def test_a_spike_that_the_chains_do_not_find_is_told():
    """Of two parameters, a proposal from the wide part ends in the spike once in a million."""
    match = "50% of the posterior is near its mode.* and 0.0% of the draws"
    with pytest.warns(ConvergenceWarning, match=match):
        skbayes_sgld.sample(spike_on_a_normal(2), n_draws=50, thin=2, random_state=0)


@pytest.mark.parametrize("narrow", [1e-5, 1e-7])
def test_a_wide_part_is_seen_from_a_spike_of_any_width(narrow):
    mode = Mode(np.zeros(1), Diagonal(np.full(1, narrow**2)))
    far = find_far_part(spike_on_a_normal(narrow=narrow), mode, 1.0, seed=0)
    assert far.share == pytest.approx(0.5, abs=0.02)
    assert 0.5 < far.distance * narrow < 2.0


@pytest.mark.slow
def test_the_centered_funnel_is_told_with_its_figures():
    with pytest.warns(ConvergenceWarning, match=r"diverged, .* \(E-BFMI\) is 0.*location \+ scale"):
        result = skbayes_sgld.sample(
            schools(centered=True), "hmc", n_draws=200, thin=2, random_state=0
        )
    assert result.energy.bfmi < 0.2
    assert result.values[..., 1].min() < quantile_of_log_tau(0.05)
    assert "E-BFMI" in str(result.diagnose())


def test_the_standardised_funnel_is_right_and_without_a_warning():
    result = skbayes_sgld.sample(schools(centered=False), random_state=0)
    assert result.energy.bfmi > 0.4 and result.energy.diverged < 1e-3
    for q in (0.05, 0.5):
        share = np.mean(result.values[..., 1] < quantile_of_log_tau(q), axis=(0, 1))
        assert share == pytest.approx(q, abs=4.0 * np.sqrt(q * (1.0 - q) / 1000.0))
