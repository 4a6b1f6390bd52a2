"""Negative binomial regression: mode and posterior by scipy, and every way to hand over rows."""

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats

from skbayes_sgld import RowBlocks, SGLDNegativeBinomialRegressor
from skbayes_sgld.estimators import sampled
from skbayes_sgld.posterior import (
    Exponential,
    Flat,
    GLMPosterior,
    InverseGamma,
    NegativeBinomial,
    Normal,
    Poisson,
)
from skbayes_sgld.sampling.tuning.mode import find_mode
from tests.references.closed_forms import importance_sampling, laplace_fit


def scattered(n, dispersion=0.6, seed=0):
    """Counts over exposures."""
    rng = np.random.default_rng(seed)
    X, exposure = rng.standard_normal((n, 2)) + [0.0, 1.0], rng.uniform(0.5, 4.0, n)
    rate = exposure * np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.8)
    shape = 1.0 / dispersion
    return X, rng.poisson(rate * rng.gamma(shape, dispersion, n)).astype(float), exposure


def log_likelihood(theta, X, y, exposure, weight=1.0):
    """Log likelihood ``(S,)`` at coefficients, intercept and log dispersion ``(S, P)``."""
    eta = theta[:, :2] @ X.T + theta[:, 2:3] + np.log(exposure)
    r = np.exp(-theta[:, 3:])
    return (weight * stats.nbinom.logpmf(y, r, r / (r + np.exp(eta)))).sum(axis=1)


def test_the_mode_under_flat_priors_is_the_maximum_likelihood_estimate():
    X, y, exposure = scattered(400)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, 400)
    flat = InverseGamma(1e-9, 1e-9)  # in the log dispersion
    posterior = GLMPosterior(
        X, y, NegativeBinomial(), Flat(), flat, sample_weight=weight, offset=np.log(exposure)
    )
    found = find_mode(posterior, posterior.start()).theta
    data = X, y, exposure, weight
    best = optimize.minimize(lambda theta: -log_likelihood(theta[None], *data)[0], np.zeros(4)).x
    np.testing.assert_allclose(found, best, atol=2e-5)


def test_the_posterior_is_that_of_importance_sampling():
    X, y, exposure = scattered(60)
    model = SGLDNegativeBinomialRegressor(
        prior=Normal(1.0), intercept_prior=Normal(2.0), dispersion_prior=Exponential(0.8)
    )
    model.set_params(n_draws=4000, random_state=0).fit(X, y, exposure=exposure)

    def log_density(theta):
        root = np.exp(0.5 * theta[:, 3])  # exponential, and its Jacobian
        prior = stats.norm.logpdf(theta[:, :3], 0.0, [1.0, 1.0, 2.0]).sum(axis=1)
        return log_likelihood(theta, X, y, exposure) + prior - root / 0.8 + 0.5 * theta[:, 3]

    exact = importance_sampling(
        log_density,
        *laplace_fit(log_density, 4),
        transform=lambda theta: np.column_stack([theta[:, :3], np.exp(theta[:, 3])]),
        n_draws=40_000,
    )
    draws, summary = model.posterior_.flat, model.posterior_.summary()
    error = np.hypot(summary["mcse_mean"], exact.sd / np.sqrt(exact.ess))
    assert np.all(np.abs(draws.mean(axis=0) - exact.mean) < 4.0 * error)
    np.testing.assert_allclose(draws.std(axis=0), exact.sd, rtol=0.06)
    assert model.dispersion_ == pytest.approx(draws[:, 3].mean())
    assert list(summary.index)[-1] == "dispersion"


def test_blocks_batches_and_sparse_rows_give_the_posterior_of_arrays(monkeypatch):
    X, y, exposure = scattered(3000)
    model = SGLDNegativeBinomialRegressor(random_state=0)
    whole = model.fit(X, y, exposure=exposure).posterior_.flat
    parts = np.array_split(np.arange(3000), 3)

    def read():
        return ((X[rows], y[rows], None, exposure[rows]) for rows in parts)

    fits = {"sparse": SGLDNegativeBinomialRegressor(random_state=1)}
    fits["sparse"].fit(sparse.csr_array(X), y, exposure=exposure)
    fits["blocks"] = SGLDNegativeBinomialRegressor(random_state=1)
    fits["blocks"].fit(RowBlocks(read, pool_size=800))
    monkeypatch.setattr(sampled, "_KEPT_BATCHES", 2000)  # a normal density for all but the last
    fits["batches"] = SGLDNegativeBinomialRegressor(random_state=1)
    for rows in parts:
        fits["batches"].partial_fit(X[rows], y[rows], exposure=exposure[rows])
    sd = whole.std(axis=0)
    for name, fit in fits.items():
        draws = fit.posterior_.flat
        far = np.abs(draws.mean(axis=0) - whole.mean(axis=0)) / sd
        assert far.max() < 0.15, name  # Monte Carlo errors of 0.03, and what the sample leaves
        np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1, err_msg=name)


