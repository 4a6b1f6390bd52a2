"""Bayes by Backprop against what the nearest normal distribution is known to be."""

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.base import clone

from skbayes_sgld.likelihoods import FixedNormalNoise
from skbayes_sgld.own_models import CustomPosterior, FunctionPosterior
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.variational import BayesByBackprop
from tests.references.targets import CorrelatedNormal, NormalMean


def sd_error(precision, sd, max_iter, n_particles):
    """Standard errors of log sd, by the noise of the averaged gradient.

    A pair of draws contributes ``s_i sum_j Lambda_ij s_j e_i e_j``, whose variance at the optimum
    is 2 + sum_{j != i} (Lambda_ij s_i s_j)^2; the slope of its mean there is 2, and the answer
    averages half of the steps.
    """
    scaled = precision * sd * sd[:, None]
    variance = 1.0 + np.square(scaled).sum(axis=1)
    return np.sqrt(variance / (n_particles / 2) / (max_iter / 2)) / 2.0


def test_on_a_normal_distribution_the_mean_is_exact_and_the_variances_are_conditional():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 8))
    precision, mean = root @ root.T, rng.normal(0.0, 3.0, 5)
    q = BayesByBackprop(step_size=0.1, random_state=0).fit(CorrelatedNormal(mean, precision))
    conditional = 1.0 / np.sqrt(np.diag(precision))
    np.testing.assert_allclose(q.mean_, mean, atol=1e-6 * conditional.min())
    z = np.log(q.sd_ / conditional) / sd_error(precision, conditional, q.max_iter, q.n_particles)
    assert np.all(np.abs(z) < 4.0)


def test_on_a_normal_distribution_the_full_rank_family_is_exact():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 16))
    precision, mean = root @ root.T, rng.normal(0.0, 3.0, 4)
    unit = 1.0 / np.sqrt(np.diag(precision))
    q = BayesByBackprop(family="full_rank", step_size=0.1, max_iter=4000, random_state=0)
    q.fit(CorrelatedNormal(mean, precision), scale=unit)
    covariance = np.linalg.inv(precision)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(q.mean_, mean, atol=1e-6 * sd.min())
    np.testing.assert_allclose(q.sd_, np.sqrt(np.diag(q.covariance_)))
    # whitened by the truth a pair contributes e e^T to the gradient: the entries of the covariance
    # have the error 1 / sqrt(pairs averaged), those of the diagonal sqrt(2) times as much
    white = np.linalg.inv(np.linalg.cholesky(covariance))
    found = white @ q.covariance_ @ white.T
    error = np.sqrt((1.0 + np.eye(4)) / (q.n_particles / 2) / (q.max_iter / 2))
    assert np.all(np.abs(found - np.eye(4)) < 4.5 * error)
    draws = q.sample(20_000, random_state=0)
    z = np.linalg.solve(np.linalg.cholesky(q.covariance_), (draws - q.mean_).T)
    assert np.all(np.abs(np.cov(z) - np.eye(4)) < 4.5 * np.sqrt((1.0 + np.eye(4)) / 20_000))


def test_full_rank_is_refused_where_its_matrix_would_be_too_large(monkeypatch):
    monkeypatch.setattr("skbayes_sgld.variational.backprop._MAX_FULL_RANK", 0)
    with pytest.raises(ValueError, match=r"family='full_rank'.*1 of them.*'mean_field'"):
        BayesByBackprop(family="full_rank").fit(NormalMean())


def test_a_density_and_its_gradient_are_enough():
    # the same normal distribution without rows: the same answer
    target = CorrelatedNormal(np.array([5.0, -4.0]), np.array([[4.0, 1.0], [1.0, 1.0]]))
    density = FunctionPosterior(
        lambda theta: target.log_likelihood(theta)[:, 0], target.grad_log_likelihood, 2
    )
    q, rows = (BayesByBackprop(max_iter=100, random_state=0).fit(p) for p in (density, target))
    np.testing.assert_allclose(q.sd_, rows.sd_)
    np.testing.assert_allclose(q.elbo_, rows.elbo_)
    with pytest.raises(ValueError, match=r"batch_size=1 takes rows"):
        BayesByBackprop(batch_size=1).fit(density)


def test_on_an_exact_family_the_bound_is_the_evidence():
    # one parameter: q can be the posterior, and the evidence is the integral of the likelihood
    target = NormalMean(n_samples=20)
    q = BayesByBackprop(max_iter=4000, random_state=0).fit(target)
    rss = ((target.y - target.y.mean()) ** 2).sum() / target.variance
    evidence = -0.5 * rss + 0.5 * np.log(2 * np.pi / target.precision)
    assert q.mean_[0] == pytest.approx(target.y.mean(), abs=1e-6)
    error = q.elbo_[-20:].std() / np.sqrt(20)
    assert abs(q.elbo_[-20:].mean() - evidence) < 5 * error
    assert q.elbo_[0] < evidence - 1.0
    assert len(q.elbo_) == len(q.elbo_steps_) and q.elbo_steps_[-1] == q.max_iter - 1


