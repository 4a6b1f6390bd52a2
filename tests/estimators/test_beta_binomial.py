"""Beta-binomial regression: mode and posterior by scipy, and every way to hand over rows."""

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats
from sklearn import config_context
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    RowBlocks,
    SGLDBetaBinomialRegressor,
    SGLDLogisticRegression,
    predict_interval,
)
from skbayes_sgld.estimators import sampled
from skbayes_sgld.metrics import interval_coverage, loo
from skbayes_sgld.posterior import (
    BetaBinomial,
    Binomial,
    Exponential,
    Flat,
    GLMPosterior,
    InverseGamma,
    Normal,
)
from skbayes_sgld.posterior.likelihoods import as_totals
from skbayes_sgld.sampling.tuning.mode import find_mode
from tests.numeric import derivative
from tests.references.closed_forms import importance_sampling, laplace_fit


def scattered(n, correlation=0.15, seed=0, most=30):
    """Successes, and trials."""
    rng = np.random.default_rng(seed)
    X, trials = rng.standard_normal((n, 2)) + [0.0, 1.0], rng.integers(1, most, n)
    p, r = special.expit(0.8 * X[:, 0] - 0.3 * X[:, 1] - 0.4), (1.0 - correlation) / correlation
    return X, rng.binomial(trials, rng.beta(p * r, (1.0 - p) * r)).astype(float), trials


def law(eta, log_odds, trials):
    """Scipy's distribution."""
    p, r = special.expit(eta), np.exp(-log_odds)
    return stats.betabinom(trials, p * r, (1.0 - p) * r)


def log_likelihood(theta, X, y, trials, weight=1.0):
    """Log likelihood ``(S,)`` at coefficients, intercept and log odds of rho ``(S, P)``."""
    eta = theta[:, :2] @ X.T + theta[:, 2:3]
    return (weight * law(eta, theta[:, 3:], trials).logpmf(y)).sum(axis=1)


@pytest.fixture(scope="module")
def fitted():
    X, y, trials = scattered(200)
    return SGLDBetaBinomialRegressor(random_state=0).fit(X, y, n_trials=trials)


def test_the_mode_under_flat_priors_is_the_maximum_likelihood_estimate():
    X, y, trials = scattered(400)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, 400)
    flat = InverseGamma(1e-9, 1e-9)  # in the log odds
    totals = as_totals(y, trials)
    posterior = GLMPosterior(X, totals, BetaBinomial(), Flat(), flat, sample_weight=weight)
    found = find_mode(posterior, posterior.start()).theta
    data = X, y, trials, weight
    best = optimize.minimize(lambda theta: -log_likelihood(theta[None], *data)[0], np.zeros(4)).x
    np.testing.assert_allclose(found, best, atol=2e-5)


def test_the_posterior_is_that_of_importance_sampling():
    X, y, trials = scattered(60)
    model = SGLDBetaBinomialRegressor(
        prior=Normal(1.0), intercept_prior=Normal(2.0), correlation_prior=Exponential(0.8)
    )
    model.set_params(n_draws=4000, random_state=0).fit(X, y, n_trials=trials)

    def log_density(theta):
        root = np.exp(0.5 * theta[:, 3])  # exponential, and its Jacobian
        prior = stats.norm.logpdf(theta[:, :3], 0.0, [1.0, 1.0, 2.0]).sum(axis=1)
        return log_likelihood(theta, X, y, trials) + prior - root / 0.8 + 0.5 * theta[:, 3]

    exact = importance_sampling(
        log_density,
        *laplace_fit(log_density, 4),
        transform=lambda theta: np.column_stack([theta[:, :3], special.expit(theta[:, 3])]),
        n_draws=20_000,
    )
    draws, summary = model.posterior_.flat, model.posterior_.summary()
    error = np.hypot(summary["mcse_mean"], exact.sd / np.sqrt(exact.ess))
    assert np.all(np.abs(draws.mean(axis=0) - exact.mean) < 4.0 * error)
    np.testing.assert_allclose(draws.std(axis=0), exact.sd, rtol=0.06)
    assert model.correlation_ == pytest.approx(draws[:, 3].mean())
    assert list(summary.index)[-1] == "correlation"


