"""Normal rows with a noise that few rows determine: coordinates without their funnels."""

import numpy as np
import pytest
from scipy.stats import norm, t

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.own_noise import OwnNoise
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.own_models import check_gradient
from skbayes_sgld.posterior.noise_models import LogLinearNoise
from skbayes_sgld.posterior.parameterizations.own_noise import Groups, _heavy_density
from skbayes_sgld.priors import InverseGamma, Normal
from tests.numeric import derivative_by_chain
from tests.references.closed_forms import weighted_draws

ROW = 7  # the outlying one
KINDS = "plain", "weights", "category", "copied", "levels", "copies", "equal"


def rows_of(kind="plain", far=3e2, n=5000):
    """Observations whose noise depends on columns, in one of which a row lies far out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    X[ROW, 1] = far
    y = 0.3 * X[:, 0] + np.exp(0.2 * X[:, 2]) * rng.standard_normal(n)
    weight = rng.uniform(0.5, 1.5, n) if kind == "weights" else None
    if kind == "heavy":
        weight = np.where(np.arange(n) == ROW, 300.0, 1.0)
    if kind == "surprise":
        y[ROW] = 20.0
    if kind == "category":
        X = np.column_stack([X[:, [0, 2]], np.arange(n) == ROW])
    if kind in ("copies", "equal"):
        X[ROW : ROW + 3] = X[ROW]
    if kind == "equal":
        y[ROW : ROW + 3] = y[ROW]
    if kind == "copied":
        X = np.column_stack([X, X[:, 1] + 0.5 * rng.standard_normal(n)])
    if kind == "levels":  # of 1, 2, 5 and 12 rows, beside the row far out
        level = np.repeat(np.arange(5), [1, 2, 5, 12, n - 20])
        X = np.column_stack([X[:, :3], rng.permutation(level)[:, None] == np.arange(4)])
    return X, y, weight


def fitted(kind, far=3e2, **settings):
    X, y, weight = rows_of(kind, far)
    model = SGLDLinearRegression(noise_model="log_linear", random_state=0, **settings)
    model.fit(X, y, sample_weight=weight)
    assert "determine a noise" in model.result_.plan.choices["parameterization"].why
    return model.result_, X, y, np.ones(len(y)) if weight is None else weight


def density_of(result, X, y, weight):
    """Log density in the coordinates by all rows, the prior, and a numeric Jacobian."""
    wall = result.plan.posterior
    others = wall.inner

    def log_density(phi):
        theta = wall.coordinates.forward(phi)
        d = X.shape[1]
        mean = (X - others.x_mean) @ theta[:, :d].T + theta[:, d]
        v = (X - others.slopes.mean) @ theta[:, d + 1 : -1].T + theta[:, -1]
        rows = weight @ (-0.5 * (v + np.square(y[:, None] - mean) * np.exp(-v)))
        slopes = derivative_by_chain(wall.coordinates.forward, phi)
        return rows + others.log_prior(theta) + np.linalg.slogdet(slopes)[1]

    return log_density


@pytest.mark.filterwarnings("ignore")  # of few draws
@pytest.mark.parametrize("kind", KINDS)
def test_the_density_is_that_of_all_rows(kind):
    # with equal targets at 300 sds the noise is too small for numeric derivatives
    result, *rows = fitted(kind, far=1e2 if kind == "equal" else 3e2, n_draws=40)
    wall = result.plan.posterior
    phi = wall.coordinates.inverse(wall.inner.reported.theta(result.draws.values[0, ::5]))
    np.testing.assert_allclose(
        wall.coordinates.inverse(wall.coordinates.forward(phi)), phi, atol=1e-6
    )
    off = wall.log_density(phi) - density_of(result, *rows)(phi)
    np.testing.assert_allclose(off, off[0], atol=1e-3)
    check_gradient(wall, phi)


@pytest.mark.filterwarnings("ignore")  # of few draws
def test_t_noise_of_levels_has_the_density_of_all_rows():
    X, y, _ = rows_of("levels", far=1.0)
    y += np.random.default_rng(1).standard_t(4.0, len(y))
    settings = {"noise_model": "log_linear", "noise_distribution": "student_t"}
    result = SGLDLinearRegression(**settings, random_state=0, n_draws=40).fit(X, y).result_
    assert "determine a noise" in result.plan.choices["parameterization"].why
    assert "searches" in result.plan.choices["modes"].why
    wall = result.plan.posterior
    others, d = wall.inner, X.shape[1]
    theta = others.reported.theta(result.draws.values[0, ::5])
    phi = wall.coordinates.inverse(theta)
    mean = (X - others.x_mean) @ theta[:, :d].T + theta[:, d]
    v = (X - others.slopes.mean) @ theta[:, d + 1 : -2].T + theta[:, -2]
    rows = t.logpdf(y[:, None], np.exp(theta[:, -1]), mean, np.exp(0.5 * v)).sum(axis=0)
    slopes = np.linalg.slogdet(derivative_by_chain(wall.coordinates.forward, phi))[1]
    off = wall.log_density(phi) - (rows + others.log_prior(theta) + slopes)
    np.testing.assert_allclose(off, off[0], atol=1e-3)
    check_gradient(wall, phi)


def test_the_density_of_t_noise_has_its_mean_integrated_out():
    nu, rate, residual = 4.0, 1.7, np.array([0.7, -0.4, 1.9])
    at, mean = np.linspace(-4.0, 3.0, 8), np.linspace(-8.0, 8.0, 40_001)

    def integral(s):
        rows = t.pdf(residual[:, None], nu, mean, np.exp(0.5 * rate * s)).prod(axis=0)
        return np.sum(rows * norm.pdf(mean))

    exact = [np.log(integral(s)) - 0.5 * s**2 for s in at]
    information = np.full(3, np.log((nu + 1.0) / (nu + 3.0)))
    density = _heavy_density(nu, rate, residual, information, np.ones(3))
    off = density(at) - exact
    np.testing.assert_allclose(off, off[0], atol=0.05)  # only the coordinates depend on it


@pytest.mark.filterwarnings("ignore")  # of few draws
@pytest.mark.parametrize("far", [3e2, 1e4])
def test_a_row_with_the_weight_of_hundreds_has_coordinates_about_its_own_mode(far):
    # hundreds of sds from the mode of the other rows, and with a noise as small as e^-160
    result, *_ = fitted("heavy", far, n_draws=40)
    center, metric = result.plan.center.theta, result.plan.center.metric
    moves = metric.sqrt(np.random.default_rng(0).standard_normal((20, len(center))))
    wall = result.plan.posterior
    fall = wall.log_density(center[None]) - wall.log_density(center + moves)
    np.testing.assert_allclose(fall, 0.5 * np.square(metric.whiten(moves)).sum(axis=1), atol=3.0)


def test_two_far_rows_of_which_one_is_surprising_have_a_fit_with_t_noise():
    X, y, _ = rows_of()
    X[8, 2], y[ROW] = 300.0, y[ROW] + 20.0
    settings = {"noise_model": "log_linear", "noise_distribution": "student_t"}
    result = SGLDLinearRegression(**settings, random_state=0).fit(X, y).result_
    assert "determine a noise" in result.plan.choices["parameterization"].why
    assert not result.problems


@pytest.mark.parametrize("residual", [0.5, 40.0])
def test_small_and_large_t_noise_has_its_mean_integrated_out(residual):
    nu, rate, precision = 4.0, 6.0, 10.0  # at the centre
    at = np.linspace(-8.0, 8.0, 9)

    def integral(s):
        sd = np.exp(0.5 * (rate * s - np.log(precision)))
        u = np.linspace(-45.0, 45.0, 60_001)  # about the row
        near = residual + sd * np.sinh(u)
        mean = np.sort(np.r_[near[np.abs(near) < 60.0], np.linspace(-12.0, 12.0, 20_001)])
        return np.trapezoid(t.pdf(residual, nu, mean, sd) * norm.pdf(mean), mean)

    exact = [np.log(integral(s)) - 0.5 * s**2 for s in at]
    information = np.array([np.log(precision * (nu + 1.0) / (nu + 3.0))])
    density = _heavy_density(nu, rate, np.array([residual]), information, np.ones(1))
    off = density(at) - exact
    np.testing.assert_allclose(off, off[0], atol=0.1)


def given_noise(result, X, y, weight):
    """Function of noise coefficients: log density without the mean's, and moments of these.

    The coefficients of the mean are integrated out, those of all ordinary rows by a normal
    equation, and the outlying row and its copies by the formula of Sherman and Morrison, at any
    noise.
    """
    others = result.plan.posterior.inner
    d, P = X.shape[1], others.n_params
    units = np.vstack([np.eye(P), -np.eye(P)])
    unit_fall = others.log_prior(np.zeros((1, P))) - others.log_prior(units).reshape(2, P).mean(0)
    design = np.column_stack([X - others.x_mean, np.ones(len(y))])
    in_noise = np.column_stack([X - others.slopes.mean, np.ones(len(y))])
    copies = (X[ROW] == X).all(axis=1)
    rest, x, its = ~copies, design[ROW], weight[copies]
    target = y[ROW] + np.average(y[copies] - y[ROW], weights=its)  # exact for equal ones
    spread = its @ np.square(y[copies] - target)

    def found(alpha):
        v = in_noise @ alpha
        precision = weight * np.exp(-v)
        scaled = design[rest].T * precision[rest]
        root = np.linalg.cholesky(scaled @ design[rest] + np.diag(2.0 * unit_fall[: d + 1]))
        cov = np.linalg.inv(root.T) @ np.linalg.inv(root)
        mean = cov @ (scaled @ y[rest])
        residual, variance = target - x @ mean, x @ cov @ x
        value = -np.log(np.diag(root)).sum() - 0.5 * np.sum(weight * v)
        value -= 0.5 * (precision[rest] @ np.square(y[rest]) - scaled @ y[rest] @ mean)
        value -= 0.5 * (np.log1p(precision[copies].sum() * variance) + spread * np.exp(-v[ROW]))
        share = 1.0 / (1.0 / precision[copies].sum() + variance)
        value -= 0.5 * residual**2 * share
        value += others.log_prior(np.r_[np.zeros(d + 1), alpha][None])[0]
        toward = cov @ x
        return value, mean + toward * residual * share, np.diag(cov) - toward**2 * share

    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The standard deviation")  # of heavy tails
@pytest.mark.parametrize("far", [3e2, 1e3])
@pytest.mark.parametrize("kind", [*KINDS, "surprise", "heavy"])
def test_draws_have_the_moments_of_importance_sampling_of_the_noise(kind, far):
    result, *rows = fitted(kind, far)
    draws, d = result.draws.values, rows[0].shape[1]
    draws = result.plan.posterior.inner.reported.theta(draws.reshape(-1, draws.shape[2]))
    noise, each = draws[:, d + 1 :], given_noise(result, *rows)
    alpha, weight = weighted_draws(
        lambda block: np.array([each(a)[0] for a in block]),
        noise.mean(axis=0),
        np.cov(noise.T),
        n_draws=4000,
    )
    assert 1.0 / np.sum(np.square(weight)) > 400
    moments = np.array([each(a)[1:] for a in alpha])  # (S, 2, d + 1)
    mean = np.column_stack([moments[:, 0], alpha])
    variance = np.column_stack([moments[:, 1], np.zeros_like(alpha)])
    center = weight @ mean
    sd = np.sqrt(weight @ (variance + np.square(mean - center)))
    z = ((draws - center) / sd).reshape(result.draws.values.shape)
    exact = (mean - center) / sd, (variance + np.square(mean - center)) / sd**2
    for found, terms in zip((z, np.square(z)), exact, strict=True):
        error = found.var(axis=(0, 1)) / effective_sample_size(found)
        error += np.square(weight) @ np.square(terms - weight @ terms)
        off = np.abs(found.mean(axis=(0, 1)) - weight @ terms)
        assert np.all(off < 4.5 * np.sqrt(error) + 0.01)  # 1 %: the bias of a step


@pytest.mark.parametrize("residuals", [[0.7], [0.7, 0.7], [0.7, -0.4, 1.9]])
def test_a_groups_density_has_its_mean_integrated_out(residuals):
    precision, rate, in_mean = 2.0, 1.7, 3.0  # at the centre; sds of log variance and mean
    r, at = np.array(residuals), np.linspace(-3.0, 3.0, 5)

    mean = np.linspace(-30.0, 30.0, 60_001)

    def integral(t):
        sd = np.sqrt(np.exp(rate * t) / precision)
        rows = norm.pdf(r[:, None], mean, sd).prod(axis=0)
        return np.sum(rows * norm.pdf(mean, 0.0, in_mean))

    exact = [np.log(integral(each)) - 0.5 * each**2 for each in at]
    n = len(r)
    groups = Groups(
        residual=np.array([r.mean() / in_mean]),
        log_precision=np.array([np.log(n * precision * in_mean**2)]),
        rate=np.array([rate]),
        weight=np.array([float(n)]),
        log_spread=np.log([precision * n * r.var() + 1e-300]),
        equal=np.array([n == 1]),
        slope=np.zeros(1),
    )
    off = groups.log_density(at) - exact
    np.testing.assert_allclose(off, off[0], atol=1e-6)


def planned(X):
    rng = np.random.default_rng(1)
    y = X[:, 0] + rng.standard_normal(len(X))
    prior = InverseGamma(2.0, 1.0)
    bound = LogLinearNoise().bind(X, y, NormalNoise(), Normal(scale=1.0), prior)
    task = Task.of(bound, Settings.of(SGLDLinearRegression()), 0)
    return OwnNoise.plan(task), task


def test_ordinary_and_related_rows_are_left_to_the_next_strategies():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4))
    outcome, task = planned(X)
    assert outcome is task
    X[:3, 1] = 300.0, 200.0, -250.0  # three rows of one slope
    outcome, task = planned(X)
    assert outcome is task


def test_the_rows_of_a_level_are_one_group():
    X = rows_of("levels")[0]
    outcome, _ = planned(X)
    wall = outcome.posterior
    equal = np.flatnonzero(~np.isin(X[:, 0], wall.inner.X[:, 0]))  # which the coordinates have
    assert len(equal) == 2 and ROW in equal  # and the level of one row
    weights = np.sort(wall.coordinates._transport._groups.weight)
    np.testing.assert_allclose(weights, [1, 1, 2, 5, 12], rtol=1e-9)