def test_minibatches_carry_their_share_of_the_prior():
    # a prior as strong as the data: rescaled otherwise, mean and sd would be far off
    rng = np.random.default_rng(0)
    y = rng.normal(2.0, 1.0, 25)
    posterior = GLMPosterior(
        np.ones((25, 1)), y, FixedNormalNoise(1.0), Normal(0.2), fit_intercept=False
    )
    q = BayesByBackprop(batch_size=5, max_iter=4_000, n_particles=2, random_state=0)
    q.fit(posterior, scale=0.1)
    sd = 1.0 / np.sqrt(50.0)
    # the rows of a batch move the optimum by sd^2 (n / B) sqrt(B) sd(y) / sqrt(steps averaged)
    error = sd**2 * 25 / np.sqrt(5) * y.std() / np.sqrt(2_000)
    assert abs(q.mean_[0] - y.sum() / 50.0) < 4 * error
    assert abs(np.log(q.sd_[0] / sd)) < 4 * np.sqrt(2.0 / 2_000) / 2.0


def test_the_start_and_the_scale_are_units():
    # the same problem in other units, begun at the same point: the same path
    precision = np.array([[2.0, 0.5], [0.5, 1.0]])
    q = BayesByBackprop(max_iter=50, random_state=0).fit(
        CorrelatedNormal(np.ones(2), precision), start=[0.5, 0.0]
    )
    unit = np.array([100.0, 1e-3])
    other = clone(q).fit(
        CorrelatedNormal(unit, precision / unit / unit[:, None]), start=[50.0, 0.0], scale=unit
    )
    np.testing.assert_allclose(other.mean_, unit * q.mean_)
    np.testing.assert_allclose(other.sd_, unit * q.sd_)


def test_random_state_fixes_the_fit_and_the_draws():
    target = CorrelatedNormal(np.array([1.0, -2.0]), np.diag([4.0, 1.0]))
    q = BayesByBackprop(max_iter=200, random_state=3).fit(target)
    again = clone(q).fit(target)
    np.testing.assert_array_equal(again.sd_, q.sd_)
    np.testing.assert_array_equal(again.elbo_, q.elbo_)
    assert not np.any(clone(q).set_params(random_state=4).fit(target).sd_ == q.sd_)
    np.testing.assert_array_equal(q.sample(9, random_state=0), q.sample(9, random_state=0))


@pytest.mark.parametrize(
    "given, match",
    [
        ({"n_particles": 3}, r"n_particles=3.*even"),
        ({"batch_size": 51}, r"batch_size=51.*50 rows"),
        ({"batch_size": 0}, r"batch_size=0.*\[1"),
        ({"step_size": -1.0}, r"step_size=-1\.0"),
        ({"max_iter": 0}, r"max_iter=0"),
        ({"family": "cauchy"}, r"family='cauchy'.*'full_rank', 'gamma', 'isotropic', 'mean_field'"),
        ({"step_size": 1e8}, r"step_size=1e\+08.*overflowed.*smaller"),
        ({"start": [np.nan]}, r"start has values out of range: nan; all numbers must be finite"),
        ({"start": [0.0, 1.0]}, r"start has shape .*must be 1"),
        ({"scale": 0.0}, r"scale=0\.0 is out of range"),
    ],
)
def test_what_cannot_be_used_is_refused(given, match):
    of_fit = {name: given[name] for name in ("start", "scale") if name in given}
    params = {name: value for name, value in given.items() if name not in of_fit}
    with pytest.raises(ValueError, match=match):
        BayesByBackprop(random_state=0, **params).fit(NormalMean(), **of_fit)


class PoissonRates:
    """Two rates with an exponential prior; their posteriors are gamma distributions."""

    counts = np.array([[0, 12], [1, 9], [0, 15]])
    n_samples, n_params, param_names = 3, 2, ["few", "many"]

    def log_likelihood(self, x, idx=None):
        y = self.counts[None] if idx is None else self.counts[idx]
        return (y * np.log(x[:, None]) - x[:, None]).sum(axis=2)

    def grad_log_likelihood(self, x, idx=None):
        y = self.counts[None] if idx is None else self.counts[idx]
        return (y / x[:, None] - 1.0).sum(axis=1)

    def log_prior(self, x):
        return -x.sum(axis=1)

    def grad_log_prior(self, x):
        return -np.ones_like(x)


RATES = CustomPosterior(PoissonRates(), transforms={"few": "positive", "many": "positive"})
SHAPES, RATE = 1.0 + PoissonRates.counts.sum(axis=0), 4.0


@pytest.mark.slow
def test_of_a_skew_posterior_the_gamma_family_has_the_larger_bound():
    # that of the exact posterior is the log evidence; below, KL(q || posterior) is lost
    evidence = (gammaln(SHAPES) - SHAPES * np.log(RATE)).sum()
    lost = {}
    for family in ("gamma", "mean_field"):
        q = BayesByBackprop(family=family, max_iter=2000, random_state=0)
        member, phi, *_ = q.fit(RATES, start=RATES.start())._fitted
        value = RATES.log_density(q.sample(100_000, random_state=0))
        lost[family] = evidence - value.mean() - member.entropy(phi[None], 2)[0]
        error = value.std() / np.sqrt(len(value))
    assert abs(lost["gamma"]) < 4.5 * error
    assert lost["mean_field"] > 10.0 * error
