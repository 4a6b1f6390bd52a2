"""Averages of several observations: posteriors by closed forms, and their sizes as weights."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    predict_interval,
)
from skbayes_sgld.likelihoods import FixedNormalNoise, NormalNoise
from skbayes_sgld.likelihoods.row_values import NO_VALUES
from skbayes_sgld.posterior import GLMPosterior, LogLinearNoise
from skbayes_sgld.posterior.glm import SharedSums
from skbayes_sgld.posterior.statistics import GaussianStatistics
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Normal
from tests.marks import slow

RNG = np.random.default_rng(0)
N = 150
X = RNG.standard_normal((N, 2)) * [1.0, 3.0] + [0.0, 5.0]
SIZE = RNG.integers(1, 40, N)
EACH = [RNG.normal(x @ [1.0, -0.2] + 2.0, 3.0, k) for x, k in zip(X, SIZE, strict=True)]
Y = np.array([one.mean() for one in EACH])
ROWS = np.repeat(np.arange(N), SIZE)
COSTS = np.exp(0.3 * X[:, 0]) * RNG.gamma(0.8 * SIZE) / (0.8 * SIZE)
FEW = {"n_draws": 50, "n_chains": 2, "random_state": 0}
# 50 draws of two chains are too few, and fit says so
few_draws = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# ---- the posterior -------------------------------------------------------------------------------


def assert_same(summary, mean, sd):
    """Posterior means within Monte Carlo errors, and sds."""
    away = np.abs(summary["mean"] - mean) / summary["mcse_mean"]
    assert away.max() < 4.5
    np.testing.assert_allclose(summary["sd"], sd, rtol=0.08)


def test_under_flat_priors_the_posterior_is_weighted_least_squares():
    sm = pytest.importorskip("statsmodels.api")
    family = sm.families.Gaussian()
    known = sm.GLM(Y, sm.add_constant(X, prepend=False), family=family, var_weights=SIZE).fit()
    model = SGLDLinearRegression(prior="flat", noise_prior="flat", random_state=0)
    found = model.fit(X, Y, n_averaged=SIZE).summary()
    # a t distribution of so many degrees of freedom: the prior is flat in sigma
    free, rest = N - 4, known.scale * (N - 3)
    assert_same(found.iloc[:3], known.params, known.bse * np.sqrt((N - 3) / (free - 2)))
    mean = rest / (free - 2)
    assert_same(found.iloc[3:], mean, mean * np.sqrt(2 / (free - 4)))
    given = SGLDLinearRegression(prior="flat", noise_variance=9.0, random_state=0)
    sd = np.sqrt(np.diagonal(np.linalg.inv(known.model.exog.T * SIZE @ known.model.exog)) * 9.0)
    assert_same(given.fit(X, Y, n_averaged=SIZE).summary(), known.params, sd)


def test_the_gamma_mode_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    family = sm.families.Gamma(sm.families.links.Log())
    known = sm.GLM(COSTS, sm.add_constant(X, prepend=False), family=family, var_weights=SIZE).fit()
    cold = SGLDGammaRegressor(prior="flat", temperature=1e-12, n_draws=300, random_state=0)
    cold.fit(X, COSTS, n_averaged=SIZE)
    np.testing.assert_allclose([*cold.coef_, cold.intercept_], known.params, atol=1e-5)


def test_the_conjugate_posterior_is_the_closed_form():
    V, a, b = np.diag([4.0, 0.25]), 3.0, 5.0
    design = X - [0.0, 5.0]
    gram = design.T * SIZE @ design + np.linalg.inv(V)
    mean = np.linalg.solve(gram, design.T * SIZE @ Y)
    shape, rate = a + N / 2, b + 0.5 * (SIZE @ Y**2 - mean @ gram @ mean)
    variance = rate / (shape - 1.0)
    model = SGLDLinearRegression(
        prior=ConjugateNormal(covariance=V),
        noise_prior=InverseGamma(a, b),
        fit_intercept=False,
        random_state=0,
    )
    found = model.fit(design, Y, n_averaged=SIZE).summary()
    sd = np.sqrt(np.diagonal(np.linalg.inv(gram)) * variance)
    assert_same(found, [*mean, variance], [*sd, variance / np.sqrt(shape - 2.0)])


def test_averages_lack_of_the_raw_rows_what_their_spread_tells_of_the_noise():
    raw, theta = np.concatenate(EACH), RNG.standard_normal((4, 4))
    within = sum(np.square(one - one.mean()).sum() for one in EACH)
    options = {"own_priors": InverseGamma(2.0, 9.0), "intercept_at_mean": False}
    rows = GLMPosterior(X[ROWS], raw, NormalNoise(), Normal(1.0), **options)
    averages = GLMPosterior(X, Y, NormalNoise(), Normal(1.0), n_averaged=SIZE, **options)
    lost = np.zeros((4, 4))
    lost[:, 3] = 0.5 * (within * np.exp(-theta[:, 3]) - (len(raw) - N))
    np.testing.assert_allclose(rows.grad(theta), averages.grad(theta) + lost, rtol=1e-9)
    # with a known variance they are all that the rows tell
    options.pop("own_priors")
    rows = GLMPosterior(X[ROWS], raw, FixedNormalNoise(9.0), Normal(1.0), **options)
    averages = GLMPosterior(X, Y, FixedNormalNoise(9.0), Normal(1.0), n_averaged=SIZE, **options)
    for each in (averages, averages._with(_statistics=None, _sums=SharedSums())):
        np.testing.assert_allclose(rows.grad(theta[:, :3]), each.grad(theta[:, :3]), rtol=1e-8)


def test_sums_over_rows_and_sufficient_statistics_agree():
    weight = RNG.uniform(0.5, 2.0, N)
    model = GLMPosterior(X, Y, NormalNoise(), Normal(1.0), sample_weight=weight, n_averaged=SIZE)
    by_row, theta = model._with(_statistics=None, _sums=SharedSums()), RNG.standard_normal((4, 4))
    apart = model.log_density(theta) - by_row.log_density(theta)  # logs of the sizes
    np.testing.assert_allclose(apart, apart[0], rtol=1e-9)
    np.testing.assert_allclose(model.grad(theta), by_row.grad(theta), rtol=1e-8)
    np.testing.assert_allclose(
        model.curvature(theta[0]), by_row.curvature(theta[0]), rtol=1e-8, atol=1e-9
    )
    parts = [
        GaussianStatistics.from_rows(X[some], Y[some], weight[some], size=SIZE[some])
        for some in (slice(0, 60), slice(60, None))
    ]
    all_rows = parts[0].plus(parts[1])
    rows, values = all_rows.as_rows()
    again = GaussianStatistics.from_rows(rows, values.y, values.weight, size=values.n_averaged)
    for name in ("total", "n_rows", "mean", "products"):
        np.testing.assert_allclose(getattr(again, name), getattr(all_rows, name), rtol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [{}, {"prior": "hierarchical_normal"}, {"noise_model": "log_linear"}],
    ids=["constant", "hierarchical", "log-linear"],
)
def test_averages_of_one_size_have_the_noise_of_one_observation_times_it(settings):
    model = SGLDLinearRegression(n_draws=200, random_state=0, **settings)
    plain, averaged = clone(model).fit(X, Y), clone(model).fit(X, Y, n_averaged=4.0)
    np.testing.assert_allclose(averaged.coef_, plain.coef_, rtol=1e-4, atol=1e-5)
    if "noise_model" in settings:
        apart = averaged.noise_intercept_ - plain.noise_intercept_
        assert apart == pytest.approx(np.log(2.0), abs=1e-3)
    else:
        assert averaged.noise_variance_ == pytest.approx(4.0 * plain.noise_variance_, rel=1e-4)
    again = averaged.predict_interval(X[:5], n_averaged=4.0)
    np.testing.assert_allclose(again, plain.predict_interval(X[:5]), rtol=1e-3)
    again = averaged.log_predictive_density(X[:5], Y[:5], n_averaged=4.0)
    np.testing.assert_allclose(again, plain.log_predictive_density(X[:5], Y[:5]), atol=1e-4)


def test_few_averages_with_unequal_noise_agree_in_both_coordinates():
    noise = LogLinearNoise(columns=[0])
    fits = [
        SGLDLinearRegression(
            noise_model=noise, parameterization=name, random_state=0, n_draws=2000
        ).fit(X[:40], Y[:40], n_averaged=SIZE[:40])
        for name in ("noncentered", "centered")
    ]
    a, b = (fit.summary() for fit in fits)
    assert (np.abs(a["mean"] - b["mean"]) / a["sd"]).max() < 0.2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skbayes_sgld.ModelMisfitWarning")
def test_intervals_of_averages_hold_the_coefficients_and_those_of_weights_do_not():
    inside = np.zeros((2, 25), bool)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows, size = rng.standard_normal((60, 1)), rng.geometric(0.02, 60)
        y = rows[:, 0] + 5.0 * rng.standard_normal(60) / np.sqrt(size)
        model = SGLDLinearRegression(random_state=0, n_draws=250)
        for k, given in enumerate(({"n_averaged": size}, {"sample_weight": size})):
            low, high = model.fit(rows, y, **given).summary().loc["coef[x0]", ["lower", "upper"]]
            inside[k, seed] = low < 1.0 < high
    assert inside[0].sum() >= 16  # of 25, at 90 %: 4 standard errors below 22.5 are 16.5
    assert inside[1].sum() <= 12


def test_a_mode_of_averages_is_climbed_to():
    from skbayes_sgld import SGDMAPRegressor

    model = SGDMAPRegressor(prior=Normal(1.0), random_state=0).fit(X, Y, n_averaged=SIZE)
    draws = SGLDLinearRegression(prior=Normal(1.0), random_state=0).fit(X, Y, n_averaged=SIZE)
    sd = draws.summary()["sd"].to_numpy()
    assert np.all(np.abs(model.coef_ - draws.coef_) < 0.2 * sd[:2])


@few_draws
@pytest.mark.parametrize("way", ["array", "blocks", "stream"])
@pytest.mark.parametrize("cls", [SGLDLinearRegression, SGLDGammaRegressor])
def test_sizes_do_not_change_the_automatic_scale_of_a_column(cls, way):
    from skbayes_sgld import RowBlocks

    size, y = np.exp(2.0 * X[:, 0]), COSTS
    weight = RNG.integers(1, 4, N).astype(float)
    model = cls(**FEW)
    if way == "blocks":
        blocks = [(X[a:b], y[a:b], weight[a:b], size[a:b]) for a, b in ((0, 70), (70, N))]
        model.fit(RowBlocks(lambda: iter(blocks), pool_size=100))
    else:
        fit = model.fit if way == "array" else model.partial_fit
        fit(X, y, sample_weight=weight, n_averaged=size)
    sd = np.sqrt(np.cov(X.T, fweights=weight.astype(int), ddof=0).diagonal())
    ratio = model.prior_.scale * sd
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


# ---- predictions, scores and criticism -----------------------------------------------------------


def test_predictions_are_of_one_observation_or_of_an_average():
    model = SGLDLinearRegression(random_state=0).fit(X, Y)  # whose rows are single ones
    draws = model.sample_posterior()
    center = X[:4] @ draws.coef.T + draws.intercept
    for size in (1.0, np.array([1.0, 4.0, 9.0, 100.0])):
        given = {} if np.ndim(size) == 0 else {"n_averaged": size}
        variance = center.var(axis=1) + draws.noise_variance.mean() / size
        sd = model.predict(X[:4], return_std=True, **given)[1]
        np.testing.assert_allclose(sd, np.sqrt(variance), rtol=1e-6)
        width = np.diff(model.predict_interval(X[:4], **given))[:, 0]
        np.testing.assert_allclose(width, 2 * 1.645 * sd, rtol=0.03)
    np.testing.assert_array_equal(
        model.predict_interval(X[:4], kind="mean", n_averaged=9.0),
        model.predict_interval(X[:4], kind="mean"),
    )


@few_draws
def test_scores_weigh_averages_by_their_sizes():
    from skbayes_sgld import RowBlocks

    for cls, y in ((SGLDLinearRegression, Y), (SGLDGammaRegressor, COSTS)):
        model = cls(**FEW).fit(X, y, n_averaged=SIZE)
        found = model.score(X, y, n_averaged=SIZE)
        assert found == pytest.approx(model.score(X, y, sample_weight=SIZE, n_averaged=1.0))
        blocks = RowBlocks(lambda y=y: iter([(X[:60], y[:60], None, SIZE[:60])]))
        known = model.score(X[:60], y[:60], n_averaged=SIZE[:60])
        assert model.score(blocks) == pytest.approx(known)


@few_draws
def test_averages_pass_through_pipelines_searches_and_outputs():
    from skbayes_sgld.metrics import get_scorer

    pipe = make_pipeline(StandardScaler(), SGLDLinearRegression(**FEW))
    pipe.fit(X, Y, sgldlinearregression__n_averaged=SIZE)
    known = SGLDLinearRegression(**FEW).fit(StandardScaler().fit_transform(X), Y, n_averaged=SIZE)
    np.testing.assert_allclose(pipe[-1].coef_, known.coef_)
    narrow, wide = (np.diff(predict_interval(pipe, X[:3], n_averaged=k)) for k in (25.0, 1.0))
    assert np.all(narrow < 0.5 * wide)
    with config_context(enable_metadata_routing=True):
        model = SGLDLinearRegression(**FEW).set_fit_request(n_averaged=True)
        model.set_score_request(n_averaged=True)
        search = GridSearchCV(model, {"prior": [Normal(0.01), Normal(3.0)]}, cv=2)
        search.fit(X, Y, n_averaged=SIZE)
        assert search.best_params_["prior"].scale == 3.0
        scorer = get_scorer("neg_crps")
        scorer.set_score_request(n_averaged=True)
        params = {"n_averaged": SIZE}
        each = cross_val_score(model, X, Y, scoring=scorer, cv=2, params=params)
        assert np.isfinite(each).all()
    both = SGLDLinearRegression(**FEW).fit(X, np.column_stack([Y, -Y]), n_averaged=SIZE)
    np.testing.assert_allclose(both.coef_[0], -both.coef_[1], atol=0.3)
    assert both.predict_interval(X[:3], n_averaged=SIZE[:3]).shape == (3, 2, 2)
    with pytest.raises(ValueError, match="n_averaged is None, and the model was fitted to"):
        both.score(X, np.column_stack([Y, -Y]))
    data = known.to_arviz(X, Y, n_averaged=SIZE)
    np.testing.assert_array_equal(data["constant_data"]["n_averaged"], SIZE)


@few_draws
def test_dask_predicts_averages(tmp_path):
    from skbayes_sgld import RowBlocks

    da = pytest.importorskip("dask.array")
    model = SGLDGammaRegressor(**FEW).fit(X, COSTS, n_averaged=SIZE)
    rows, size = da.from_array(X, chunks=(40, 2)), da.from_array(SIZE, chunks=40)
    found = model.predict_interval(rows, n_averaged=size).compute()
    np.testing.assert_allclose(found, model.predict_interval(X, n_averaged=SIZE), rtol=2e-3)
    of_dask = SGLDGammaRegressor(**FEW).fit(rows, da.from_array(COSTS, chunks=40), n_averaged=size)
    np.testing.assert_allclose(of_dask.coef_, model.coef_, atol=0.05)
    for name, values in {"X": X, "y": Y, "n_averaged": SIZE}.items():
        np.save(tmp_path / f"{name}.npy", values)
    files = {name: tmp_path / f"{name}.npy" for name in ("X", "y", "n_averaged")}
    in_file = SGLDLinearRegression(**FEW).fit(RowBlocks.from_npy(**files))
    known = SGLDLinearRegression(**FEW).fit(X, Y, n_averaged=SIZE)
    np.testing.assert_allclose(in_file.coef_, known.coef_, atol=0.05)


def test_checks_and_leave_one_out_know_the_sizes():
    from skbayes_sgld import check_model
    from skbayes_sgld.metrics import loo

    model = SGLDLinearRegression(random_state=0).fit(X, Y, n_averaged=SIZE)
    assert check_model(model, X, Y, n_averaged=SIZE).fits
    known = loo(model, X, Y, n_averaged=SIZE).elpd
    density = model.log_predictive_density(X, Y, n_averaged=SIZE).sum()
    assert density - 10.0 < known < density
    with pytest.raises(ValueError, match="n_averaged differs"):
        loo(model, X, Y, n_averaged=1.0)


# ---- weights that are sizes ----------------------------------------------------------------------


@pytest.mark.parametrize("cls", [SGLDLinearRegression, slow(SGLDGammaRegressor)])
def test_weights_that_are_sizes_of_averages_are_found_and_mended(cls):
    from skbayes_sgld import check_model

    rng = np.random.default_rng(0)
    rows, size = rng.standard_normal((300, 2)), rng.geometric(0.1, 300)
    y = rows[:, 0] + 3.0 * rng.standard_normal(300) / np.sqrt(size)
    if cls is SGLDGammaRegressor:
        y = np.exp(0.4 * rows[:, 0]) * rng.gamma(size) / size
    with pytest.warns(UserWarning, match="residuals fall as sample_weight grows.*n_averaged="):
        model = cls(random_state=0).fit(rows, y, sample_weight=size)
    found = check_model(model, rows, y, sample_weight=size)
    row = found.table.set_index("check").loc["spread of residuals against sample_weight"]
    assert row["verdict"] == "misfit" and row["remedy"].startswith("n_averaged=sample_weight (+")
    assert found.remedies.loc["n_averaged=sample_weight", "misfits"] == 0
    assert "Fit it by fit(X, y, n_averaged=sample_weight), without weights." in found.reason
    again = found.suggestion.fit(rows, y, n_averaged=size)
    assert check_model(again, rows, y, n_averaged=size).fits


def test_t_distributed_noise_hides_no_sizes_and_the_remedy_is_normal_noise():
    from skbayes_sgld import check_model

    rng = np.random.default_rng(0)
    rows, size = rng.standard_normal((150, 2)), rng.geometric(0.03, 150)
    model = SGLDLinearRegression(noise_distribution="student_t", random_state=0, n_draws=250)
    y = rows[:, 0] + 3.0 * rng.standard_normal(150) / np.sqrt(size)
    with pytest.warns(UserWarning, match="noise_distribution='normal' and give their numbers"):
        model.fit(rows, y, sample_weight=size)
    found = check_model(model, rows, y, sample_weight=size)
    row = found.table.set_index("check").loc["spread of residuals against sample_weight"]
    assert row["verdict"] == "misfit" and row["remedy"].startswith("n_averaged=sample_weight (+")
    assert found.suggestion.noise_distribution == "normal"
    found.suggestion.fit(rows, y, n_averaged=size)


def test_the_alarm_does_not_depend_on_units_and_far_rows_raise_none():
    from skbayes_sgld.criticism.weights import screen_weights

    rng = np.random.default_rng(0)
    rows, size = rng.standard_normal((200, 2)), rng.geometric(0.1, 200)
    y = 1e6 * (50.0 + rows[:, 0] + 3.0 * rng.standard_normal(200) / np.sqrt(size))
    with pytest.warns(UserWarning, match="residuals fall as sample_weight grows"):
        SGLDLinearRegression(random_state=0, n_draws=250).fit(rows, y, sample_weight=size)
    model = SGLDGammaRegressor(random_state=0, n_draws=250)
    model.fit(rows, np.exp(rows[:, 0]) * rng.gamma(3.0, size=200), sample_weight=size)
    rows[0] = 1e5  # a mean beyond the range of numbers
    data = rows, y / y.mean(), NO_VALUES
    assert screen_weights(model._predictive(), data, size.astype(float)) == ""


@pytest.mark.parametrize("noise", ["normal", "heavy"])
def test_weights_that_count_rows_raise_no_alarm(noise):
    rng = np.random.default_rng(3)  # a warning is an error
    for n in (25, 60, 200):
        rows = rng.standard_normal((n, 2))
        error = rng.standard_normal(n) if noise == "normal" else rng.standard_t(3, n)
        for weight in (np.exp(2.0 * rng.standard_normal(n)), np.r_[500.0, np.ones(n - 1)]):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "sample_weight sums|The standard dev")
                SGLDLinearRegression(random_state=0, n_draws=250).fit(
                    rows, rows[:, 0] + error, sample_weight=weight
                )


# ---- refusals ------------------------------------------------------------------------------------


REFUSED = {
    "heavy tails": (
        lambda: SGLDLinearRegression(noise_distribution="student_t").fit(X, Y, n_averaged=SIZE),
        "n_averaged is given, and noise_distribution='student_t'.*lighter tails.*='normal'",
    ),
    "none": (
        lambda: SGLDLinearRegression().fit(X, Y, n_averaged=np.where(np.arange(N) == 7, 0, SIZE)),
        "n_averaged has the value 0 in row 7; .*leave rows without any out",
    ),
    "negative": (lambda: SGLDGammaRegressor().fit(X, COSTS, n_averaged=-1), "value -1 in row 0"),
    "few": (lambda: SGLDGammaRegressor().fit(X, COSTS, n_averaged=[2, 3]), r"has shape \(2,\)"),
    "counts": (
        lambda: SGLDPoissonRegressor().fit(X, SIZE, n_averaged=SIZE),
        "n_averaged.*give their sums as y, and how many as exposure",
    ),
    "totals": (
        lambda: SGLDBetaBinomialRegressor().fit(X, SIZE, n_averaged=SIZE),
        "n_averaged.*give the successes as y, and n_trials",
    ),
    "labels": (
        lambda: SGLDLogisticRegression().fit(X, SIZE > 3, n_averaged=SIZE),
        "n_averaged.*give fit the successes as y, and n_trials",
    ),
    "offset": (
        lambda: SGLDPoissonRegressor().fit(X, SIZE, offset=np.log(SIZE)),
        r"exposure=np.exp\(offset\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_averages_that_cannot_be_are_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@few_draws
def test_a_log_of_averages_is_fitted_as_it_is_given():
    model = TransformedTargetRegressor(
        SGLDLinearRegression(**FEW), func=np.log, inverse_func=np.exp
    )
    with config_context(enable_metadata_routing=True):
        model.regressor.set_fit_request(n_averaged=True)
        model.fit(X, COSTS, n_averaged=SIZE)
    narrow, wide = (np.diff(predict_interval(model, X[:3], n_averaged=k)) for k in (25.0, 1.0))
    assert np.all(narrow < wide)
