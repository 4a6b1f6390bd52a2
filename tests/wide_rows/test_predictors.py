"""Trajectories of few rows' predictors: algebra, conditional draws, and whole posteriors."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, polygamma

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import Bernoulli, Binomial, Poisson, as_totals
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.adaptation import recentred
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.wide_rows.along_predictors import _n_leaves, tuned_step
from skbayes_sgld.wide_rows.collapsed_hmc import CollapsedHMC
from skbayes_sgld.wide_rows.equal_rows import distinct_rows
from skbayes_sgld.wide_rows.own_noise import OwnNoise, inverse_mills, latent_of
from skbayes_sgld.wide_rows.predictors import Predictors, collapses, predictors_of
from tests.marks import quick
from tests.posterior.test_sparse_rows import make_rows

SCALE = 12.0


def make_table(kind, n=50, d=250):
    """Sparse rows, and labels or counts."""
    X, y = make_rows(n, d, 0.1, seed=7)
    return X, (y if kind == "labels" else y * np.random.default_rng(2).poisson(2.0, n))


def make_posterior(kind="labels", dense=False, n=50, d=250, scale=SCALE, **options):
    X, y = make_table(kind, n, d)
    likelihood = Bernoulli() if kind == "labels" else Poisson()
    options = {"intercept_at_mean": True} | options
    return GLMPosterior(X.toarray() if dense else X, y, likelihood, Normal(scale=scale), **options)


def with_near_copies():
    """Rows of which twelve differ little from another, so that they have little noise."""
    (X, y), rng = make_table("labels"), np.random.default_rng(0)
    near = X[:6].toarray()
    near += 0.3 * (rng.random(near.shape) < 0.04)
    X = sparse.vstack([X, sparse.csr_array(near)]).tocsr()
    y = np.concatenate([y, 1.0 - y[:3], y[3:6]])
    return GLMPosterior(X, y, Bernoulli(), Normal(scale=SCALE), intercept_at_mean=True)


def with_copies(kind, weight=None, totals=False):
    """Rows of which six are copies of others, with other y, and four are empty."""
    (X, y), rng = make_table(kind), np.random.default_rng(0)
    X = sparse.vstack([X, X[:6], sparse.csr_array((4, X.shape[1]))]).tocsr()
    y = np.concatenate([y, y[3:9], y[20:24]])
    if weight == "random":
        weight = rng.choice([0.0, 0.6, 1.0, 2.5], len(y))
    likelihood = Bernoulli() if kind == "labels" else Poisson()
    if totals:
        likelihood, y = Binomial(), as_totals(y, 1 + rng.poisson(y))
    options = {"sample_weight": weight, "intercept_at_mean": True}
    return GLMPosterior(X, y, likelihood, Normal(scale=SCALE), **options)


CASES = {
    "labels, copies": with_copies("labels"),
    "labels, weights": with_copies("labels", "random"),
    "totals, copies": with_copies("labels", totals=True),
    "counts, copies": with_copies("counts"),
    "counts, weights": with_copies("counts", "random"),
    "labels": make_posterior(),
    "labels, dense": make_posterior(dense=True),
    "labels, offset": make_posterior(offset=np.linspace(-9.0, 9.0, 50)),
    "labels, no intercept": make_posterior(fit_intercept=False),
    "labels, intercept at 0": make_posterior(intercept_at_mean=False),
    "labels, near copies": with_near_copies(),
    "counts": make_posterior("counts"),
    "counts, offset": make_posterior("counts", offset=np.linspace(-1.0, 1.0, 50)),
    "labels, no noise": make_posterior(scale=0.8),
    "counts, no noise": make_posterior("counts", scale=0.4),
}
DRAWN = ("labels, weights", "totals, copies", "counts, offset", "labels, near copies")


@pytest.fixture(scope="module", params=CASES)
def rows(request):
    return CASES[request.param], Predictors(CASES[request.param])


def run_along(posterior, rows, **options):
    mode, sampler = Mode.from_whitened(rows), CollapsedHMC(path_length=1.6, **options)
    dynamics = recentred(Dynamics(Full().bind(posterior), mode.metric), mode)
    return Run(sampler, dynamics, Constant(), sampler.whole_steps(0.4), posterior.n_samples)


def test_metric_is_that_of_the_prior_and_the_weights(rows):
    posterior, rows = rows
    A = rows._predictors(np.eye(posterior.n_features, dtype=np.float32)).T.astype(float)
    squares = np.square(A).sum(axis=1)
    kernel = A @ A.T + np.diag(3e-6 * (squares + squares.mean()))
    prior = kernel - np.diag(rows._variance)
    assert np.linalg.eigvalsh(prior)[0] > 0
    precision = np.linalg.inv(prior)
    if posterior.fit_intercept:
        along = precision.sum(axis=0)
        precision -= np.outer(along, along) / along.sum()
    expected = np.linalg.inv(precision + np.diag(rows._W))
    size = np.abs(expected).max()
    np.testing.assert_allclose(rows._S, expected, atol=1e-4 * size)
    np.testing.assert_allclose(rows._R @ rows._R.T, expected, atol=1e-4 * size)
    pull = precision @ (rows._c - rows._prior_mean)
    np.testing.assert_allclose(pull, rows._a, atol=1e-3 * np.abs(rows._a).max())
    np.testing.assert_allclose(rows._inverse @ kernel, np.eye(len(A)), atol=2e-3)


def test_force_is_the_slope_of_the_value_and_small_about_the_centre(rows):
    _, rows = rows
    v = np.random.default_rng(0).standard_normal((3, rows.n_rows)) * np.sqrt(np.diagonal(rows._S))
    direction = np.random.default_rng(1).standard_normal(v.shape) * np.sqrt(np.diagonal(rows._S))
    ends = [rows._value((v + h * direction).astype(np.float32)) for h in (0.02, -0.02)]
    with np.errstate(over="ignore"):  # as in a run
        slope = np.sum(rows._force(v.astype(np.float32)) * direction, axis=1)
    np.testing.assert_allclose((ends[0] - ends[1]) / 0.04, slope, atol=0.03)


@pytest.mark.parametrize("rows", quick(CASES, *DRAWN), indirect=True)
def test_draws_obey_the_identities_of_the_exact_density(rows):
    posterior, rows = rows
    step = 0.1 if rows.has_bare else 0.4
    run = replace(run_along(posterior, rows, n_leaves=2), step_size=step)
    chains = run_chains(run, np.tile(rows.center, (32, 1)), n_draws=80, n_burnin=2, seed=0)
    assert 0.93 < np.mean(chains.acceptance) <= 1.0
    # integration by parts: E[d log p] = 0 and E[-(theta - c) d log p] = 1
    theta = chains.draws.reshape(-1, posterior.n_params)
    slopes = posterior.grad(theta)
    error = slopes.mean(axis=0) / (slopes.std(axis=0) / np.sqrt(len(theta)))
    virial = -((theta - theta.mean(axis=0)) * slopes).mean(axis=0)
    assert np.sqrt(np.square(error).mean()) < 1.7
    assert virial.mean() == pytest.approx(1.0, abs=0.012)


def test_rows_with_little_noise_keep_their_own_likelihood():
    posterior = CASES["labels, near copies"]
    rows = Predictors(posterior)
    assert rows.n_rows - rows._n_noisy == 12 and not rows._variance[rows._n_noisy :].any()
    v = np.random.default_rng(0).standard_normal((1, rows.n_rows)).astype(np.float32)
    changed = v.copy()
    changed[0, -1] += 3.0
    eta, sign = (
        rows._c[-1] + np.array([v[0, -1], changed[0, -1]]),
        2.0 * rows._y["successes"][-1] - 1.0,
    )
    gain = np.diff(-np.logaddexp(0.0, -sign * eta)) - 3.0 * rows._a[-1]
    gain += 0.5 * rows._W[-1] * np.diff(np.square([v[0, -1], changed[0, -1]]))
    np.testing.assert_allclose(rows._value(changed) - rows._value(v), gain, atol=1e-3)


def test_large_counts_decide_the_predictors_of_the_coefficients():
    X, _ = make_table("counts")
    y = np.random.default_rng(0).poisson(np.geomspace(1e2, 1e8, X.shape[0])).astype(float)
    posterior = GLMPosterior(X, y, Poisson(), Normal(scale=SCALE), intercept_at_mean=True)
    rows = Predictors(posterior)
    generators = [np.random.default_rng(c) for c in range(64)]
    dual = rows.first(generators)
    theta = np.concatenate([rows.locate(rows.leave(dual, generators)) for _ in range(10)])
    # under a wide prior predictors are the logs of gamma variables
    u = posterior.row_sum().predictors(theta).reshape(len(theta), -1)
    z = (u - digamma(y)) / np.sqrt(polygamma(1, y))
    assert np.abs(z.mean(axis=0)).max() < 0.2
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.12)
    assert np.square(z).mean() == pytest.approx(1.0, abs=0.04)


def test_trajectories_do_not_begin_in_walls():
    # rows without noise whose counts are 0, and whose predictors are wide
    X, _ = make_table("labels", 120, 500)
    other = sparse.random_array(X.shape, density=0.02, rng=0) > 0.0
    X = sparse.vstack([X, X + 0.3 * other.astype(float)]).tocsr()
    y = np.random.default_rng(1).poisson(0.7, X.shape[0])
    posterior = GLMPosterior(X, y, Poisson(), Normal(scale=SCALE), intercept_at_mean=True)
    rows = Predictors(posterior)
    generators = [np.random.default_rng(c) for c in range(64)]
    with np.errstate(all="ignore"):  # as in a run
        v = rows.first(generators)[:, rows.n_rows :]
    assert rows.has_bare
    rates = np.exp(rows._c + v)[:, rows._n_noisy :]
    assert (rates - rows._y[rows._n_noisy :]).max() < 12.0


def test_trajectories_of_short_steps_keep_their_energy(rows):
    _, rows = rows
    generators = [np.random.default_rng(c) for c in range(4)]
    with np.errstate(over="ignore"):
        dual = rows.first(generators)
    for n_steps in (16, 64) if rows.has_bare else (4, 16):
        step = np.full(4, 1.6 / n_steps)
        with np.errstate(over="ignore"):
            _, gain = rows.move(dual, step, n_steps, generators)
        assert np.abs(gain).max() < 30.0 * step[0] ** 2


def test_chains_do_not_depend_on_each_other_and_go_on_where_they_stopped():
    posterior = CASES["counts"]
    run = run_along(posterior, Predictors(posterior), n_leaves=3)
    start = np.tile(run.dynamics.center, (2, 1))
    whole = run_chains(run, start, n_draws=7, seed=3)
    alone = run_chains(run, start[:1], n_draws=4, seed=3)
    np.testing.assert_array_equal(alone.draws[0], whole.draws[0, :4])
    rest = run_chains(run, alone.state, n_draws=3)
    np.testing.assert_array_equal(rest.draws[0], whole.draws[0, 4:])


def test_several_draws_of_a_trajectory_share_its_end():
    posterior = CASES["labels"]
    rows = Predictors(posterior)
    run, start = run_along(posterior, rows, n_leaves=3), np.tile(rows.center, (1, 1))
    chains = [run_chains(run, start, n_draws=n, seed=0) for n in range(1, 6)]
    ends = [each.state.sampler_state["dual"] for each in chains]
    # the first trajectory, which is burn-in, has one draw
    same = [np.array_equal(*each) for each in pairwise(ends)]
    assert ends[0].shape == (1, 100) and same == [False, True, True, False]
    assert len(np.unique(chains[-1].draws[0, :, 0])) == 5


LIKELIHOODS = [
    (Binomial(), as_totals(0.0, 1.0), 8.0),
    (Binomial(), as_totals(1.0, 1.0), 20.0),
    (Binomial(), as_totals(0.0, 3.0), 8.0),
    (Binomial(), as_totals(40.0, 40.0), 8.0),
    (Binomial(), as_totals(1.0, 2.0), 8.0),
    (Binomial(), as_totals(5.0, 7.5), 12.0),
    (Binomial(), as_totals(0.5, 0.5), 25.0),
    (Poisson(), 0.0, 8.0),
    (Poisson(), 1.0, 8.0),
    (Poisson(), 7.0, 8.0),
]


def exact_density(likelihood, y, v, sd, offset):
    """Predictors u, and their density given v and y on them."""
    center = latent_of(np.atleast_1d(y)).mean[0] - offset
    u = np.linspace(min(v, center) - 12.0 * sd, max(v, center) + 12.0 * sd, 40_001)
    value = likelihood.log_density((u + offset)[None, None], np.full(len(u), y))[0]
    value = value - 0.5 * np.square((u - v) / sd)
    density = np.exp(value - value.max())
    return u, density / density.sum(), value.max() + np.log(density.sum() * (u[1] - u[0]))


@pytest.mark.parametrize(("likelihood", "y", "sd"), LIKELIHOODS)
@pytest.mark.parametrize("v", [-18.0, 0.0, 12.0])
def test_predictors_given_those_without_noise_have_the_exact_moments(likelihood, y, sd, v):
    n, offset = 20_000, 0.7
    ones = np.ones(n)
    noise = OwnNoise(np.full(n, y), sd**2 * ones, offset * ones)
    draws = noise.draw(v * ones, np.random.default_rng(0))
    u, density, _ = exact_density(likelihood, y, v, sd, offset)
    mean, rate = density @ u, density @ np.exp(np.minimum(u, 30.0))
    spread = np.sqrt(density @ np.square(u - mean))
    # the logistic distribution's excess kurtosis is left out
    slack = 0.02 if isinstance(likelihood, Binomial) else 0.0
    assert draws.mean() == pytest.approx(mean, abs=(4.0 / np.sqrt(n) + slack) * spread)
    assert draws.std() == pytest.approx(spread, rel=0.03 + slack)
    if isinstance(likelihood, Poisson):  # fitted rates are those of the likelihood itself
        error = np.exp(draws).std() / np.sqrt(n)
        assert np.exp(draws).mean() == pytest.approx(rate, abs=4.5 * error)


@pytest.mark.parametrize(("likelihood", "y", "sd"), LIKELIHOODS)
@pytest.mark.parametrize("v", [-5000.0, -60.0, 60.0, 5000.0])
def test_draws_end_however_far_predictors_are_from_their_rows(likelihood, y, sd, v):
    """Proposals of the nearly normal latent variable are never accepted there, or wrongly."""
    n, offset = 10_000, 0.7
    noise = OwnNoise(np.full(n, y), np.full(n, sd**2), np.full(n, offset))
    draws = noise.draw(np.full(n, v), np.random.default_rng(0))
    # the log density is concave: its mode, and a grid about it
    u, ys = np.linspace(-7000.0, 7000.0, 4001), np.full(4001, y)
    for number in range(4):
        with np.errstate(over="ignore", invalid="ignore"):
            value = likelihood.log_density((u + offset)[None, None], ys)[0]
        value = value - 0.5 * np.square((u - v) / sd)
        if number < 3:
            near = np.flatnonzero(value > value.max() - 40.0)
            u = np.linspace(u[max(near[0] - 1, 0)], u[near[-1] + 1], len(u))
    density = np.exp(value - value.max())
    density /= density.sum()
    mean = density @ u
    spread = np.sqrt(density @ np.square(u - mean))
    slack = 0.02 if isinstance(likelihood, Binomial) and abs(v) < 100.0 else 0.0  # as above
    assert draws.mean() == pytest.approx(mean, abs=(4.0 / np.sqrt(n) + slack) * spread)
    assert draws.std() == pytest.approx(spread, rel=0.04 + slack)


def test_draws_of_predictors_that_are_not_finite_end():
    noise = OwnNoise(np.array([0.0, 3.0]), np.full(2, 64.0), np.zeros(2))
    assert np.isnan(noise.draw(np.full(2, np.nan), np.random.default_rng(0))).all()


@pytest.mark.parametrize(("likelihood", "y", "sd"), LIKELIHOODS)
def test_scores_are_those_of_the_integrated_likelihood(likelihood, y, sd):
    y5 = np.full(5, y)
    v = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) * sd + latent_of(y5).mean
    noise = OwnNoise(y5, np.full(5, sd**2), np.zeros(5))
    score, curvature = noise.score_and_curvature(v)
    means = np.array([exact_density(likelihood, y, x, sd, 0.0) for x in v], dtype=object)
    exact = np.array([(u * p).sum() for u, p, _ in means])
    np.testing.assert_allclose(score, (exact - v) / sd**2, atol=0.01 / sd)
    ends = noise.score_and_curvature(v + 1e-4)[0], noise.score_and_curvature(v - 1e-4)[0]
    np.testing.assert_allclose(curvature, (ends[1] - ends[0]) / 2e-4, rtol=1e-4)


def test_inverse_mills_ratio_is_finite_far_out():
    x = np.array([-40.0, 0.0, 40.0], np.float32)
    np.testing.assert_allclose(inverse_mills(x), [40.0250, 0.797885, 0.0], rtol=1e-4)


def test_rows_and_models_of_other_kinds_are_not_taken():
    wide = {"n": 120, "d": 500}
    assert predictors_of(make_posterior(**wide)) is not None
    assert predictors_of(make_posterior(**wide, sample_weight=np.full(120, 2.0))) is not None
    assert predictors_of(make_posterior(**wide, intercept_prior=Normal(2.0))) is None
    X, y = make_table("labels", 120, 500)
    twice = sparse.vstack([X, 1.0001 * X[:5]]).tocsr(), np.append(y, y[:5])
    assert predictors_of(GLMPosterior(*twice, Bernoulli(), Normal(scale=SCALE))) is None
    assert predictors_of(GLMPosterior(X, np.zeros(120), Poisson(), Normal(scale=SCALE))) is None


def test_other_temperatures_and_given_coordinates_are_not_taken():
    posterior = make_posterior(n=120, d=500)
    for options, taken in [
        ({}, True),
        ({"parameterization": "centered"}, True),
        ({"temperature": 0.5}, False),
        ({"parameterization": "row_space"}, False),
        ({"batch_size": 10}, False),
    ]:
        settings = Settings.of(SGLDLogisticRegression(**options))
        assert collapses(posterior, settings) is taken


def test_step_size_accepts_most_trajectories():
    posterior = make_posterior(n=120, d=500)
    rows, sampler = Predictors(posterior), CollapsedHMC(path_length=1.6)
    step, acceptance = tuned_step(rows, sampler, seed=0)
    assert 0.3 < step <= 0.64 and 0.8 < acceptance <= 1.0
    rows._value = lambda v: np.full(len(v), np.nan)
    assert tuned_step(rows, sampler, seed=0)[1] == 0.0


@pytest.mark.parametrize("kind", ["labels", "counts"])
def test_default_fits_of_few_wide_rows_move_predictors(kind):
    X, y = make_table(kind, 120, 500)
    estimator = SGLDLogisticRegression if kind == "labels" else SGLDPoissonRegressor
    model = estimator(prior=Normal(scale=SCALE), n_draws=300, random_state=0).fit(X, y)
    choices = model.result_.choices
    assert isinstance(choices["sampler"].value, CollapsedHMC)
    assert choices["parameterization"].value == "centered"
    assert model.result_.mode is None and 0.7 < model.result_.acceptance <= 1.0


def test_equal_rows_are_one_row_of_their_total_or_sum():
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]))
    y, weight = np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.5, 3.0, 0.0, 2.0])
    for rows in (X, X.toarray()):
        labels = GLMPosterior(rows, y, Bernoulli(), Normal(), sample_weight=weight)
        found = distinct_rows(labels, 2)
        np.testing.assert_array_equal(sparse.csr_array(found.X).toarray(), X[:2].toarray())
        np.testing.assert_array_equal(found.y["successes"], [1.0, 2.0])
        np.testing.assert_array_equal(found.y["trials"], [4.0, 2.5])
        offset = np.log([1.0, 2.0, 3.0, 4.0, 5.0])
        counts = GLMPosterior(rows, 2.0 * y, Poisson(), Normal(), offset=offset)
        found = distinct_rows(counts, 3)
        np.testing.assert_array_equal(found.y, [2.0, 2.0, 2.0])
        np.testing.assert_allclose(np.exp(found.offset), [4.0, 7.0, 4.0])
    # labels of copies with different offsets are no total
    labels = GLMPosterior(X, y, Bernoulli(), Normal(), offset=offset)
    assert distinct_rows(labels, 4) is None
    assert len(distinct_rows(labels, 5).y) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["labels", "counts"])
def test_rows_with_copies_have_the_posterior_of_another_sampler(kind):
    posterior = with_copies(kind)
    estimator = SGLDLogisticRegression if kind == "labels" else SGLDPoissonRegressor
    X, y = posterior.X, posterior.y
    X = sparse.hstack([X, sparse.random_array((X.shape[0], 100), density=0.1, rng=0)]).tocsr()
    settings = {"prior": Normal(scale=SCALE), "n_draws": 2000, "random_state": 0}
    fits = [
        estimator(**settings, **other).fit(X, y)
        for other in ({}, {"sampler": "hmc", "parameterization": "row_space"})
    ]
    assert isinstance(fits[0].result_.choices["sampler"].value, CollapsedHMC)
    assert not isinstance(fits[1].result_.choices["sampler"].value, CollapsedHMC)
    functions = sparse.vstack([X[:6], X[-5:], sparse.eye_array(X.shape[1], format="csr")[:20]])
    moments = []
    for fit in fits:
        draws = fit.result_.draws.values
        u = draws[..., :-1] @ functions.toarray().T + draws[..., -1:]
        moments.append(
            [(x.mean((0, 1)), x.std((0, 1)), effective_sample_size(x)) for x in (u, u**2)]
        )
    for (mean, sd, n), (other, other_sd, m) in zip(*moments, strict=True):
        z = (mean - other) / np.sqrt(sd**2 / n + other_sd**2 / m)
        assert np.abs(z).max() < 4.5 and np.sqrt(np.square(z).mean()) < 1.5


def test_a_trajectory_gives_as_many_draws_beside_any_number_of_chains():
    posterior, dear = make_posterior(), SimpleNamespace(work_of=lambda _: 1e8, has_bare=False)
    asked = [SGLDLogisticRegression(n_chains=c, n_draws=400) for c in (1, 4, 9)]
    tasks = [Task.of(posterior, Settings.of(each), 0) for each in asked]
    assert [_n_leaves(task, dear, 8) for task in tasks] == [2, 2, 2]
