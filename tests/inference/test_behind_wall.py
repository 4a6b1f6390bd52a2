"""A row that bounds the posterior on one side: coordinates without its wall."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, gammaln
from scipy.stats import betabinom

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.inference.planning.rows_read import RowsRead
from skbayes_sgld.inference.planning.task import Finding, Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.behind_wall import BehindWall
from skbayes_sgld.likelihoods import Bernoulli, Categorical, Gamma
from skbayes_sgld.own_models import check_gradient
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.parameterizations.wall import behind_wall
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import ControlVariate, Independence
from skbayes_sgld.sampling.gradients.mapped import MappedGradient
from skbayes_sgld.sampling.tuning import leverage
from skbayes_sgld.sampling.tuning.mode import newton_mode
from tests.marks import slow
from tests.numeric import derivative_by_chain
from tests.references.closed_forms import weighted_draws

ROW = 7  # the outlying one


def outlying(n=5000, far=1e3, seed=0):
    """Normal columns, in one of which a row is far out, and labels."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((n, 4)), 0.5 * rng.standard_normal(4)
    X[ROW, 1], coef[1] = far, 1.0 / far
    return X, (rng.random(n) < expit(X @ coef)).astype(int), rng


def outlying_counts():
    """Columns of :func:`outlying`, and counts."""
    X, _, rng = outlying()
    return X, rng.poisson(np.exp(1.0 + 0.3 * X[:, 0] + 1e-3 * X[:, 1]))


def outlying_times(n=5000):
    """Columns of :func:`outlying`, and waiting times of which the outlying one is short."""
    X, _, rng = outlying(n)
    y = np.exp(0.3 * X[:, 0]) * rng.gamma(2.0, 0.5, len(X))
    y[ROW] = 0.1
    return X, y


def outlying_classes(n=5000, K=3):
    """Columns of :func:`outlying`, and classes."""
    X, _, rng = outlying(n)
    u = X[:, [0, 2]] @ rng.standard_normal((2, K))
    return X, (u + rng.gumbel(size=u.shape)).argmax(axis=1)


def two_outlying_classes(n=5000, K=3):
    """Classes, and columns of which two have a row far out each."""
    X, y = outlying_classes(n, K)
    X[ROW + 1, 3] = -600.0
    return X, y


def behind(X, y, likelihood=None, rows=(ROW,)):
    """Posterior behind the walls of rows, that of all rows, and the mode without these."""
    posterior = GLMPosterior(X, y, likelihood or Bernoulli(), Normal(scale=1.0))
    others = np.delete(np.arange(len(y)), rows)
    mode = newton_mode(posterior.take(others), posterior.start())
    covariance = mode.metric.sqrt(mode.metric.sqrt_t(np.eye(posterior.n_params)))
    return behind_wall(posterior, np.array(rows), mode.theta, covariance), posterior, mode


def test_the_map_has_its_inverse_its_jacobian_and_its_chain_rule():
    wall, _, mode = behind(*outlying()[:2])
    map_, rng = wall.coordinates, np.random.default_rng(1)
    phi, weight = mode.theta + mode.metric.sqrt(rng.standard_normal((6, 5))), np.ones((6, 5))
    at = map_.expand(phi)
    np.testing.assert_allclose(map_.inverse(at.theta), phi, atol=1e-9)
    log_det = np.linalg.slogdet(derivative_by_chain(map_.forward, phi))[1]
    np.testing.assert_allclose(log_det, at.log_jacobian, atol=1e-5)

    def tilted(x):
        found = map_.expand(x)
        return (found.theta * weight).sum(axis=1) + 2.5 * found.log_jacobian

    slopes = derivative_by_chain(tilted, phi)
    np.testing.assert_allclose(at.pull_back(weight, 2.5), slopes, rtol=1e-4, atol=1e-4)
    check_gradient(wall, phi)


@pytest.mark.parametrize(
    ("data", "likelihood", "most"),
    [
        (lambda: outlying()[:2], Bernoulli(), 0.1),
        (outlying_times, Gamma(), 0.2),
        (outlying_classes, Categorical(3), 0.15),
        (lambda: outlying_classes(K=8), Categorical(8), 0.3),
    ],
)
def test_the_posterior_is_nearly_normal_behind_the_wall(data, likelihood, most):
    wall, posterior, mode = behind(*data(), likelihood)
    z = np.random.default_rng(1).standard_normal((200, mode.theta.size))
    normal = -0.5 * np.square(z).sum(axis=1)
    theta = mode.theta + mode.metric.sqrt(z)
    assert (wall.log_density(theta) - normal).std() < most
    assert (posterior.log_density(theta) - normal).std() > 1.0
    check_gradient(wall, theta[:6])


