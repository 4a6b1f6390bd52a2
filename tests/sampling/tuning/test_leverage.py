"""Rows of high leverage: found wherever they are, and read in every batch."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDGammaRegressor, SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.likelihoods import (
    Bernoulli,
    Categorical,
    Gamma,
    NegativeBinomial,
    Ordinal,
    Poisson,
)
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import GRADIENTS, SAGA, SVRG, ControlVariate, Minibatch
from skbayes_sgld.sampling.tuning import noise
from skbayes_sgld.sampling.tuning.leverage import bounds_to_try, leverages_of, read_always
from tests.marks import SHORT, short_chains
from tests.numeric import assert_derivative, derivative
from tests.references.closed_forms import importance_sampling, laplace_fit
from tests.references.targets import mode_of

RARE = [3, 17]  # rows of the rare category and far out


def with_rare_rows(likelihood, n=400, sparse=False, **options):
    """A posterior with two rows of high leverage, and its mode."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((n, 2)), np.zeros(n)])
    X[RARE[0], 2], X[RARE[1], 1] = 1.0, 60.0
    u = 0.5 + X @ np.array([0.3, 0.02, 1.0])
    if isinstance(likelihood, Bernoulli | Categorical | Ordinal):
        n_classes = max(likelihood.n_predictors, 2) if not likelihood.own else 3
        y = np.digitize(u + rng.logistic(size=n), np.linspace(-0.3, 1.5, n_classes - 1))
    else:
        y = rng.poisson(np.exp(u)) if likelihood.whole else rng.gamma(2.0, np.exp(u) / 2.0)
    design = csr_array(X) if sparse else X
    posterior = GLMPosterior(design, y.astype(float), likelihood, Normal(1.0), **options)
    return posterior, mode_of(posterior, posterior.start())


def split_of(posterior, mode):
    leverages = leverages_of(posterior, mode)
    return read_always(posterior, mode, leverages, bounds_to_try(posterior)[0])


LIKELIHOODS = {
    "logistic": Bernoulli(),
    "softmax": Categorical(3),
    "ordinal": Ordinal(3),
    "counts": Poisson(),
    "negative binomial": NegativeBinomial(),
    "gamma": Gamma(),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_the_rows_that_decide_are_in_every_batch(kind, sparse):
    weight = np.ones(400)
    weight[5] = 0.0
    posterior, mode = with_rare_rows(LIKELIHOODS[kind], sparse=sparse, sample_weight=weight)
    split = split_of(posterior, mode)
    assert split.posterior.n_always < 0.1 * 400
    assert split.posterior.n_always + split.posterior.n_samples == 400
    kept = np.isin(np.arange(400), split.posterior._sampled)
    assert not kept[RARE].any()
    assert kept[5]


@pytest.mark.parametrize("n_columns", [3, 60])
def test_a_leverage_is_the_curvature_times_the_variance_of_a_predictor(n_columns):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, n_columns))
    X[7, 0] = 40.0
    y = (X[:, 1] + rng.logistic(size=3000) > 0.0).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(1.0), intercept_at_mean=True)
    mode = mode_of(posterior, posterior.start())
    moves = mode.metric.sqrt(np.eye(n_columns + 1))
    (leverages,) = posterior.leverages(mode.theta, moves, 0.0)
    design = np.column_stack([X - posterior.x_mean, np.ones(3000)])
    covariance = np.linalg.inv(posterior.curvature(mode.theta))
    variance = np.einsum("ij,jk,ik->i", design, covariance, design)
    u = design @ mode.theta + np.sqrt(variance) * np.array([[0.0], [2.0], [-2.0]])
    p = 1.0 / (1.0 + np.exp(-u))
    curvature = np.concatenate([p * (1.0 - p), np.abs(p[1:] - p[0]) / (2.0 * np.sqrt(variance))])
    np.testing.assert_allclose(leverages, curvature.max(axis=0) * variance, rtol=1e-5)
    # random moves find the rows above a bound
    (rough,) = posterior.leverages(mode.theta, moves, 0.1)
    np.testing.assert_allclose(rough[7], leverages[7])
    assert leverages[7] > 0.1
    assert set(np.flatnonzero(rough > 0.1)) == set(np.flatnonzero(leverages > 0.1))


