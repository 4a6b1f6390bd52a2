"""Smooth curves: against penalised splines by dense matrices, and on data that nobody drew."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, gammaln, logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import SplineTransformer

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
    Smooth,
)
from skbayes_sgld.criticism.leave_one_out import rows_of_fit
from skbayes_sgld.criticism.remedies import REMEDIES, Misfit, build
from skbayes_sgld.criticism.settings import takes_effects
from skbayes_sgld.plotting import PartialDependenceDisplay
from skbayes_sgld.priors import InverseGamma, Normal
from tests.marks import SHORT, quick, short_chains, slow

pl = pytest.importorskip("polars")

WIDE = {"prior": Normal(scale=100.0), "intercept_prior": Normal(scale=100.0)}
SCALE, NU = 1.5, 3.0  # half-Student-t prior of the bend's standard deviation


def penalised(x, n_basis=9, degree=3, at=None):
    """Covariance factor of the bend at s = 1, by a pseudo-inverse of the penalty."""
    basis = SplineTransformer(
        n_knots=n_basis - degree + 1, degree=degree, extrapolation="linear"
    ).fit(x[:, None])
    B = basis.transform(x[:, None])
    D = np.diff(np.eye(n_basis), 2, axis=0)
    L = np.linalg.pinv(D)  # L L' is the pseudo-inverse of D'D
    Z = B @ L
    line = np.column_stack([np.ones(len(x)), x])
    lost = np.linalg.lstsq(line, Z)[0]
    unit = np.sqrt(np.mean(np.sum((Z - line @ lost) ** 2, axis=1)))
    at = x if at is None else at
    lines = np.column_stack([np.ones(len(at)), at])
    return (basis.transform(at[:, None]) @ L - lines @ lost) / unit


def log_half_t(s):
    return -0.5 * (NU + 1.0) * np.log1p((s / SCALE) ** 2 / NU)


def named(model):
    return dict(zip(model.posterior_.names, model.posterior_.flat.T, strict=True))


def curves(model, X, chosen=slice(None)):
    """Curve under each draw ``(S, n)``."""
    return model._predictor(chosen)(np.asarray(X, dtype=float))[0].T


def smooth_rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2.0, 5.0, n))
    return x, np.sin(x) + 0.2 * x, rng


def test_normal_rows_have_the_posterior_of_quadrature_over_scale_and_noise():
    x, truth, rng = smooth_rows()
    y = truth + 0.5 * rng.normal(size=len(x))
    grid = np.linspace(-3.0, 6.0, 10)
    Z, at = penalised(x), penalised(x, at=grid)
    centred = np.column_stack([np.ones(len(x)), x - x.mean()])
    columns = np.hstack([centred, Z])
    there = np.hstack([np.column_stack([np.ones(10), grid - x.mean()]), at])
    sds, sigmas = np.linspace(0.05, 6.0, 80), np.linspace(0.35, 0.75, 25)
    log_p, moments = [], []
    for s in sds:
        prior = np.diag(np.r_[100.0**2, 100.0**2, np.full(Z.shape[1], s**2)])
        for sigma in sigmas:
            cov = columns @ prior @ columns.T + sigma**2 * np.eye(len(x))
            alpha = np.linalg.solve(cov, y)
            # InverseGamma(2, .25) of sigma^2, as a density of sigma
            value = -0.5 * (np.linalg.slogdet(cov)[1] + y @ alpha) + log_half_t(s)
            log_p.append(value - 5.0 * np.log(sigma) - 0.25 / sigma**2)
            cross = there @ prior @ columns.T
            variance = np.sum((there @ prior) * there, axis=1)
            variance -= np.sum(cross * np.linalg.solve(cov, cross.T).T, axis=1)
            moments.append((cross @ alpha, variance))
    p = np.exp(log_p - logsumexp(log_p))
    s, sigma = np.repeat(sds, len(sigmas)), np.tile(sigmas, len(sds))
    means, variances = np.transpose(moments, (1, 0, 2))
    mean = p @ means
    sd = np.sqrt(p @ (variances + (means - mean) ** 2))

    model = SGLDLinearRegression(
        smooth_effects={0: Smooth(9, scale=SCALE)},
        noise_prior=InverseGamma(2.0, 0.25),
        random_state=0,
        **WIDE,
    ).fit(x[:, None], y)
    draws = named(model)
    for name, of_grid in [("sd[smooth(x0)]", s), ("sigma", sigma)]:
        values = np.sqrt(draws["noise_variance"]) if name == "sigma" else draws[name]
        expected = p @ of_grid
        spread = np.sqrt(p @ (of_grid - expected) ** 2)
        assert abs(values.mean() - expected) < 0.1 * spread, name
        assert abs(values.std() / spread - 1.0) < 0.12, name
    found = curves(model, grid[:, None])
    assert np.abs((found.mean(axis=0) - mean) / sd).max() < 0.1
    assert np.abs(found.std(axis=0) / sd - 1.0).max() < 0.1
    assert sd[0] > 1.5 * sd[1]  # beyond the rows
    assert sd[-1] > 1.5 * sd[-2]


FAMILIES = {
    "binary": (SGLDLogisticRegression, lambda y, u: y * u - np.logaddexp(0.0, u)),
    "counts": (SGLDPoissonRegressor, lambda y, u: y * u - np.exp(u) - gammaln(y + 1.0)),
}


@pytest.mark.parametrize("family", quick(FAMILIES, "counts"))
def test_other_families_have_the_posterior_of_importance_sampling_at_each_scale(family):
    estimator, log_likelihood = FAMILIES[family]
    x, truth, rng = smooth_rows(150, seed=1)
    u = 1.5 * truth
    y = (rng.random(len(x)) < expit(u)) if family == "binary" else rng.poisson(np.exp(u))
    y, grid = y.astype(float), np.linspace(-2.0, 5.0, 8)
    line = np.column_stack([np.ones(len(x)), x - x.mean()])
    columns = np.hstack([line, penalised(x)])
    there = np.column_stack([np.ones(8), grid - x.mean(), penalised(x, at=grid)])
    sds = np.exp(np.linspace(np.log(0.05), np.log(12.0), 25))
    normals = rng.standard_normal((1500, columns.shape[1]))
    chi = rng.chisquare(8.0, 1500)
    log_p, means, squares = [], [], []
    for s in sds:
        precision = np.r_[1e-4, 1e-4, np.full(columns.shape[1] - 2, s**-2)]

        def log_density(b, precision=precision):
            value = log_likelihood(y, b @ columns.T).sum(axis=-1)
            return value - 0.5 * np.square(b) @ precision

        mode = minimize(lambda b: -log_density(b), np.zeros(len(precision)), method="BFGS").x
        eta = columns @ mode
        weight = expit(eta) * expit(-eta) if family == "binary" else np.exp(eta)
        hessian = columns.T @ (weight[:, None] * columns) + np.diag(precision)
        root = np.linalg.cholesky(hessian)
        z = normals / np.sqrt(chi / 8.0)[:, None]  # a t of 8 degrees of freedom
        b = mode + np.linalg.solve(root.T, z.T).T
        log_q = -0.5 * (8 + z.shape[1]) * np.log1p((z**2).sum(axis=1) / 8.0)
        log_q += np.log(np.diag(root)).sum()
        log_w = log_density(b) + 0.5 * np.log(precision).sum() - log_q
        w = np.exp(log_w - logsumexp(log_w))
        # a grid of the logarithm
        log_p.append(logsumexp(log_w) + log_half_t(s) + np.log(s))
        means.append(w @ (b @ there.T))
        squares.append(w @ (b @ there.T) ** 2)
    p = np.exp(log_p - logsumexp(log_p))
    mean = p @ np.array(means)
    sd = np.sqrt(p @ np.array(squares) - mean**2)
    model = estimator(smooth_effects={0: Smooth(9, scale=SCALE)}, random_state=0, **WIDE)
    model.fit(x[:, None], y)
    values = named(model)["sd[smooth(x0)]"]
    expected = p @ sds
    spread = np.sqrt(p @ (sds - expected) ** 2)
    assert abs(values.mean() - expected) < 0.15 * spread
    assert abs(values.std() / spread - 1.0) < 0.2  # its tail is heavy
    found = curves(model, grid[:, None])
    assert np.abs((found.mean(axis=0) - mean) / sd).max() < 0.15
    assert np.abs(found.std(axis=0) / sd - 1.0).max() < 0.12


@pytest.mark.parametrize("seed", [0, slow(1)])
def test_signs_of_scales_do_not_count_as_slow(seed):
    # chains seldom cross a scale of 0 here, and no reported parameter depends on the side
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(100, 2))
    y = X @ [1.0, -1.0] + 6.0 * np.square(X[:, 0]) + rng.standard_normal(100)
    model = SGLDLinearRegression(smooth_effects={0: 8}, random_state=seed).fit(X, y)
    assert model.thin_ <= 3
    assert model.posterior_.summary()["ess_bulk"].min() > 1500


def test_a_straight_line_has_a_small_bend_and_its_own_slope():
    rng = np.random.default_rng(2)
    x = rng.uniform(size=400)
    y = 3.0 * x + 0.5 * rng.normal(size=400)
    model = SGLDLinearRegression(smooth_effects={0: 10}, random_state=0).fit(x[:, None], y)
    plain = SGLDLinearRegression(random_state=0).fit(x[:, None], y)
    draws = named(model)
    assert np.median(draws["sd[smooth(x0)]"]) < 0.15 * y.std()
    # the line is orthogonal to the bend over the rows
    assert abs(model.coef_[0] - plain.coef_[0]) < 0.01 * abs(plain.coef_[0])
    bend = curves(model, x[:, None]).mean(axis=0) - model.intercept_ - model.coef_[0] * x
    assert abs(bend.mean()) < 1e-8
    assert abs(np.cov(bend, x)[0, 1]) < 1e-8
    assert np.abs(bend).max() < 0.2


@pytest.mark.slow
def test_bands_of_a_sine_cover_it_as_often_as_they_say():
    grid = np.linspace(0.3, 6.0, 12)[:, None]
    inside, errors = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0.0, 6.3, 150)
        y = np.sin(x) + 0.4 * rng.normal(size=150)
        model = SGLDLinearRegression(
            smooth_effects={0: 12}, random_state=seed, n_chains=2, n_draws=400
        ).fit(x[:, None], y)
        draws = curves(model, grid)
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        inside.append(np.mean((low < np.sin(grid[:, 0])) & (np.sin(grid[:, 0]) < high)))
        errors.append(draws.mean(axis=0) - np.sin(grid[:, 0]))
    # coverage over the function; its errors within a simulation are correlated
    assert abs(np.mean(inside) - 0.9) < 4.0 * np.std(inside) / np.sqrt(50) + 0.02
    assert np.sqrt(np.mean(np.square(errors))) < 0.13


def test_outside_the_range_of_the_fit_each_draw_goes_on_as_a_line():
    x, truth, rng = smooth_rows()
    y = truth + 0.3 * rng.normal(size=len(x))
    model = SGLDLinearRegression(smooth_effects={0: 10}, random_state=0).fit(x[:, None], y)
    for end, step in ((x.max(), 1.0), (x.min(), -1.0)):
        rows = end + step * np.arange(5.0)
        draws = curves(model, rows[:, None])
        np.testing.assert_allclose(np.diff(draws, 2, axis=1), 0.0, atol=1e-8)
        assert np.all(np.diff(draws.std(axis=0)) > 0.0)
        # without a break or a kink at the end
        near = curves(model, (end + 1e-5 * np.array([-1.0, 0.0, 1.0]))[:, None])
        np.testing.assert_allclose(np.diff(near, 2, axis=1) / 1e-5, 0.0, atol=1e-3)


@pytest.mark.slow
def test_curves_do_not_depend_on_units_types_or_repeated_rows():
    x, truth, rng = smooth_rows(60)
    y = truth + 0.3 * rng.normal(size=len(x))
    X = np.column_stack([rng.normal(size=len(x)), x])
    model = SGLDLinearRegression(smooth_effects={1: 8}, random_state=0)
    expected = model.fit(X, y).predict(X)
    # a draw's last digits seed its coefficients: the means of two fits differ by chance
    error = np.sqrt(2.0 / len(model.posterior_.flat)) * curves(model, X).std(axis=0)

    def check(X, y=y, unit=1.0, **by_row):
        other = clone(model).fit(X, y, **by_row).predict(X)[:60] / unit
        assert np.abs((other - expected) / error).max() < 5.0

    check(1e7 + 1e4 * X)
    check(1e-6 * X, 1e6 * y, 1e6)
    check(X.astype(np.float32))
    check(sparse.csr_array(X))
    # a row of weight 2 is two rows; one of weight 0 is none, wherever it lies
    weight = np.append(rng.integers(1, 3, len(x)), 0)
    with_outlier = np.vstack([X, [0.0, 1e3]]), np.append(y, 1e3)
    weighted = clone(model).fit(*with_outlier, sample_weight=weight.astype(float))
    twice = np.repeat(np.arange(len(x)), weight[:-1])
    repeated = clone(model).fit(X[twice], y[twice])
    assert np.abs((weighted.predict(X) - repeated.predict(X)) / error).max() < 5.0
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        by_name = SGLDLinearRegression(smooth_effects={"b": 8}, random_state=0).fit(frame, y)
        np.testing.assert_allclose(by_name.predict(frame), expected, atol=1e-8)
        assert "sd[smooth(b)]" in by_name.summary().index


def test_few_distinct_and_outlying_values():
    rng = np.random.default_rng(3)
    x = rng.integers(4, size=200).astype(float)
    y = np.array([0.0, 2.0, 1.0, 4.0])[x.astype(int)] + 0.3 * rng.normal(size=200)
    model = SGLDLinearRegression(smooth_effects={0: 10}, random_state=0).fit(x[:, None], y)
    means = [y[x == k].mean() for k in range(4)]
    np.testing.assert_allclose(model.predict(np.arange(4.0)[:, None]), means, atol=0.1)
    # an outlying value spreads the knots; the fit holds, and says so
    x, truth, rng = smooth_rows(100)
    far = np.append(x, 400.0)
    y = np.append(truth, 5.0) + 0.3 * rng.normal(size=101)
    with pytest.warns(UserWarning, match="100 of its 101 distinct values lie between"):
        model = SGLDLinearRegression(smooth_effects={0: 10}, random_state=0).fit(far[:, None], y)
    assert np.all(np.isfinite(model.predict(far[:, None])))
    assert model.summary()["r_hat"].max() < 1.05


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({"b": 10}, ValueError, "'b'"),
        ({0: 3}, ValueError, r"smooth_effects\[0\]: n_basis=3"),
        ({0: Smooth(n_basis=5, degree=5)}, ValueError, "n_basis=5"),
        ({0: Smooth(degree=0)}, ValueError, "degree=0"),
        ({0: Smooth(scale=-1.0)}, ValueError, "scale=-1.0"),
        ({0: "10"}, TypeError, "'10' is not accepted"),
        ({0: True}, TypeError, "True is not accepted"),
        ([0], TypeError, "no dict"),
        ({}, ValueError, "no curve"),
        ({0: 10, -3: 10}, ValueError, "twice"),
        ({1: 10}, ValueError, "'x1', which has 1 distinct value"),
        ({2: 10}, ValueError, "'x2', which has 2 distinct values"),
        ({0: 200}, ValueError, "'x0', which has 30 distinct values .* n_basis to at most 50"),
    ],
)
def test_what_cannot_be_a_curve_is_refused(value, error, message):
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=30), np.ones(30), rng.integers(2, size=30)])
    model = SGLDLinearRegression(smooth_effects=value)
    with pytest.raises(error, match=message):
        model.fit(X, X[:, 0])
    assert not hasattr(model, "coef_")


def test_settings_that_leave_rows_out_are_refused():
    x, truth, _ = smooth_rows()
    for settings in ({"batch_size": 10}, {"temperature": 0.5}):
        with pytest.raises(ValueError, match="smooth_effects"):
            SGLDLogisticRegression(smooth_effects={0: 10}, **settings).fit(x[:, None], truth > 0)


@short_chains
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 20),
        ("temperature", 0.5),
        ("prior", "horseshoe"),
        ("noise_model", "log_linear"),
    ],
)
def test_remedies_are_none_that_the_model_refuses(name, value):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    plain = SGLDLinearRegression(random_state=0, **SHORT)
    assert takes_effects(plain.fit(X, y))
    assert not takes_effects(plain.set_params(**{name: value}).fit(X, y))
    with pytest.raises(ValueError, match="smooth_effects"):
        plain.set_params(smooth_effects={0: 10}).fit(X, y)


@short_chains
@pytest.mark.parametrize(
    ("smooth_effects", "tried"),
    [
        ({"age": 8}, {"curves of columns", "squares of columns"}),
        ({"z": 8}, set()),  # squares would take the place of the curve's own column
        ({0: 8}, {"curves of columns", "squares of columns"}),  # positions move with the columns
    ],
)
def test_remedies_leave_curves_their_columns(smooth_effects, tried):
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "z"])
    y = X["age"] + rng.normal(size=60)
    model = SGLDLinearRegression(smooth_effects=smooth_effects, random_state=0, **SHORT)
    fit = rows_of_fit("check_model", model.fit(X, y), X, y, None, {})
    checks = [SimpleNamespace(kind="curvature", column=1), SimpleNamespace(kind="noise", column=1)]
    misfit = Misfit(model, fit, checks, ["age", "z"])
    built = {one.name for one in REMEDIES if one.kinds == {"curvature"} and build(one, misfit)}
    assert built == tried
    noise = next(one for one in REMEDIES if "noise_model" in one.settings)
    assert build(noise, misfit) is None  # has one noise variance


def waves_of_schools():
    rng = np.random.default_rng(5)
    n = 400
    frame = pd.DataFrame({"school": rng.choice(list("abcdefgh"), n), "x": rng.uniform(0, 6.3, n)})
    level = dict(zip("abcdefgh", rng.normal(0.0, 1.5, 8), strict=True))
    y = frame["school"].map(level) + np.sin(frame["x"]) + 0.4 * rng.normal(size=n)
    return frame, level, y, rng


def test_curves_stand_beside_groups():
    frame, level, y, _ = waves_of_schools()
    model = SGLDLinearRegression(
        group_effects={"school": "intercept"}, smooth_effects={"x": 10}, random_state=0
    ).fit(frame, y)
    assert {"sd[school, intercept]", "sd[smooth(x)]"} <= set(model.summary().index)
    assert len(model.group_effects_) == 8  # effects of the bend are none of groups
    population = model.predict(frame, groups="population")
    residual = population - np.sin(frame["x"])
    assert residual.std() < 0.15
    found = model.group_effects_["mean"].droplevel(["term", "effect"])
    assert np.corrcoef(found, found.index.map(level))[0, 1] > 0.98
    data = model.posterior_.to_xarray()
    assert data["effect_smooth(x)"].dims == ("chain", "draw", "smooth(x)")
    assert data["sd_smooth(x)"].dims == ("chain", "draw")
    with pytest.raises(ValueError, match="'school', which group_effects names"):
        SGLDLinearRegression(
            group_effects={"school": "intercept"}, smooth_effects={"school": 10}
        ).fit(frame, y)


@short_chains
def test_curves_of_counts_stand_beside_groups():
    """The main term is that of the groups."""
    frame, _, y, rng = waves_of_schools()
    counts = SGLDPoissonRegressor(
        group_effects={"school": "intercept"}, smooth_effects={"x": 10}, n_draws=50, random_state=0
    ).fit(frame, rng.poisson(np.exp(0.5 * y)))
    shown = counts.predict(frame, groups="population")
    assert np.corrcoef(np.log(shown), np.sin(frame["x"]))[0, 1] > 0.95


@pytest.mark.slow
def test_every_sampled_linear_estimator_bends():
    x, truth, rng = smooth_rows(120, seed=6)
    X = np.column_stack([x, rng.normal(size=len(x))])
    mean = np.exp(truth)
    fits = [
        (SGLDGammaRegressor, rng.gamma(5.0, mean / 5.0), {}),
        (SGLDNegativeBinomialRegressor, rng.poisson(rng.gamma(3.0, mean / 3.0)), {}),
        (SGLDOrdinalClassifier, np.digitize(truth + rng.logistic(size=len(x)), [-1, 1]), {}),
        (SGLDBetaBinomialRegressor, rng.binomial(20, expit(truth)), {"n_trials": np.full(120, 20)}),
    ]
    for estimator, y, by_row in fits:
        model = estimator(smooth_effects={0: 8}, random_state=0).fit(X, y, **by_row)
        draws = curves(model, X)
        assert np.corrcoef(draws.mean(axis=0), truth)[0, 1] > 0.9, estimator.__name__
        assert "sd[smooth(x0)]" in model.posterior_.names


@short_chains
def test_searches_clone_curves_and_displays_draw_them():
    x, truth, rng = smooth_rows(100)
    y = truth + 0.3 * rng.normal(size=len(x))
    model = SGLDLinearRegression(smooth_effects={0: Smooth(10)}, random_state=0)
    tried = {"smooth_effects": [None, {0: 4}, {0: Smooth(10)}]}
    search = GridSearchCV(clone(model).set_params(**SHORT), tried, cv=2)
    shuffled = rng.permutation(len(x))
    search.fit(x[shuffled, None], y[shuffled])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["smooth_effects"] is not None
    model.fit(x[:, None], y)
    display = PartialDependenceDisplay.from_estimator(model, x[:, None], 0)
    line = display.lines_[0]
    shown = np.interp(line.get_xdata(), x, truth)
    assert np.corrcoef(line.get_ydata(), shown)[0, 1] > 0.97
    assert len(display.bands_) == 1


GAMS = {
    "normal": (SGLDLinearRegression, "Gaussian", 0.1),
    "binary": (SGLDLogisticRegression, "Binomial", 0.3),
    "counts": (SGLDPoissonRegressor, "Poisson", 0.2),
}


@pytest.mark.parametrize("family", quick(GAMS, "normal"))
def test_curves_are_those_of_statsmodels_at_the_learned_scale(family):
    families = pytest.importorskip("statsmodels.api").families
    gam = pytest.importorskip("statsmodels.gam.api").GLMGam
    basis = pytest.importorskip("statsmodels.gam.smooth_basis")
    estimator, name, most = GAMS[family]
    rng, n, K = np.random.default_rng(1), 200, 10
    x = np.sort(rng.uniform(0.0, 10.0, n))
    u = 1.2 * np.sin(x) + 0.1 * x
    y = {
        "normal": u + 0.4 * rng.normal(size=n),
        "binary": (rng.random(n) < expit(u)).astype(float),
        "counts": rng.poisson(np.exp(u)).astype(float),
    }[family]
    model = estimator(smooth_effects={0: K}, random_state=0, **WIDE).fit(x[:, None], y)
    draws, found = named(model), curves(model, x[:, None])
    B = SplineTransformer(n_knots=K - 2, degree=3).fit_transform(x[:, None])
    D = np.diff(np.eye(K), 2, axis=0)
    bend = penalised(x, K)
    # the bend per unit of the root of the penalty, before it has a mean square of 1
    Z = B @ np.linalg.pinv(D)
    line = np.column_stack([np.ones(n), x])
    rest = Z - line @ np.linalg.lstsq(line, Z)[0]
    unit = np.linalg.norm(rest) / np.linalg.norm(bend)
    noise = np.mean(draws["noise_variance"]) if family == "normal" else 1.0
    alpha = 0.5 * noise * (unit / np.median(draws["sd[smooth(x0)]"])) ** 2
    smooth = basis.GenericSmoothers(
        x[:, None], [basis.UnivariateGenericSmoother(x, B, B, B, D.T @ D)]
    )
    fit = gam(y, exog=None, smoother=smooth, alpha=alpha, family=getattr(families, name)()).fit()
    # the mean over scales, and the mode at one: twice the penalty is farther off
    error = (found.mean(axis=0) - B @ fit.params[-K:]) / found.std(axis=0)
    assert np.abs(error).max() < most