@pytest.mark.parametrize(
    ("data", "rows"), [(outlying_classes, [ROW]), (two_outlying_classes, [ROW, ROW + 1])]
)
@pytest.mark.parametrize("own", [0, 2])
def test_the_density_behind_walls_of_classes_is_that_of_all_rows(data, rows, own):
    X, y = data()
    y[ROW] = own
    wall, posterior, mode = behind(X, y, Categorical(3), rows)
    z = np.random.default_rng(1).standard_normal((6, mode.theta.size))
    phi = mode.theta + mode.metric.sqrt(z)
    theta = wall.coordinates.forward(phi)
    np.testing.assert_allclose(wall.coordinates.inverse(theta), phi, atol=1e-8)
    log_det = np.linalg.slogdet(derivative_by_chain(wall.coordinates.forward, phi))[1]
    off = wall.log_density(phi) - posterior.log_density(theta) - log_det
    np.testing.assert_allclose(off, off[0], atol=1e-4)
    check_gradient(wall, phi)


@pytest.mark.parametrize(("K", "most"), [(3, 0.2), (8, 0.4)])
def test_the_posterior_is_nearly_normal_behind_the_walls_of_two_rows(K, most):
    data, rows = two_outlying_classes(K=K), [ROW, ROW + 1]
    wall, posterior, mode = behind(*data, Categorical(K), rows)
    z = np.random.default_rng(1).standard_normal((200, mode.theta.size))
    normal = -0.5 * np.square(z).sum(axis=1)
    theta = mode.theta + mode.metric.sqrt(z)
    assert (wall.log_density(theta) - normal).std() < most
    assert (posterior.log_density(theta) - normal).std() > 1.0


def test_related_rows_have_no_coordinates_of_their_own():
    X, y = outlying_classes()
    X[ROW + 1, 1] = 800.0
    assert behind(X, y, Categorical(3), [ROW, ROW + 1])[0] is None


def test_a_batch_of_all_rows_has_the_gradient_of_all_rows():
    wall, posterior, mode = behind(*outlying()[:2])
    split = posterior.always_reading(np.array([ROW]))
    gradient = ControlVariate().bind(split, mode.theta)
    mapped = MappedGradient.of(gradient, wall.coordinates, 1.0)
    z = np.random.default_rng(1).standard_normal((3, 5))
    phi = mode.theta + mode.metric.sqrt(z)
    (batch,) = mapped.prepare(np.tile(np.arange(split.n_samples), (1, 3, 1)))
    np.testing.assert_allclose(mapped(phi, batch), wall.grad(phi), rtol=1e-6, atol=1e-6)


def ordinary():
    return outlying()


def surprising():
    """The row's label is the one that the other rows make unlikely."""
    X, y, rng = outlying()
    y[:] = rng.random(len(y)) < expit(X[:, 0] + 0.02 * X[:, 1])
    y[ROW] = 0
    return X, y, rng


def collinear():
    """A column is nearly a copy of the long one, and a category is rare."""
    X, y, rng = outlying()
    rare = np.arange(len(y)) < 3
    X = np.column_stack([X, X[:, 1] + 0.05 * rng.standard_normal(len(y)), rare])
    return X, y, rng


CASES = [ordinary, slow(surprising), slow(collinear)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["dense", slow("sparse"), slow("float32"), slow("weights")])
def test_draws_are_those_of_hmc_on_all_rows(case, kind):
    X, y, rng = case()
    given = {"sample_weight": rng.uniform(0.5, 1.5, len(y))} if kind == "weights" else {}
    X = {"sparse": sparse.csr_array, "float32": np.float32}.get(kind, np.asarray)(X)
    settings = {"prior": Normal(scale=1.0), "random_state": 0}
    model = SGLDLogisticRegression(**settings).fit(X, y, **given)
    assert "bounds the posterior" in model.result_.plan.choices["parameterization"].why
    other = SGLDLogisticRegression(sampler="hmc", n_draws=400, **settings).fit(X, y, **given)
    assert_same_moments(*(each.result_.draws.values for each in (model, other)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "data"),
    [(SGLDPoissonRegressor, outlying_counts), (SGLDGammaRegressor, outlying_times)],
)
def test_counts_and_waiting_times_have_the_draws_of_hmc_on_all_rows(estimator, data):
    X, y = data()
    model = estimator(random_state=0).fit(X, y)
    assert "bounds the posterior" in model.result_.plan.choices["parameterization"].why
    other = estimator(sampler="hmc", n_draws=400, random_state=0).fit(X, y)
    assert_same_moments(*(each.result_.draws.values for each in (model, other)))


