"""Families with a parameter of their own: mode and posterior by scipy, and every way to fit."""

import numpy as np
import pytest
from scipy import sparse, special

from skbayes_sgld import SGLDGammaRegressor
from skbayes_sgld.likelihoods import (
    BetaBinomial,
    Binomial,
    NegativeBinomial,
    NormalNoise,
    Poisson,
    StudentTNoise,
    as_totals,
)
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.priors import Exponential, Normal
from skbayes_sgld.rows import stream as streams
from tests.estimators.families import FAMILIES, coordinate, every_family, log_mass
from tests.marks import slow
from tests.references.closed_forms import importance_sampling, laplace_fit

QUICK = ("negative_binomial", "student_t")  # with an argument by row, and without

# ---- the posterior -------------------------------------------------------------------------------


@every_family
def test_the_posterior_is_that_of_importance_sampling(family):
    X, y, row = data = family.make(50)
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 50)
    model = family.estimator(**family.priors(), n_draws=4000)
    model.fit(X, y, weight, **family.given(row))
    log_density = family.log_density(data, weight)
    exact = importance_sampling(
        log_density,
        *laplace_fit(log_density, 3 + len(family.own)),
        transform=lambda theta: np.column_stack([theta[:, :3], family.report(theta[:, 3:])]),
        n_draws=40_000,
    )
    draws, summary = model.posterior_.flat, model.summary()
    error = np.hypot(summary["mcse_mean"], exact.sd / np.sqrt(exact.ess))
    assert np.all(np.abs(draws.mean(axis=0) - exact.mean) < 4.0 * error)
    np.testing.assert_allclose(draws.std(axis=0), exact.sd, rtol=0.1)
    assert tuple(summary.index[3:]) == family.names
    for k, name in enumerate(family.names):
        assert getattr(model, f"{name}_") == pytest.approx(draws[:, 3 + k].mean())


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, id=name) if name in QUICK else slow(family, id=name)
        for name, family in FAMILIES.items()
    ],
)
def test_blocks_batches_and_sparse_rows_give_the_posterior_of_arrays(family, monkeypatch):
    from tests.blocks.windows import blocks_of

    X, y, row = family.make(1200)
    model = family.estimator(n_draws=500)
    whole = model.fit(X, y, **family.given(row)).posterior_.flat
    parts = np.array_split(np.arange(1200), 2)

    blocks = blocks_of(X, y, None, row, size=400, pool_size=400)
    fits = {
        name: family.estimator(n_draws=500, random_state=1)
        for name in ("sparse", "blocks", "batches")
    }
    fits["sparse"].fit(sparse.csr_array(X), y, **family.given(row))
    fits["blocks"].fit(blocks)
    monkeypatch.setattr(streams, "_KEPT", 800)  # a normal density for all but the last
    for some in parts:
        of_rows = family.given(None if row is None else row[some])
        fits["batches"].partial_fit(X[some], y[some], **of_rows)
    sd = whole.std(axis=0)
    for name, fit in fits.items():
        draws = fit.posterior_.flat
        far = np.abs(draws.mean(axis=0) - whole.mean(axis=0)) / sd
        assert far.max() < 0.2, name  # Monte Carlo errors of 0.03, and what the sample leaves
        np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1, err_msg=name)
    known = model.score(X, y, **family.given(row))
    assert model.score(blocks) == pytest.approx(known)


@pytest.mark.slow
def test_a_learned_scale_keeps_the_posterior_of_many_rows():
    family = FAMILIES["student_t"]
    X, y, _ = family.make(200)
    learned, plain = (
        family.estimator(prior=prior, n_draws=500).fit(X, y)
        for prior in ("hierarchical_normal", "normal")
    )
    sd = plain.summary()["sd"]
    assert np.all(np.abs(learned.coef_ - plain.coef_) < sd.iloc[:2])
    for name in family.names:
        assert abs(getattr(learned, f"{name}_") - getattr(plain, f"{name}_")) < 0.3 * sd[name]


