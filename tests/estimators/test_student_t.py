"""Heavy-tailed noise: mode by SciPy and statsmodels, posterior by importance sampling, all fits."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import optimize, sparse, stats

from skbayes_sgld import RowBlocks, SGLDLinearRegression, check_model
from skbayes_sgld.estimators import sampled
from skbayes_sgld.metrics import interval_coverage
from skbayes_sgld.posterior import (
    Gaussian,
    GLMPosterior,
    InverseGamma,
    LogLinearNoise,
    LogNormal,
    Normal,
    StudentTNoise,
)
from skbayes_sgld.sampling.tuning.mode import find_mode
from tests.references.closed_forms import importance_sampling, laplace_fit


def heavy(n, df=3.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) + [0.0, 1.0]
    return X, X @ [1.0, -0.5] + 2.0 + 0.7 * rng.standard_t(df, n)


def student_t(**settings):
    return SGLDLinearRegression(noise_distribution="student_t", random_state=0, **settings)


def log_likelihood(theta, X, y):
    """Log likelihood ``(S,)`` at coefficients, intercept, log sigma^2 and log nu ``(S, 5)``."""
    eta = theta[:, :2] @ X.T + theta[:, 2:3]
    return stats.t.logpdf(y, np.exp(theta[:, 4:]), eta, np.exp(0.5 * theta[:, 3:4])).sum(axis=1)


def log_prior(theta):
    """Normal coefficients, inverse gamma scale, and degrees of freedom Gamma(2, rate 0.1)."""
    squared, degrees = np.exp(theta[:, 3]), np.exp(theta[:, 4])
    value = stats.norm.logpdf(theta[:, :3], 0.0, [1.0, 1.0, 3.0]).sum(axis=1)
    value += stats.invgamma.logpdf(squared, 2.0, scale=1.5) + theta[:, 3]
    return value + stats.gamma.logpdf(degrees, 2.0, scale=1.0 / 0.1) + theta[:, 4]


PRIORS = {
    "prior": Normal(1.0),
    "intercept_prior": Normal(3.0),
    "noise_prior": InverseGamma(2.0, 1.5),
}


def mode_by_scipy(log_density, start):
    loss = lambda theta: -log_density(theta[None])[0]  # noqa: E731
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    begin = optimize.minimize(loss, start).x
    return optimize.minimize(loss, begin, method="Nelder-Mead", options=options).x


def test_the_mode_is_that_of_scipy():
    X, y = heavy(150)
    model = student_t(**PRIORS).fit(X, y)
    posterior = GLMPosterior(
        X,
        y,
        StudentTNoise(),
        Normal(1.0),
        (InverseGamma(2.0, 1.5), model.degrees_of_freedom_prior_),
        intercept_prior=Normal(3.0),
    )
    found = find_mode(posterior, posterior.start()).theta
    expected = mode_by_scipy(lambda t: log_likelihood(t, X, y) + log_prior(t), np.zeros(5))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_maximum_likelihood_is_that_of_statsmodels():
    tmodel = pytest.importorskip("statsmodels.miscmodels.tmodel")
    X, y = heavy(300)
    vague = LogNormal(width=1e6, median=1.0)  # in the logarithms, the likelihood alone
    posterior = GLMPosterior(X, y, StudentTNoise(), Normal(1e6), (vague, vague))
    found = find_mode(posterior, posterior.start()).theta
    design = np.column_stack([X, np.ones(len(y))])
    theirs = tmodel.TLinearModel(y, design).fit(
        start_params=np.array([1.0, -0.5, 2.0, 4.0, 0.7]), method="bfgs", gtol=1e-7, disp=False
    )
    ours = np.concatenate([found[:3], [np.exp(found[4]), np.exp(0.5 * found[3])]])
    np.testing.assert_allclose(ours, np.abs(theirs.params) * np.sign(ours), rtol=1e-4)


def test_the_posterior_is_that_of_importance_sampling():
    X, y = heavy(40)
    model = student_t(**PRIORS, n_draws=4000).fit(X, y)

    def log_density(theta):
        return log_likelihood(theta, X, y) + log_prior(theta)

    exact = importance_sampling(
        log_density,
        *laplace_fit(log_density, 5),
        transform=lambda theta: np.column_stack([theta[:, :3], np.exp(theta[:, 3:])]),
        n_draws=40_000,
    )
    draws, summary = model.posterior_.flat, model.posterior_.summary()
    error = np.hypot(summary["mcse_mean"], exact.sd / np.sqrt(exact.ess))
    assert np.all(np.abs(draws.mean(axis=0) - exact.mean) < 4.0 * error)
    np.testing.assert_allclose(draws.std(axis=0), exact.sd, rtol=0.1)


def test_the_mode_with_log_linear_noise_is_that_of_scipy():
    X, y = heavy(300)
    y = y + (np.exp(0.4 * X[:, 0]) - 1.0) * (y - X @ [1.0, -0.5] - 2.0)
    noise = LogLinearNoise(columns=[0], scale=0.8)
    model = student_t(**PRIORS, noise_model=noise).fit(X, y)
    names = ["coef[x0]", "coef[x1]", "intercept", "noise_coef[x0]", "noise_intercept"]
    assert list(model.summary().index) == [*names, "degrees_of_freedom"]
    posterior = noise.bind(
        X,
        y,
        StudentTNoise(),
        Normal(1.0),
        (InverseGamma(2.0, 1.5), model.degrees_of_freedom_prior_),
        intercept_prior=Normal(3.0),
    )
    found = find_mode(posterior, posterior.start()).theta
    z = X[:, 0] - X[:, 0].mean()

    def log_density(theta):
        """Of coefficients, intercept, log sigma^2 at the mean, log nu, and alpha."""
        eta = theta[:, :2] @ X.T + theta[:, 2:3]
        sd = np.exp(0.5 * theta[:, 3:4] + theta[:, 5:] * z)
        value = stats.t.logpdf(y, np.exp(theta[:, 4:5]), eta, sd).sum(axis=1)
        return value + log_prior(theta[:, :5]) + stats.norm.logpdf(theta[:, 5], 0.0, 0.8)

    expected = mode_by_scipy(log_density, np.zeros(6))
    inferred = found[[0, 1, 2, 4, 5, 3]] * [1.0, 1.0, 1.0, 1.0, 1.0, 0.5]
    np.testing.assert_allclose(inferred, expected, atol=1e-5)
    assert model.noise_coef_[0] == pytest.approx(0.4, abs=0.2)
    back = posterior.reported.theta(posterior.reported.values(found[None]))
    np.testing.assert_allclose(back, found[None], atol=1e-12)


def test_blocks_batches_and_sparse_rows_give_the_posterior_of_arrays(monkeypatch):
    X, y = heavy(3000)
    whole = student_t().fit(X, y).posterior_.flat
    parts = np.array_split(np.arange(3000), 3)

    def read():
        return ((X[rows], y[rows]) for rows in parts)

    fits = {
        name: student_t().set_params(random_state=1) for name in ("sparse", "blocks", "batches")
    }
    fits["sparse"].fit(sparse.csr_array(X), y)
    fits["blocks"].fit(RowBlocks(read, pool_size=800))
    monkeypatch.setattr(sampled, "_KEPT_BATCHES", 2000)  # a normal density for all but the last
    for rows in parts:
        fits["batches"].partial_fit(X[rows], y[rows])
    sd = whole.std(axis=0)
    for name, fit in fits.items():
        draws = fit.posterior_.flat
        far = np.abs(draws.mean(axis=0) - whole.mean(axis=0)) / sd
        assert far.max() < 0.2, name  # Monte Carlo errors of 0.03, and what the sample leaves
        np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1, err_msg=name)
    with pytest.raises(ValueError, match="noise_model='log_linear' has no sums"):
        student_t(noise_model="log_linear").fit(RowBlocks(read))


def test_intervals_hold_where_those_of_normal_noise_do_not():
    X, y = heavy(2400, df=2.5)
    train, test = slice(0, 800), slice(800, None)
    held = {}
    for family in ("normal", "student_t"):
        model = student_t(n_draws=250).set_params(noise_distribution=family)
        with pytest.warns(UserWarning) if family == "normal" else nullcontext():
            model.fit(X[train], y[train])
        interval = model.predict_interval(X[test], coverage=[0.5, 0.9])
        held[family] = [interval_coverage(y[test], interval[..., k]) for k in range(2)]
    print(held)
    assert held["normal"][0] > 0.6  # a few large residuals widen all intervals
    # 1,600 rows, and quantiles that 800 rows determine: standard errors of 0.02 and 0.013
    np.testing.assert_allclose(held["student_t"], [0.5, 0.9], atol=0.05)


def test_the_interval_is_of_the_mixture_of_the_draws():
    X, y = heavy(100)
    model = student_t(n_draws=250).fit(X, y)
    draws = model.sample_posterior()
    for n in (5, 220):  # few rows draw by draw, many by a quadrature
        rows = np.resize(X, (n, 2))
        interval = model.predict_quantiles(rows, [1e-4, 0.05, 0.5, 0.95])
        for k in (0, n - 1):
            eta = draws.coef @ rows[k] + draws.intercept
            sd = np.sqrt(draws.noise_variance)
            p = stats.t.cdf(interval[k][:, None], draws.degrees_of_freedom, eta, sd).mean(axis=1)
            np.testing.assert_allclose(p, [1e-4, 0.05, 0.5, 0.95], rtol=2e-4)
            density = stats.t.pdf(y[0], draws.degrees_of_freedom, eta, sd).mean()
            found = model.log_predictive_density(rows, np.full(n, y[0]))[k]
            assert found == pytest.approx(np.log(density), abs=3e-5)


def test_the_standard_deviation_is_infinite_without_a_variance():
    X, y = heavy(200, df=1.0)
    model = student_t().fit(X, y)
    mean, std = model.predict(X[:3], return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(std == np.inf)
    assert np.all(np.isfinite(model.predict_interval(X[:3], 0.99)))
    y_new = model.sample_y(np.resize(X[:1], (1, 2)), 3000, random_state=0)[0]
    low, high = model.predict_interval(X[:1], 0.9)[0]
    assert np.mean((low <= y_new) & (y_new <= high)) == pytest.approx(0.9, abs=0.025)


def test_many_degrees_of_freedom_are_normal_noise():
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.standard_normal((3, 2, 5)), np.full((3, 1, 5), 40.0)], axis=1)
    y = rng.standard_normal(5)
    t, normal = StudentTNoise(), Gaussian()
    for name in ("log_density", "score", "curvature"):
        of_t, of_normal = getattr(t, name)(u, y), getattr(normal, name)(u[:, :2], y)
        part = of_t if name == "log_density" else of_t[:, :2]
        part = part[:, :, :2] if name == "curvature" else part
        np.testing.assert_allclose(part, of_normal, atol=1e-12, err_msg=name)


def test_a_change_of_units_changes_the_scale_alone():
    X, y = heavy(100)
    one, other = student_t().fit(X, y), student_t().fit(X, 1e6 * y)
    np.testing.assert_allclose(other.coef_, 1e6 * one.coef_, rtol=1e-5)
    assert other.degrees_of_freedom_ == pytest.approx(one.degrees_of_freedom_, rel=1e-5)


def test_settings_that_do_not_go_with_it_are_refused():
    X, y = heavy(50)
    with pytest.raises(ValueError, match="noise_distribution='cauchy' is not known.*'student_t'"):
        SGLDLinearRegression(noise_distribution="cauchy").fit(X, y)
    with pytest.raises(ValueError, match=r"noise_variance=2\.0 fixes the noise.*'infer'"):
        student_t(noise_variance=2.0).fit(X, y)
    for name in ("prior", "intercept_prior"):
        with pytest.raises(ValueError, match=f"{name}='conjugate_normal' is conjugate to normal"):
            student_t(**{name: "conjugate_normal"}).fit(X, y)
    with pytest.raises(ValueError, match="degrees_of_freedom_prior=.*is improper"):
        student_t(degrees_of_freedom_prior="flat").fit(X, y)


def test_a_check_of_heavy_tails_suggests_it():
    X, y = heavy(400)
    normal = SGLDLinearRegression(random_state=0, n_draws=250)
    with pytest.warns(UserWarning, match="set noise_distribution='student_t'"):
        normal.fit(X, y)
    found = check_model(normal, X, y)
    assert found.suggestion.noise_distribution == "student_t"
    better = found.suggestion.fit(X, y)
    assert not check_model(better, X, y).table["verdict"].eq("misfit").any()
