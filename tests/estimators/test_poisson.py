"""Counts: the posterior against references that share no code, exposure, and predictions."""

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.linear_model import PoissonRegressor

from skbayes_sgld import SGLDPoissonRegressor
from skbayes_sgld.posterior import ImproperPosteriorError
from skbayes_sgld.priors import Normal
from tests.references.closed_forms import importance_sampling, laplace_fit

SHORT = {"n_draws": 50, "n_burnin": 10, "thin": 1, "step_size": 0.5, "random_state": 0}
# 50 draws a chain are too few, and fit says so
short_run = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def simulate(n, coef, intercept, spread=1.0, log10_exposure=(0.0, 0.0), seed=0):
    rng = np.random.default_rng(seed)
    X = spread * rng.standard_normal((n, len(coef)))
    exposure = 10.0 ** rng.uniform(*log10_exposure, n)
    return X, rng.poisson(exposure * np.exp(X @ coef + intercept)), exposure


def log_posterior(X, y, exposure, weight, scale):
    """The log posterior density as the textbook has it; scale None stands for a flat prior."""

    def log_density(theta):
        eta = theta[:, :-1] @ X.T + theta[:, -1:] + np.log(exposure)
        with np.errstate(over="ignore"):
            each = y * eta - np.exp(eta) - gammaln(y + 1.0)
        prior = 0.0 if scale is None else -0.5 * np.square(theta[:, :-1] / scale).sum(axis=1)
        return each @ weight + prior

    return log_density