def test_a_row_that_bends_between_the_mode_and_two_sds_away_is_found():
    # a wall at 1,000 sds in a column: flat at the mode, and where it was crossed
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 2))
    X[7, 0] = 1000.0
    y = (X[:, 1] + rng.logistic(size=3000) > 0.0).astype(float)
    y[7] = 1.0
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(1.0))
    mode = mode_of(posterior, posterior.start())
    assert X[7] @ mode.theta[:2] > 15.0
    assert 7 not in split_of(posterior, mode).posterior._sampled


def test_rows_of_about_one_leverage_are_all_sampled():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((600, 20))
    y = (X[:, 0] + rng.logistic(size=600) > 0.0).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(1.0))
    assert split_of(posterior, mode_of(posterior, posterior.start())).posterior is posterior


@pytest.mark.parametrize("times, is_read", [(10.0, False), (20.0, True)])
def test_a_row_of_more_than_five_times_the_usual_leverage_is_always_read(times, is_read):
    # it and seven others are along one axis: its leverage is about times / (7 + times), that of the
    # rows along the other axis 1 / 8
    X, y = np.resize([[1.0, 1.0], [1.0, -1.0]], (16, 2)), np.resize([0.0, 0.0, 1.0, 1.0], 16)
    X[0] *= np.sqrt(times)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(1e3), fit_intercept=False)
    split = split_of(posterior, mode_of(posterior, np.zeros(2)))
    assert split.posterior.n_always == is_read


@pytest.mark.parametrize("gradient", [*GRADIENTS, ControlVariate(1)], ids=str)
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_the_mean_over_all_batches_is_the_gradient_from_all_rows(kind, gradient):
    posterior, mode = with_rare_rows(LIKELIHOODS[kind], n=40)
    split = posterior.always_reading(np.array([30, *RARE]))
    estimator = GRADIENTS[gradient]() if isinstance(gradient, str) else gradient
    if not estimator.minibatch:
        return
    bound = estimator.bind(split, mode.theta)
    theta = (mode.theta + 0.7 * mode.metric.marginal_sd)[None]
    total = 0.0
    for row in range(split.n_samples):
        memory = bound.begin(theta)
        total = total + bound(theta, bound.prepare(np.array([[[row]]]))[0], memory)
    truth = derivative(posterior.log_density, theta)[0]
    assert_derivative(total / 37, truth, "the mean of the estimates", rtol=1e-6)


@pytest.mark.parametrize("gradient", [ControlVariate(1), ControlVariate(2), SVRG(), SAGA()])
def test_a_batchs_gradient_is_far_quieter_with_the_rows_that_decide(gradient):
    posterior, mode = with_rare_rows(Poisson())
    theta = (mode.theta + mode.metric.marginal_sd)[None]

    def spread(posterior):
        bound, estimates = gradient.bind(posterior, mode.theta), []
        start = bound.begin(mode.theta[None])  # SVRG and SAGA know the rows at the mode
        if "age" in start:
            bound(mode.theta[None], bound.prepare(np.zeros((1, 1, 1), int))[0], start)
        for row in range(posterior.n_samples):
            memory = {name: np.array(value) for name, value in start.items()}
            estimates.append(bound(theta, bound.prepare(np.array([[[row]]]))[0], memory)[0])
        return mode.metric.sqrt_t(np.array(estimates)).std(axis=0).max()

    assert gradient.reads_always
    assert spread(split_of(posterior, mode).posterior) < 0.1 * spread(posterior)


def test_plain_minibatches_are_those_of_the_published_algorithm():
    assert not Minibatch().reads_always


def test_a_row_that_a_sample_misses_is_not_missed_in_the_noise():
    posterior, mode = with_rare_rows(Poisson(), n=3000)
    exact, surely, missed = (
        noise.measure_noise(posterior, ControlVariate(), mode, 1.0, 0, None, size, rows).variance
        for size, rows in ((3000, None), (200, np.array(RARE)), (200, None))
    )
    assert surely == pytest.approx(exact, rel=0.1)
    assert missed < 0.01 * exact