def test_blocks_batches_and_sparse_rows_give_the_posterior_of_arrays(monkeypatch):
    X, y, trials = scattered(3000)
    model = SGLDBetaBinomialRegressor(random_state=0)
    whole = model.fit(X, y, n_trials=trials).posterior_.flat
    parts = np.array_split(np.arange(3000), 3)

    def read():
        return ((X[rows], y[rows], None, trials[rows]) for rows in parts)

    fits = {"sparse": SGLDBetaBinomialRegressor(random_state=1)}
    fits["sparse"].fit(sparse.csr_array(X), y, n_trials=trials)
    fits["blocks"] = SGLDBetaBinomialRegressor(random_state=1)
    fits["blocks"].fit(RowBlocks(read, pool_size=800))
    monkeypatch.setattr(sampled, "_KEPT_BATCHES", 2000)  # a normal density for all but the last
    fits["batches"] = SGLDBetaBinomialRegressor(random_state=1)
    for rows in parts:
        fits["batches"].partial_fit(X[rows], y[rows], n_trials=trials[rows])
    sd = whole.std(axis=0)
    for name, fit in fits.items():
        draws = fit.posterior_.flat
        far = np.abs(draws.mean(axis=0) - whole.mean(axis=0)) / sd
        assert far.max() < 0.15, name  # Monte Carlo errors of 0.03, and what the sample leaves
        np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1, err_msg=name)
    known = model.score(X, y, n_trials=trials)
    assert model.score(RowBlocks(read)) == pytest.approx(known)


def test_learned_scales_and_few_rows_give_a_posterior():
    X, y, trials = scattered(200)
    model = SGLDBetaBinomialRegressor(prior="hierarchical_normal", random_state=0)
    plain = SGLDBetaBinomialRegressor(random_state=0).fit(X, y, n_trials=trials)
    model.fit(X, y, n_trials=trials)
    sd = plain.posterior_.flat.std(axis=0)
    assert np.all(np.abs(model.coef_ - plain.coef_) < sd[:2])
    assert abs(model.correlation_ - plain.correlation_) < 0.3 * sd[3]
    wide = np.random.default_rng(0).standard_normal((8, 10))
    settings = {"n_draws": 500, "prior": Normal(0.3), "intercept_prior": Normal(1.0)}
    draws = []
    for seed, name in enumerate(("row_space", "centered")):
        each = SGLDBetaBinomialRegressor(parameterization=name, random_state=seed, **settings)
        draws.append(each.fit(wide, y[:8], n_trials=trials[:8]).posterior_.flat)
    away = (draws[0].mean(axis=0) - draws[1].mean(axis=0)) / draws[1].std(axis=0)
    assert np.abs(away).max() < 0.25


# ---- the likelihood ------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 2, 7, 60, 3000])
def test_distributions_are_those_of_scipy(trials):
    rng, likelihood = np.random.default_rng(trials), BetaBinomial()
    u = rng.uniform(-3.0, 3.0, (30, 2, 9)) * [[1.0], [1.3]] - [[0.0], [1.0]]
    u = np.concatenate([u, np.full((30, 1, 9), float(trials))], axis=1)
    known = law(u[:, 0], u[:, 1], trials)
    y = rng.binomial(trials, rng.beta(0.7, 0.7, (30, 1))).astype(float)
    y[:2], y[2:4] = 0.0, trials
    np.testing.assert_allclose(likelihood.log_density(u, y), known.logpmf(y), rtol=1e-8, atol=1e-9)
    assert np.all(likelihood.log_density(u, y + trials + 1.0) == -np.inf)
    np.testing.assert_allclose(likelihood.mean(u), known.mean(), rtol=1e-12)
    np.testing.assert_allclose(likelihood.variance(u), known.var(), rtol=1e-10)
    for t in (y, y + 0.5, np.full_like(y, -1.0), np.full_like(y, trials + 3.0)):
        np.testing.assert_allclose(likelihood.cdf(u, t), known.cdf(t), atol=1e-9)