@pytest.mark.parametrize("name", ["beta_binomial", slow("negative_binomial"), slow("student_t")])
def test_few_rows_have_the_same_posterior_in_the_space_of_the_rows(name):
    family = FAMILIES[name]  # a gamma model fits eight rows by ten columns as well as one likes
    X, y, row = family.make(200)
    wide, some = np.random.default_rng(0).standard_normal((8, 10)), slice(0, 8)
    of_rows = family.given(None if row is None else row[some])
    settings = {"n_draws": 500, "prior": Normal(0.3), "intercept_prior": Normal(1.0)}
    draws = []
    for seed, space in enumerate(("row_space", "centered")):
        each = family.estimator(**settings, parameterization=space, random_state=seed)
        draws.append(each.fit(wide, y[some], **of_rows).posterior_.flat)
    away = (draws[0].mean(axis=0) - draws[1].mean(axis=0)) / draws[1].std(axis=0)
    assert np.abs(away).max() < 0.25


@pytest.mark.parametrize("name", ["gamma", slow("student_t")])
def test_the_unit_of_y_changes_no_parameter_but_level_and_scale(name):
    family = FAMILIES[name]
    X, y, _ = family.make(100)
    one, other = (family.estimator().fit(X, unit * y) for unit in (1.0, 1e4))
    interval = other.predict_interval(X[:5])
    np.testing.assert_allclose(interval, 1e4 * one.predict_interval(X[:5]), rtol=1e-4)
    own = f"{family.names[-1]}_"
    assert getattr(other, own) == pytest.approx(getattr(one, own), rel=1e-5)


# ---- predictions ---------------------------------------------------------------------------------


# 100 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_family
def test_predictions_are_those_of_the_draws(family):
    X, y, row = family.make(150)
    model = family.estimator(n_draws=100).fit(X, y, **family.given(row))
    few = 5  # whose predictions are computed draw by draw
    for n, close in ((few, 1e-9), (200, 2e-4)):  # many by a quadrature
        at, of_y = np.resize(X, (n, 2)), np.resize(y, n)
        of_row = None if row is None else np.resize(row, n)
        given = family.given(of_row)
        draws = model.sample_posterior()
        first = slice(0, few)  # scipy's take seconds
        column = None if row is None else of_row[first, None]
        eta = at[first] @ draws.coef.T + draws.intercept
        law = family.law(eta, *(coordinate(family, draws[name]) for name in family.names), column)
        each = log_mass(law, of_y[first, None])
        found = model.log_likelihood(at, of_y, **given)[first]
        exact = 1e-8 if n == few else 1e-6  # many in single precision
        np.testing.assert_allclose(found, each, rtol=exact, atol=exact)
        found = model.log_predictive_density(at, of_y, **given)[first]
        np.testing.assert_allclose(found, np.log(np.exp(each).mean(axis=1)), atol=close)
        mean, sd = model.predict(at, return_std=True, **given)
        np.testing.assert_allclose(mean[first], law.mean().mean(axis=1), rtol=1e-5)
        variance = law.var().mean(axis=1) + law.mean().var(axis=1)
        np.testing.assert_allclose(sd[first], np.sqrt(variance), rtol=1e-3)
        found = model.predict_cdf(at, of_y, **given)[first]
        np.testing.assert_allclose(found, law.cdf(of_y[first, None]).mean(axis=1), atol=close)
        quantile = model.predict_quantiles(at, [1e-4, 0.05, 0.95], **given)[first]
        for j, q in enumerate((1e-4, 0.05, 0.95)):
            at_most = law.cdf(quantile[:, j, None]).mean(axis=1)
            if not family.likelihood.whole:
                np.testing.assert_allclose(at_most, q, rtol=3e-3, atol=5e-6)
                continue
            assert np.all(at_most >= q - 3e-6)
            assert np.all(law.cdf(quantile[:, j, None] - 1.0).mean(axis=1) < q + 3e-6)
    given = family.given(None if row is None else row[:few])
    drawn = model.sample_y(X[:few], 4000, random_state=1, **given)
    assert np.all(np.abs(drawn.mean(axis=1) - mean[:few]) < 4.5 * sd[:few] / np.sqrt(4000))
    if np.isfinite(sd).all():  # the tails of a t distribution may have no variance
        np.testing.assert_allclose(drawn.std(axis=1), sd[:few], rtol=0.15)
    means = model.posterior_mean_draws(X[:few], **given)
    np.testing.assert_allclose(means, law.mean() + 0.0 * eta, rtol=1e-6)