def test_few_rows_and_learned_scales_give_a_posterior():
    X, y, _ = scattered(200)
    model = SGLDNegativeBinomialRegressor(prior="hierarchical_normal", random_state=0).fit(X, y)
    plain = SGLDNegativeBinomialRegressor(random_state=0).fit(X, y)
    sd = plain.posterior_.flat.std(axis=0)
    assert np.all(np.abs(model.coef_ - plain.coef_) < sd[:2])
    assert abs(model.dispersion_ - plain.dispersion_) < 0.3 * sd[3]
    wide = np.random.default_rng(0).standard_normal((8, 10))
    of_rows = SGLDNegativeBinomialRegressor(parameterization="row_space", random_state=0)
    settings = {"n_draws": 500, "prior": Normal(0.3), "intercept_prior": Normal(1.0)}
    of_rows.set_params(**settings).fit(wide, y[:8])
    own = SGLDNegativeBinomialRegressor(parameterization="centered", random_state=1)
    own.set_params(**settings).fit(wide, y[:8])
    sd = own.posterior_.flat.std(axis=0)
    away = of_rows.posterior_.flat.mean(axis=0) - own.posterior_.flat.mean(axis=0)
    assert np.abs(away / sd).max() < 0.25


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_without_dispersion_counts_are_poisson(dtype, tolerance):
    rng = np.random.default_rng(0)
    eta = rng.uniform(-8.0, 14.0, (1, 1, 500))
    y = rng.poisson(np.exp(eta[0, 0])).astype(float)
    y[:20] = 0.0
    poisson = Poisson().bind(y)
    value, score = poisson.value_and_score(eta.copy())
    for log_dispersion in (-40.0, -200.0):
        own = np.full_like(eta, log_dispersion)
        u = np.concatenate([eta, own], axis=1).astype(dtype)
        found, slope = NegativeBinomial().bind(y, dtype=dtype).value_and_score(u)
        np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance * y.max())
        np.testing.assert_allclose(slope[:, 0], score[:, 0], rtol=1e-3, atol=tolerance * y.max())
        assert np.abs(slope[:, 1]).max() < 10.0 * tolerance * y.max()


def test_large_counts_keep_their_digits():
    y, t = np.array([0.0, 3.0, 1e4, 1e7]), np.array([-9.0, -2.0, 3.0])
    eta = np.log(np.maximum(y, 1.0)) + 0.01
    u = np.stack([np.broadcast_to(eta, (3, 4)), np.repeat(t[:, None], 4, axis=1)], axis=1)
    r = np.exp(-u[:, 1])
    share = special.expit(u.sum(axis=1))
    ways = special.gammaln(y + r) - special.gammaln(r) - special.gammaln(y + 1.0)
    expected = ways + y * np.log(share) - r * np.log1p(np.exp(u.sum(axis=1)))
    found = NegativeBinomial().log_density(u, y)
    # the reference's terms cancel: its error is that of the largest
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14 * 1e8)
    rounded = NegativeBinomial().bind(y, dtype=np.float32).log_density(u.astype(np.float32))
    np.testing.assert_allclose(rounded, found, rtol=1e-3, atol=1e-7 * y.max())


def test_an_improper_prior_of_the_dispersion_is_refused():
    X, y, _ = scattered(50)
    with pytest.raises(ValueError, match=r"dispersion_prior=FlatNoise.*'exponential'"):
        SGLDNegativeBinomialRegressor(dispersion_prior="flat").fit(X, y)
    with pytest.raises(ValueError, match=r"dispersion_prior\.scale=-1"):
        SGLDNegativeBinomialRegressor(dispersion_prior=Exponential(-1.0)).fit(X, y)