@pytest.mark.parametrize("trials", [1, 2, 30, 10**5])
def test_derivatives_are_those_of_the_density(trials):
    rng, likelihood = np.random.default_rng(trials), BetaBinomial()
    u = np.stack([rng.uniform(-6.0, 6.0, (1, 60)), rng.uniform(-9.0, 4.0, (1, 60))], axis=1)
    y = np.round(trials * rng.beta(0.6, 0.6, 60))
    y[:6], y[6:12] = 0.0, trials
    totals, scale = as_totals(y, trials), 1.0 + trials
    for k in range(2):
        way = np.zeros((1, 2, 1))
        way[:, k] = 1.0
        slope = derivative(
            lambda x, way=way: likelihood.log_density(u + x[0] * way, totals)[0], [0.0]
        )
        found = likelihood.score(u, totals)[0, k]
        np.testing.assert_allclose(found / scale, slope.ravel() / scale, atol=1e-8)
        bend = derivative(lambda x, way=way: likelihood.score(u + x[0] * way, totals)[0], [0.0])
        found = likelihood.curvature(u, totals)[0, :, k]
        np.testing.assert_allclose(found / scale, -bend.reshape(found.shape) / scale, atol=1e-8)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-9), (np.float32, 2e-5)])
def test_without_correlation_totals_are_binomial(dtype, tolerance):
    rng = np.random.default_rng(0)
    eta = rng.uniform(-5.0, 5.0, (1, 1, 500))
    trials = rng.integers(1, 2000, 500)
    totals = as_totals(rng.binomial(trials, special.expit(eta[0, 0])), trials)
    value, score = Binomial().bind(totals).value_and_score(eta.copy())
    for log_odds in (-40.0, -200.0):
        u = np.concatenate([eta, np.full_like(eta, log_odds)], axis=1).astype(dtype)
        found, slope = BetaBinomial().bind(totals, dtype=dtype).value_and_score(u)
        np.testing.assert_allclose(found, value, rtol=tolerance, atol=1e3 * tolerance)
        np.testing.assert_allclose(slope[:, :1], score, rtol=tolerance, atol=1e3 * tolerance)
        np.testing.assert_allclose(slope[:, 1], 0.0, atol=1e3 * tolerance)


def test_far_out_nothing_overflows():
    likelihood, y = BetaBinomial(), as_totals(np.array([0.0, 3.0, 9.0]), 9.0)
    for eta in (-2000.0, 2000.0):
        for log_odds in (-500.0, 0.0, 500.0):
            u = np.broadcast_to(np.array([eta, log_odds])[None, :, None], (1, 2, 3))
            assert np.isfinite(likelihood.log_density(u, y)).all()
            assert np.isfinite(likelihood.score(u, y)).all()
            assert np.isfinite(likelihood.curvature(u, y)).all()


def test_the_start_is_near_the_truth():
    X, y, trials = scattered(4000, correlation=0.3)
    level, log_odds = BetaBinomial().start(as_totals(y, trials), None, True)
    assert special.expit(level) == pytest.approx(y.sum() / trials.sum())
    # what the columns explain is in it too
    assert 0.25 < special.expit(log_odds) < 0.6


# ---- predictions ---------------------------------------------------------------------------------