# ---- the likelihood ------------------------------------------------------------------------------


LIMITS = {
    "beta_binomial": (BetaBinomial(), Binomial(), -1.0),
    "negative_binomial": (NegativeBinomial(), Poisson(), -1.0),
    "student_t": (StudentTNoise(), NormalNoise(), 1.0),
}


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-9), (np.float32, 2e-5)])
@pytest.mark.parametrize("name", LIMITS)
def test_the_limit_of_a_family_is_the_simpler_one(name, dtype, tolerance):
    likelihood, simple, sign = LIMITS[name]
    rng, m = np.random.default_rng(0), simple.n_local
    u = rng.uniform(-5.0, 5.0, (1, m, 500))
    if name == "beta_binomial":
        trials = rng.integers(1, 2000, 500)
        y = as_totals(rng.binomial(trials, special.expit(u[0, 0])), trials)
    else:
        u[:, 0] *= 2.0
        y = simple.sample(u, np.random.RandomState(0))[0].astype(float)
        y[:20] = 0.0
    value, score = simple.bind(RowValues(y)).derivatives(u.copy(), 0, 1)
    size = 1e3 if name == "beta_binomial" else np.abs(value).max()
    for far in (40.0, 200.0):
        at = np.concatenate([u, np.full_like(u[:, :1], sign * far)], axis=1).astype(dtype)
        values = y if y.dtype.names else y.astype(dtype)
        found, slope = likelihood.bind(RowValues(values), dtype).derivatives(at, 0, 1)
        np.testing.assert_allclose(found, value, rtol=tolerance, atol=size * tolerance)
        largest = max(size, np.abs(score).max())
        np.testing.assert_allclose(
            slope[:, :m], score, rtol=50 * tolerance, atol=largest * tolerance
        )
        assert np.abs(slope[:, m]).max() < 10.0 * largest * tolerance


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
    rounded = (
        NegativeBinomial().bind(RowValues(y), np.float32).derivatives(u.astype(np.float32), 0)[0]
    )
    np.testing.assert_allclose(rounded, found, rtol=1e-3, atol=1e-7 * y.max())


# ---- refusals ------------------------------------------------------------------------------------


REFUSED = [
    (name, argument)
    for name, family in FAMILIES.items()
    for argument in family.own
    if argument != "noise_prior"  # may be flat
]


@pytest.mark.parametrize("name, argument", REFUSED)
def test_priors_of_own_parameters_that_cannot_be_used_are_refused(name, argument):
    family = FAMILIES[name]
    X, y, row = family.make(50)
    with pytest.raises(ValueError, match=f"{argument}=FlatNoise.*is improper"):
        family.estimator(**{argument: "flat"}).fit(X, y, **family.given(row))
    with pytest.raises(ValueError, match=rf"{argument}\.scale=-1"):
        family.estimator(**{argument: Exponential(-1.0)}).fit(X, y, **family.given(row))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_intervals_of_a_huge_dispersion_are_numbers():
    # without an intercept, y of any size but 1 leaves the dispersion to hold its level
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 1)) @ np.ones((1, 2))
    y = 1e10 * np.exp(X[:, 0] + rng.standard_normal(5))
    model = SGLDGammaRegressor(fit_intercept=False, n_draws=200, random_state=0).fit(X, y)
    assert model.dispersion_ > 1e8
    assert np.isfinite(model.predict_interval(X)).all()