# ---- fits ----------------------------------------------------------------------------------------


def cells(seed=0, n=6000):
    """Columns of few values: their likelihood is known by the sums over equal rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.choice([-1.0, 1.0], n), np.zeros((n, 2))])
    X[:1, 1], X[1:4, 2] = 1.0, 1.0
    return X, np.exp(0.5 + X @ np.array([0.3, 0.8, -0.7])), rng


def counts_of_cells(X, y):
    """Log density of a Poisson model with normal priors of scale 2, by cells."""
    rows, at = np.unique(X, axis=0, return_inverse=True)
    size, total = np.bincount(at), np.bincount(at, y)

    def log_density(theta):
        u = theta[:, :-1] @ rows.T + theta[:, -1:]
        return u @ total - np.exp(u) @ size - 0.125 * np.square(theta[:, :-1]).sum(axis=1)

    return log_density


def assert_moments(model, exact, n_params):
    draws = model.result_.values[..., :n_params]
    error = 1.0 / np.sqrt(effective_sample_size(draws))
    flat, limit = draws.reshape(-1, n_params), 4.0 * error + 0.01
    np.testing.assert_array_less(np.abs(flat.mean(axis=0) - exact.mean) / exact.sd, limit)
    np.testing.assert_array_less(np.abs(flat.std(axis=0) / exact.sd - 1.0), limit)


def test_counts_with_a_category_of_one_row_are_right_on_batches():
    X, mean, rng = cells()
    y = rng.poisson(mean)
    model = SGLDPoissonRegressor(prior=Normal(scale=2.0), random_state=0).fit(X, y)
    assert 0 < model.batch_size_ < 100
    assert "4 rows of high leverage" in model.result_.choices["batch_size"].why
    log_density = counts_of_cells(X, y)
    exact = importance_sampling(log_density, *laplace_fit(log_density, 4), n_draws=100_000, df=5)
    assert exact.ess > 10_000
    assert_moments(model, exact, 4)


def test_a_named_gradient_reads_them_too():
    X, mean, rng = cells()
    y = rng.poisson(mean)
    named = {"gradient": ControlVariate(1), "batch_size": 200, "n_draws": 500}
    model = SGLDPoissonRegressor(prior=Normal(scale=2.0), random_state=0, **named).fit(X, y)
    assert (model.batch_size_, model.gradient_.order) == (200, 1)
    log_density = counts_of_cells(X, y)
    exact = importance_sampling(log_density, *laplace_fit(log_density, 4), n_draws=100_000, df=5)
    assert_moments(model, exact, 4)


@short_chains
def test_a_chain_depends_neither_on_the_number_of_chains_nor_on_processes():
    X, mean, rng = cells()
    y = rng.gamma(2.0, mean / 2.0)
    draws = [
        SGLDGammaRegressor(**SHORT | {"n_chains": n}, random_state=0).fit(X, y).result_.values
        for n in (2, 3)
    ]
    np.testing.assert_array_equal(draws[0], draws[1][:2])
    walkers = [
        SGLDLogisticRegression(n_chains=n, random_state=0).fit(X, y > 1.0).result_.values
        for n in (1, 3)
    ]
    np.testing.assert_array_equal(walkers[0], walkers[1][:1])


def test_rows_in_blocks_keep_a_category_of_one_row_in_every_batch():
    from skbayes_sgld.blocks import RowBlocks

    X, mean, rng = cells()
    y = rng.poisson(mean)
    blocks = RowBlocks(
        lambda: zip(np.array_split(X, 4), np.array_split(y, 4), strict=True), pool_size=2500
    )
    model = SGLDPoissonRegressor(prior=Normal(scale=2.0), random_state=0).fit(blocks)
    assert model.result_.plan.posterior.n_samples < 4000
    assert "rows of high leverage" in model.result_.choices["batch_size"].why
    log_density = counts_of_cells(X, y)
    exact = importance_sampling(log_density, *laplace_fit(log_density, 4), n_draws=100_000, df=5)
    assert_moments(model, exact, 4)


# ---- rows that move a chain far -----------------------------------------------------------------


def rare_level(n, n_rare, seed=0):
    """Labels beside a category of ``n_rare`` rows."""
    rng = np.random.default_rng(seed)
    rare = np.isin(np.arange(n), rng.choice(n, n_rare, replace=False))
    X = np.column_stack([rng.standard_normal((n, 4)), rare])
    u = X @ [0.6, -0.5, 0.3, 0.0, 1.0]
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-u))).astype(int)


def furthest(model):
    """Distance of the furthest draw from the median, in half-widths of the central 68 %."""
    draws = model.result_.flat
    low, middle, high = np.quantile(draws, [0.16, 0.5, 0.84], axis=0)
    return (np.abs(draws - middle) / (0.5 * (high - low))).max()


@pytest.mark.parametrize("kind", ["logistic", "softmax", "gamma"])
def test_a_kick_is_what_one_row_adds_to_a_gradient(kind, monkeypatch):
    monkeypatch.setattr(noise, "_SHARED", 1)  # rows alone in their directions count fully
    posterior, mode = with_rare_rows(LIKELIHOODS[kind])
    gradient, n, P = ControlVariate(), posterior.n_samples, posterior.n_params
    level = noise.measure_noise(posterior, gradient, mode, 1.0, 0, surely=np.arange(n))
    first = noise.FIRST_CHAIN
    z = noise.start_normals(0, range(first, first + noise._PROBE_DRAWS), P)
    bound = gradient.bind(posterior, mode.theta, mode.expansion)
    batch = bound.prepare(np.arange(n)[None, :, None])[0]
    squares = np.zeros(n)
    for theta in mode.theta + mode.metric.sqrt(z):
        each = bound(np.tile(theta, (n, 1)), batch)
        away = theta - bound.expansion.theta
        rest = each - posterior.grad_log_prior(theta[None]) - bound.expansion.grad
        rest += bound.expansion.curvature @ away
        squares += np.square(mode.metric.sqrt_t(rest)).sum(axis=1) / len(z)
    assert level.kick == pytest.approx(np.sqrt(squares.max()), rel=1e-6)


@pytest.mark.parametrize("n, n_rare, options", [(5000, 50, {"batch_size": 8}), (200_000, 100, {})])
def test_rare_rows_that_batches_draw_move_no_chain_far_out(n, n_rare, options):
    # one row of 100 was drawn once in 25,000 batches, and moved a chain by 30 sds
    model = SGLDLogisticRegression(random_state=0, **options).fit(*rare_level(n, n_rare))
    assert model.result_.choices["batch_size"].value is not None
    assert furthest(model) < 6.0


def test_rows_that_move_chains_far_in_given_steps_are_told():
    X, y = rare_level(1000, 60)
    model = SGLDLogisticRegression(batch_size=1, step_size=1.0, sampler="sgld", random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"moves chains by up to .* set batch_size=\d+"):
        model.fit(X, y)


@pytest.mark.parametrize("n_rare, share", [(1, 0.1), (4, 0.4), (30, 1.0)])
def test_kicks_of_a_row_alone_count_by_a_tenth(n_rare, share, monkeypatch):
    X = np.zeros((400, 2))
    X[:, 0], X[:n_rare, 1] = 1.0, 1.0
    posterior = GLMPosterior(
        X, np.arange(400) % 2 * 1.0, Bernoulli(), Normal(1.0), fit_intercept=False
    )
    mode, rare = mode_of(posterior, posterior.start()), np.arange(n_rare)
    counted = noise.measure_noise(posterior, ControlVariate(), mode, 1.0, 0, surely=rare).kick
    monkeypatch.setattr(noise, "_SHARED", 1)
    whole = noise.measure_noise(posterior, ControlVariate(), mode, 1.0, 0, surely=rare).kick
    assert counted == pytest.approx(share * whole)


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_allowed_kicks_are_in_units_of_the_tempered_posterior(temperature):
    level, sd = noise.NoiseLevel(0.0, kick=5.0), np.sqrt(temperature)
    step = level.step_size(8, temperature)
    assert step * 5.0 / 8 == pytest.approx(noise.THRESHOLDS.kick * sd)
    assert level.batch_size(step, temperature) == pytest.approx(8, abs=1)