def test_predictions_are_those_of_the_draws(fitted):
    X, y, trials = scattered(250, seed=3)
    draws = fitted.sample_posterior()
    eta, log_odds = X @ draws.coef.T + draws.intercept, special.logit(draws.correlation)
    known = law(eta, log_odds, trials[:, None])
    p = special.expit(eta)
    each = known.logpmf(y[:, None])
    found = fitted.log_likelihood(X, y, n_trials=trials)
    np.testing.assert_allclose(found.T, each, rtol=1e-8, atol=1e-8)
    density = np.log(np.exp(each).mean(axis=1))
    found = fitted.log_predictive_density(X, y, n_trials=trials)
    np.testing.assert_allclose(found, density, atol=3e-5)
    np.testing.assert_allclose(fitted.predict(X), p.mean(axis=1), rtol=1e-5)
    mean, sd = fitted.predict(X, return_std=True, n_trials=trials)
    np.testing.assert_allclose(mean, trials * p.mean(axis=1), rtol=1e-5)
    variance = known.var().mean(axis=1) + np.square(trials) * p.var(axis=1)
    np.testing.assert_allclose(sd, np.sqrt(variance), rtol=1e-4)
    found = fitted.predict_cdf(X, y, n_trials=trials)
    quantile = fitted.predict_quantiles(X, [0.05, 0.95], n_trials=trials)
    few = slice(10)  # scipy's take seconds
    known = law(eta[few], log_odds, trials[few, None])
    np.testing.assert_allclose(found[few], known.cdf(y[few, None]).mean(axis=1), atol=3e-6)
    for j, q in enumerate((0.05, 0.95)):
        at = quantile[few, j, None]
        assert np.all(known.cdf(at).mean(axis=1) >= q - 3e-6)
        assert np.all(known.cdf(at - 1.0).mean(axis=1) < q + 3e-6)
    drawn = fitted.sample_y(X[:5], 4000, random_state=1, n_trials=trials[:5])
    assert np.all(np.abs(drawn.mean(axis=1) - mean[:5]) < 4.5 * sd[:5] / np.sqrt(4000))
    np.testing.assert_allclose(drawn.std(axis=1), sd[:5], rtol=0.12)
    means = fitted.posterior_mean_draws(X[:5], n_trials=trials[:5])
    np.testing.assert_allclose(means, (trials[:5, None] * p[:5]).T, rtol=1e-6)


def test_leave_one_out_is_that_of_the_draws(fitted):
    X, y, trials = scattered(200)
    found = loo(fitted, X, y, n_trials=trials)
    within = fitted.log_predictive_density(X, y, n_trials=trials).sum()
    assert 1.0 < within - found.elpd < 10.0  # four parameters


def test_intervals_hold_where_those_of_a_binomial_model_do_not():
    shares = []
    for seed in range(4):
        X, y, trials = scattered(400, correlation=0.2, seed=seed)
        new = scattered(1000, correlation=0.2, seed=seed + 100)
        model = SGLDBetaBinomialRegressor(n_draws=250, random_state=0)
        model.fit(X, y, n_trials=trials)
        interval = model.predict_interval(new[0], 0.9, n_trials=new[2])
        binomial = SGLDLogisticRegression(n_draws=250, random_state=0)
        with pytest.warns(UserWarning, match="SGLDBetaBinomialRegressor"):
            binomial.fit(X, y, n_trials=trials)
        p = binomial.predict_proba(new[0])[:, 1]
        plain = np.column_stack([stats.binom.ppf(q, new[2], p) for q in (0.05, 0.95)])
        shares.append([interval_coverage(new[1], each) for each in (interval, plain)])
        randomised = stats.uniform.rvs(size=1000, random_state=seed)
        most, less = (model.predict_cdf(new[0], new[1] - k, n_trials=new[2]) for k in (0, 1))
        at = less + randomised * (most - less)
        assert stats.kstest(at, "uniform").pvalue > 1e-3
    held, plainly = np.mean(shares, axis=0)
    assert held > 0.9  # whole numbers: they hold more
    assert plainly < 0.75


def test_the_score_is_the_binomial_deviance_explained(fitted):
    X, y, trials = scattered(300, seed=5)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)

    def left(p):
        log_density = stats.binom.logpmf(y, trials, p) - stats.binom.logpmf(y, trials, y / trials)
        return -2.0 * weight @ log_density

    alone = np.full(300, weight @ y / (weight @ trials))
    known = 1.0 - left(fitted.predict(X)) / left(alone)
    assert fitted.score(X, y, weight, n_trials=trials) == pytest.approx(known, rel=1e-9)
    with pytest.raises(ValueError, match="y has the value .*, of n_trials=1"):
        fitted.score(X, y)