def test_proposals_behind_a_wall_have_the_moments_of_importance_sampling():
    X, y = outlying_times(1800)
    model = SGLDGammaRegressor(random_state=0).fit(X, y)
    plan, draws = model.result_.plan, model.result_.draws.values
    assert "bounds the posterior" in plan.choices["parameterization"].why
    assert isinstance(plan.run.sampler, Independence)
    inner = plan.posterior.inner

    def log_density(theta):
        *coef, intercept, dispersion = inner.reported.values(theta).T
        u, shape = (X @ coef + intercept).T, 1.0 / dispersion[:, None]
        terms = shape * (np.log(shape * y) - u - y * np.exp(-u)) - gammaln(shape)
        return terms.sum(axis=1) + inner.log_prior(theta)

    at = inner.reported.theta(draws.reshape(-1, draws.shape[2]))
    theta, weight = weighted_draws(log_density, at.mean(axis=0), np.cov(at.T), n_draws=3000)
    assert_same_as_weighted(draws, inner.reported.values(theta), weight)


def certain(X, y, weight):
    """The row counts as 300."""
    weight[ROW] = 300.0


def unlikely(X, y, weight):
    """The row's class is the one that the other rows make unlikely."""
    y[(X[:, 1] > 1.5) & (np.arange(len(y)) % 4 == 0)] = 1
    y[ROW] = 0


def rare(X, y, weight):
    """Few rows have the row's class."""
    y[(y == 2) & (np.arange(len(y)) % 10 > 0)] = 0
    y[ROW] = 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "K"), [(None, 3), (certain, 3), (unlikely, 3), (rare, 3), (None, 8)]
)
def test_classes_have_the_draws_of_hmc_on_all_rows(change, K):
    X, y = outlying_classes(1800, K)
    weight = np.ones(len(y))
    if change is not None:
        change(X, y, weight)
    given = {"sample_weight": weight} if change is certain else {}
    settings = {"prior": Normal(scale=1.0), "random_state": 0}
    model = SGLDLogisticRegression(**settings).fit(X, y, **given)
    assert "bounds the posterior" in model.result_.plan.choices["parameterization"].why
    other = SGLDLogisticRegression(sampler="hmc", n_draws=1000, **settings).fit(X, y, **given)
    assert_same_moments(*(each.result_.draws.values for each in (model, other)))


@pytest.mark.slow
def test_classes_with_two_rows_far_out_have_the_draws_of_hmc_on_all_rows():
    X, y = two_outlying_classes(1800)
    settings = {"prior": Normal(scale=1.0), "random_state": 0}
    model = SGLDLogisticRegression(**settings).fit(X, y)
    assert "2 rows bound" in model.result_.plan.choices["parameterization"].why
    other = SGLDLogisticRegression(sampler="hmc", n_draws=1000, **settings).fit(X, y)
    assert_same_moments(*(each.result_.draws.values for each in (model, other)))


def test_densities_behind_a_wall_are_rounded_as_those_of_the_rows():
    # proposals were weighed in double precision, in four times the time
    X, y = outlying_times(1800)
    wall, _, mode = behind(X, y, Gamma())
    phi = mode.theta + mode.metric.sqrt(np.random.default_rng(0).standard_normal((64, 6)))
    exact, rounded = wall.log_density(phi), wall.rounded(density=True)
    np.testing.assert_allclose(wall.bind_log_density()(phi), exact, rtol=1e-12)
    off = rounded.bind_log_density()(phi) - exact
    assert 0.0 < np.ptp(off) < 1e-3


@pytest.mark.slow
def test_beta_binomial_totals_have_the_moments_of_importance_sampling():
    X, _, rng = outlying()
    trials = rng.integers(2, 30, len(X))
    p = expit(0.3 * X[:, 0])
    y = rng.binomial(trials, rng.beta(4.0 * p, 4.0 - 4.0 * p))
    y[ROW] = trials[ROW]
    model = SGLDBetaBinomialRegressor(random_state=0).fit(X, y, n_trials=trials)
    plan, draws = model.result_.plan, model.result_.draws.values
    assert "bounds the posterior" in plan.choices["parameterization"].why
    inner = plan.posterior.inner

    def log_density(theta):
        *coef, intercept, rho = inner.reported.values(theta).T
        p = np.clip(expit(X @ coef + intercept).T, 1e-12, 1.0 - 1e-12)  # one row is far out
        shape = ((1.0 - rho) / rho)[:, None]
        terms = betabinom.logpmf(y, trials, p * shape, (1.0 - p) * shape)
        return terms.sum(axis=1) + inner.log_prior(theta)

    at = inner.reported.theta(draws.reshape(-1, draws.shape[2]))
    theta, weight = weighted_draws(log_density, at.mean(axis=0), np.cov(at.T), n_draws=2000)
    assert_same_as_weighted(draws, inner.reported.values(theta), weight)