CASES = {
    "few rows": (simulate(12, [0.5, -1.0], 0.3), 1.0),
    "few counts, flat": (simulate(60, [0.5], -2.0, seed=3), None),
    "large predictors": (simulate(40, [2.0, -1.0, 0.5], 0.0, spread=3.0, seed=1), 1.0),
    "counts of a million": (simulate(30, [0.3, 0.2], np.log(1e6), seed=2), 1.0),
    "exposures of all sizes": (simulate(80, [0.5, -0.3], -1.0, log10_exposure=(-3, 6)), 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_posterior_is_that_of_importance_sampling(name):
    (X, y, exposure), scale = CASES[name]
    weight = np.random.default_rng(5).integers(1, 3, len(y)).astype(float)
    prior = "flat" if scale is None else Normal(scale)
    model = SGLDPoissonRegressor(prior=prior, random_state=0)
    model.fit(X, y, sample_weight=weight, exposure=exposure)
    log_density = log_posterior(X, y, exposure, weight, scale)
    center = np.append(model.coef_, model.intercept_)  # where the search begins, nothing more
    found = laplace_fit(lambda t: log_density(center + t), len(center))
    seen = importance_sampling(lambda t: log_density(center + t), *found, n_draws=100_000)
    assert seen.ess > 10_000
    table = model.summary()
    error = np.hypot(table["mcse_mean"], seen.sd / np.sqrt(seen.ess))
    assert np.all(np.abs(table["mean"] - center - seen.mean) < 4.5 * error + 0.05 * seen.sd)
    assert np.all(np.abs(table["sd"] / seen.sd - 1.0) < 0.07)


@short_run
@pytest.mark.parametrize(
    ("log10_exposure", "counts", "spread"),
    [((0.0, 0.0), 1.0, 10.0), ((-3.0, 6.0), 1e6, 1.0), ((-3.0, 6.0), 1e6, 10.0)],
)
def test_overdispersed_starts_stay_within_reach(log10_exposure, counts, spread):
    X, y, exposure = simulate(60, [0.5, -0.4], np.log(counts), spread, log10_exposure)
    model = SGLDPoissonRegressor(**SHORT).fit(X, y, exposure=exposure)
    first = model.posterior_.values[:, 0]
    eta = first[:, :2] @ X.T + first[:, 2:]
    assert eta.max() < np.log(y / exposure, where=y > 0, out=np.zeros(60)).max() + 20.0


def test_the_mode_is_the_fit_of_poisson_regressor():
    X, y, exposure = simulate(100, [0.5, -1.0, 0.2], 0.5, log10_exposure=(-1.0, 1.0))
    weight, scale = np.linspace(0.5, 2.0, 100), 0.3
    alpha = 1.0 / (scale**2 * (weight * exposure).sum())
    expected = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=1000)
    expected.fit(X, y / exposure, sample_weight=weight * exposure)
    cold = SGLDPoissonRegressor(
        prior=Normal(scale), temperature=1e-12, n_draws=300, random_state=0
    ).fit(X, y, sample_weight=weight, exposure=exposure)
    np.testing.assert_allclose(cold.coef_, expected.coef_, atol=1e-6)
    assert cold.intercept_ == pytest.approx(expected.intercept_, abs=1e-6)
    np.testing.assert_allclose(cold.predict(X), expected.predict(X), rtol=1e-5)
    scores = [
        cold.score(X, y, sample_weight=weight, exposure=exposure),
        expected.score(X, y / exposure, sample_weight=weight * exposure),
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
    assert cold.score(X, y, exposure=1.0) == pytest.approx(expected.score(X, y), rel=1e-6)


@pytest.fixture(scope="module")
def fitted():
    X, y, exposure = simulate(15, [0.8, -0.5], 1.0, log10_exposure=(-1.0, 1.5))
    return SGLDPoissonRegressor(random_state=0).fit(X, y, exposure=exposure), X, exposure


def scales_of(kind, X, y, weight, exposure):
    """Automatic scales of a fit of an array, of blocks in memory or not, or of a stream."""
    from skbayes_sgld import RowBlocks

    model = SGLDPoissonRegressor(n_draws=20, n_burnin=10, random_state=0)
    if kind == "array":
        return model.fit(X, y, sample_weight=weight, exposure=exposure).prior_.scale
    if kind == "stream":
        return model.partial_fit(X, y, sample_weight=weight, exposure=exposure).prior_.scale
    blocks = [tuple(v[a : a + 50] for v in (X, y, weight, exposure)) for a in range(0, len(y), 50)]
    size = {"few_blocks": 1000, "many_blocks": 100}[kind]
    source = RowBlocks(lambda: iter(blocks), pool_size=size)
    return model.fit(source).prior_.scale


# the tails of these posteriors are heavy
@pytest.mark.filterwarnings("ignore:The standard deviation of")
@pytest.mark.parametrize("prior", ["normal", "hierarchical_normal"])
def test_counts_that_are_all_zero_are_fitted_without_an_intercept(prior):
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = SGLDPoissonRegressor(prior=prior, fit_intercept=False, random_state=0).fit(
        X, np.zeros(60)
    )
    assert np.isfinite(model.posterior_.values).all()
    few = model.predict(X).sum()
    assert 0.0 < few < 70.0 and np.abs(model.coef_).max() < 1.0
    with pytest.raises(ImproperPosteriorError, match=r"y is 0 in every row.*fit_intercept=False"):
        SGLDPoissonRegressor(prior=prior).fit(X, np.zeros(60))
    without = SGLDPoissonRegressor(prior="flat", fit_intercept=False)
    with pytest.raises(ImproperPosteriorError, match=r"one sign.*prior='normal'"):
        without.fit(np.abs(X), np.zeros(60))


# 20 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["array", "stream", "few_blocks", "many_blocks"])
def test_exposures_do_not_change_the_automatic_scale_of_a_column(kind):
    X, y, _ = simulate(400, [0.5, -0.3, 0.0], 0.0)
    X[:, 2] = X[:, 2] > 0.7  # of two values
    weight = np.random.default_rng(1).integers(1, 4, 400).astype(float)
    exposure = np.exp(X[:, 0])  # exposures are large where the first column is
    y = np.minimum(y, 5)
    found = scales_of(kind, X, y, weight, exposure)
    sd = np.sqrt(
        np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    )
    np.testing.assert_allclose(found, 1.0 / np.r_[sd[:2], 1.0], rtol=1e-9)


def test_rows_without_an_event_have_a_score_of_zero(fitted):
    model, rows, _ = fitted
    assert model.score(rows, np.zeros(len(rows)), exposure=1.0) == 0.0


def scored(name, model, X, y):
    from skbayes_sgld.metrics import get_scorer

    return get_scorer(name)(model, X, y)


@pytest.mark.parametrize(
    "judge",
    [
        lambda model, X, y: model.score(X, y),
        lambda model, X, y: model.log_predictive_density(X, y),
        lambda model, X, y: model.log_likelihood(X, y),
        lambda *given: scored("neg_crps", *given),
        lambda *given: scored("log_predictive_density", *given),
    ],
)
def test_counts_without_their_exposures_are_not_judged(fitted, judge):
    model, X, exposure = fitted
    y = np.round(exposure)
    with pytest.raises(ValueError, match="exposure is None.*with exposures.*exposure=exposure"):
        judge(model, X, y)
    rates = y / exposure, exposure  # as of PoissonRegressor
    score = model.score(X, rates[0], sample_weight=rates[1])
    assert score == pytest.approx(model.score(X, y, exposure=exposure))


@pytest.mark.parametrize("prior", ["auto", "normal"])
def test_counts_whose_size_hides_the_mode_are_named(prior):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((8, 3))
    y = np.digitize(X[:, 0] + rng.standard_normal(8), [-1, 1])
    weight = (y != 1).astype(float)
    with pytest.raises(ValueError, match=r"^y has values of size 2e\+18, .* values up to 1e\+12"):
        SGLDPoissonRegressor(prior=prior, random_state=0).fit(X, 1e18 * y, weight)