def test_trials_are_routed_through_pipelines_and_searches():
    X, y, trials = scattered(150)
    with config_context(enable_metadata_routing=True):
        model = SGLDBetaBinomialRegressor(n_draws=200, random_state=0)
        model.set_fit_request(n_trials=True).set_score_request(n_trials=True)
        pipe = make_pipeline(StandardScaler(), model)
        found = cross_validate(pipe, X, y, params={"n_trials": trials}, cv=3)
        assert np.all(found["test_score"] > 0.0)
        pipe.fit(X, y, n_trials=trials)
    ends = predict_interval(pipe, X, 0.9, n_trials=trials)
    assert interval_coverage(y, ends) > 0.85


def test_the_prior_is_drawn_from():
    model = SGLDBetaBinomialRegressor(
        prior=Normal(0.001), intercept_prior=Normal(0.001), correlation_prior=Exponential(0.5)
    )
    X = np.zeros((1, 1))
    y = model.sample_prior(X + np.arange(2)[:, None], 20_000, n_trials=2)[0]
    # two trials of probability 1 / 2 agree with probability (1 + rho) / 2
    square = np.square(np.random.default_rng(0).exponential(0.5, 100_000))
    agree = np.mean(y != 1)
    assert agree == pytest.approx(0.5 + 0.5 * np.mean(square / (1.0 + square)), abs=0.015)


REFUSED = {
    "no trials": (lambda X, y, n: {}, "n_trials is None; give the trials of each row"),
    "too few": (lambda X, y, n: {"n_trials": 1}, "y has the value .*, of n_trials=1"),
    "negative": (lambda X, y, n: {"n_trials": -n}, "n_trials has the value -.* in row 0"),
    "some": (lambda X, y, n: {"n_trials": n[:3]}, r"n_trials has shape \(3,\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_totals_that_cannot_be_used_are_refused(case):
    given, message = REFUSED[case]
    X, y, trials = scattered(50)
    with pytest.raises(ValueError, match=message):
        SGLDBetaBinomialRegressor().fit(X, y, **given(X, y, trials))


def test_settings_that_cannot_be_used_are_refused():
    X, y, trials = scattered(50)
    with pytest.raises(ValueError, match="correlation_prior=.*is improper"):
        SGLDBetaBinomialRegressor(correlation_prior="flat").fit(X, y, n_trials=trials)
    with pytest.raises(ValueError, match=r"correlation_prior\.scale=-1"):
        SGLDBetaBinomialRegressor(correlation_prior=Exponential(-1.0)).fit(X, y, n_trials=trials)
    blocks = RowBlocks(lambda: [(X, y)])
    with pytest.raises(ValueError, match="the blocks have no n_trials"):
        SGLDBetaBinomialRegressor().fit(blocks)
    with pytest.raises(ValueError, match="all trials have one outcome"):
        SGLDBetaBinomialRegressor(prior="flat").fit(X, trials, n_trials=trials)


def test_known_correlation_keeps_the_rows():
    """The posterior of the linear parameters at a known correlation takes records too."""
    X, y, trials = scattered(30)
    posterior = GLMPosterior(X, as_totals(y, trials), BetaBinomial(), Normal(1.0))
    given = posterior.given_own(np.array([-1.5]))
    theta = np.random.default_rng(0).standard_normal((3, given.n_params))
    whole = np.column_stack([theta, np.full(3, -1.5)])
    found, known = given.grad_log_likelihood(theta), posterior.grad_log_likelihood(whole)
    np.testing.assert_allclose(found, known[:, :-1], rtol=1e-10)
    few = [each.with_rows(X[:9], posterior.y[:9], None, None) for each in (given, posterior)]
    for each in few:
        vars(each)["_columns"] = None  # the columns have their spread by trials
    np.testing.assert_array_equal(*(each.column_spread for each in few))
    assert given.likelihood.totals
