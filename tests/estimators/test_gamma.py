"""Gamma regression: mode by scikit-learn, posterior by importance sampling, every way to fit."""

import numpy as np
import pytest
from scipy import optimize, sparse, stats
from sklearn.linear_model import GammaRegressor

from skbayes_sgld import RowBlocks, SGLDGammaRegressor
from skbayes_sgld.estimators import sampled
from skbayes_sgld.posterior import Exponential, Gamma, GLMPosterior, InverseGamma, Normal
from skbayes_sgld.sampling.tuning.mode import find_mode
from tests.references.closed_forms import importance_sampling, laplace_fit


def positive(n, dispersion=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) + [0.0, 1.0]
    return X, np.exp(0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.8) * rng.gamma(
        1.0 / dispersion, dispersion, n
    )


def log_likelihood(theta, X, y):
    """Log likelihood ``(S,)`` at coefficients, intercept and log dispersion ``(S, P)``."""
    eta, t = theta[:, :2] @ X.T + theta[:, 2:3], theta[:, 3:]
    return stats.gamma.logpdf(y, np.exp(-t), scale=np.exp(eta + t)).sum(axis=1)


def test_the_mode_is_that_of_scikit_learn_at_its_dispersion():
    X, y = positive(300)
    flat = InverseGamma(1e-9, 1e-9)  # in the log dispersion
    posterior = GLMPosterior(X, y, Gamma(), Normal(0.5), flat)
    found = find_mode(posterior, posterior.start()).theta
    alpha = np.exp(found[3]) / (0.5**2 * len(y))
    theirs = GammaRegressor(alpha=alpha, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(found[:2], theirs.coef_, atol=1e-6)
    assert found[2] == pytest.approx(theirs.intercept_, abs=1e-6)

    def loss(t):
        return -log_likelihood(np.append(found[:3], t)[None], X, y)[0]

    best = optimize.minimize_scalar(loss, (-3.0, 1.0)).x
    assert found[3] == pytest.approx(best, abs=1e-5)


def test_the_posterior_is_that_of_importance_sampling():
    X, y = positive(40)
    model = SGLDGammaRegressor(
        prior=Normal(1.0), intercept_prior=Normal(2.0), dispersion_prior=Exponential(0.8)
    )
    model.set_params(n_draws=4000, random_state=0).fit(X, y)

    def log_density(theta):
        root = np.exp(0.5 * theta[:, 3])  # exponential, and its Jacobian
        prior = stats.norm.logpdf(theta[:, :3], 0.0, [1.0, 1.0, 2.0]).sum(axis=1)
        return log_likelihood(theta, X, y) + prior - root / 0.8 + 0.5 * theta[:, 3]

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


def test_blocks_batches_and_sparse_rows_give_the_posterior_of_arrays(monkeypatch):
    X, y = positive(3000)
    whole = SGLDGammaRegressor(random_state=0).fit(X, y).posterior_.flat
    parts = np.array_split(np.arange(3000), 3)

    def read():
        return ((X[rows], y[rows]) for rows in parts)

    fits = {name: SGLDGammaRegressor(random_state=1) for name in ("sparse", "blocks", "batches")}
    fits["sparse"].fit(sparse.csr_array(X), y)
    fits["blocks"].fit(RowBlocks(read, pool_size=800))
    monkeypatch.setattr(sampled, "_KEPT_BATCHES", 2000)  # a normal density for all but the last
    for rows in parts:
        fits["batches"].partial_fit(X[rows], y[rows])
    sd = whole.std(axis=0)
    for name, fit in fits.items():
        draws = fit.posterior_.flat
        far = np.abs(draws.mean(axis=0) - whole.mean(axis=0)) / sd
        assert far.max() < 0.15, name  # Monte Carlo errors of 0.03, and what the sample leaves
        np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1, err_msg=name)


def test_a_change_of_units_changes_the_intercept_alone():
    X, y = positive(100)
    one = SGLDGammaRegressor(random_state=0).fit(X, y)
    other = SGLDGammaRegressor(random_state=0).fit(X, 1000.0 * y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6)
    assert other.intercept_ == pytest.approx(one.intercept_ + np.log(1000.0))
    assert other.dispersion_ == pytest.approx(one.dispersion_, rel=1e-6)
    np.testing.assert_allclose(
        other.predict_interval(X[:5]), 1000.0 * one.predict_interval(X[:5]), rtol=1e-4
    )


def test_observations_of_zero_are_refused():
    X, y = positive(50)
    y[3] = 0.0
    with pytest.raises(ValueError, match="value 0; observations must be above 0"):
        SGLDGammaRegressor().fit(X, y)