def test_one_of_several_rows_that_matter_is_no_wall_before_steps_are_tried():
    # in coordinates without it, steps of 1 on 40,000 rows of counts were as biased, by the others
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((20_000, 4)), np.zeros((20_000, 2))])
    X[:1, 4] = X[-3:, 5] = 1.0
    y = rng.poisson(np.exp(1.0 + 0.3 * X[:, 0]))
    settings = {"n_draws": 40, "n_burnin": 20, "thin": 1, "random_state": 0}
    with pytest.warns(Warning):  # of few draws
        plan = SGLDPoissonRegressor(**settings).fit(X, y).result_.plan
    assert leverage.walls_of(plan.posterior, plan.mode).tolist() == [0]
    assert "rows of high leverage" in plan.choices["batch_size"].why
    assert plan.choices["parameterization"].value == "centered"


@pytest.mark.parametrize("always, suits", [([], True), ([ROW], True), ([ROW, ROW + 1], False)])
def test_rows_of_rare_levels_are_followed_before_a_wall_is_looked_for(always, suits):
    # without a wall, 8,000 overdispersed counts of fifty levels took 5 times as long
    X, y, _ = outlying()
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(scale=1.0))
    sampled = posterior.always_reading(np.array(always)) if always else posterior
    task = Task.of(posterior, Settings.of(SGLDLogisticRegression()), 0)
    assert not BehindWall.suits(task)
    task = task.found(rows_read=RowsRead({}, sampled, task.mode))
    assert BehindWall.suits(task) is suits
    assert BehindWall.suits(task.found(finding=Finding("SGLD(): a bias")))


def assert_same_as_weighted(draws, values, weight):
    mean = weight @ values
    sd = np.sqrt(weight @ np.square(values - mean))
    for power, expected in ((1, 0.0), (2, 1.0)):
        found, exact = (((each - mean) / sd) ** power for each in (draws, values))
        error = found.var(axis=(0, 1)) / effective_sample_size(found)
        error += np.square(weight) @ np.square(exact - expected)
        off = np.abs(found.mean(axis=(0, 1)) - expected)
        assert np.all(off < 4.5 * np.sqrt(error) + 0.01)  # 1 %: the bias of a step


def assert_same_moments(draws, others):
    mean, sd = others.mean(axis=(0, 1)), others.std(axis=(0, 1))
    for power in (1, 2):
        a, b = ((((each - mean) / sd) ** power) for each in (draws, others))
        error = sum(each.var(axis=(0, 1)) / effective_sample_size(each) for each in (a, b))
        off = np.abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1)))
        assert np.all(off < 4.5 * np.sqrt(error) + 0.01)  # 1 %: the bias of a step


def test_after_an_overflow_the_next_strategy_plans_behind_the_wall():
    X, y, _ = outlying()
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(scale=1.0))
    finding = Finding("a chain overflowed")
    task = Task.of(posterior, Settings.of(SGLDLogisticRegression()), 0, finding=finding)
    outcome = BehindWall.plan(task)
    assert isinstance(outcome, Task) and outcome.finding == finding
    assert outcome.parameterization.value == "quantiles"


@pytest.mark.parametrize("K, most", [(2, 1), (3, 3)])
@pytest.mark.parametrize("rows", [[], [ROW], [ROW, ROW + 1], [ROW, ROW + 1, 2, 3]])
def test_walls_are_those_of_one_row_or_of_few_of_classes(rows, K, most):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 4)), rng.integers(K, size=5000)
    for column, row in enumerate(rows):
        X[row, column] = 1e3
    likelihood = Bernoulli() if K == 2 else Categorical(K)
    posterior = GLMPosterior(X, y, likelihood, Normal(scale=1.0))
    found = leverage.walls_of(posterior, newton_mode(posterior, posterior.start()))
    assert found.tolist() == (sorted(rows) if len(rows) <= most else [])


def test_a_row_of_a_model_with_an_own_parameter_makes_a_wall():
    X, y = outlying_times()
    posterior = GLMPosterior(X, y, Gamma(), Normal(scale=1.0))
    mode = newton_mode(posterior, posterior.start())
    assert leverage.walls_of(posterior, mode).tolist() == [ROW]
