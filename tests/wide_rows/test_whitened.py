"""Rows in the coordinates of a metric: the same posterior, at a product less a step."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import issparse

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.accept_reject import AdaptedRun
from skbayes_sgld.likelihoods import Bernoulli, Categorical, Poisson
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Flat, Normal
from skbayes_sgld.sampling import HMC
from skbayes_sgld.sampling.run import Chains
from skbayes_sgld.sampling.samplers.along_rows import along_rows
from skbayes_sgld.sampling.tuning.adaptation import Adaptation
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.wide_rows.row_space import RowSpacePosterior
from skbayes_sgld.wide_rows.strategy import _shared_trajectories
from skbayes_sgld.wide_rows.whitened import SparseRows, WhitenedRows, sparse_rows, whiten_rows
from tests.marks import slow
from tests.references.targets import make_run


def make_posterior(n=700, d=25, intercept_prior=None):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + 1.0
    y = (X @ rng.standard_normal(d) / np.sqrt(d) + rng.logistic(size=n) > 0).astype(float)
    weight, prior = rng.uniform(0.0, 2.0, n), Normal(location=0.3, scale=1.5)
    return GLMPosterior(
        X,
        y,
        Bernoulli(),
        prior,
        sample_weight=weight,
        intercept_prior=intercept_prior,
        intercept_at_mean=True,
    )


def make_counts(n=700, d=25):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = rng.poisson(np.exp(0.5 + 0.5 * X @ rng.standard_normal(d) / np.sqrt(d))).astype(float)
    return GLMPosterior(X, y, Poisson(), Normal(), intercept_at_mean=True)


def make_sparse(**options):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((120, 40)) < 0.1, rng.random((120, 40)), 0.0))
    y = rng.integers(0, 2, 120).astype(float)
    prior = Normal(location=0.3, scale=1.5 * np.geomspace(0.5, 2.0, 40))
    return GLMPosterior(X, y, Bernoulli(), prior, **options)


MODELS = {
    "dense": make_posterior(intercept_prior=Normal(location=-1.0, scale=0.5)),
    "row space": RowSpacePosterior(make_posterior(20, 45)),
    "counts": make_counts(),
}
SPARSE = {
    "sparse": make_sparse(intercept_at_mean=True, sample_weight=np.linspace(0.0, 2.0, 120)),
    "sparse, no intercept": make_sparse(fit_intercept=False),
}
KINDS = pytest.mark.parametrize(
    "posterior", [MODELS["dense"], SPARSE["sparse"]], ids=["dense", "sparse"]
)


def rows_of(posterior):
    """Rows about a random centre, in a random metric, and its root ``(P, P)``."""
    rng = np.random.default_rng(1)
    center = 0.2 * rng.standard_normal(posterior.n_params)
    if issparse(posterior.X):
        rows = SparseRows(posterior, center, rng.uniform(0.1, 3.0, posterior.n_params))
        return rows, np.diag(rows.root)
    rows = WhitenedRows(posterior, center, rng.uniform(0.05, 0.3, posterior.n_samples))
    return rows, rows.root


@pytest.mark.parametrize("name", MODELS | SPARSE)
def test_density_and_gradient_are_those_of_theta(name):
    posterior = (MODELS | SPARSE)[name]
    rows, root = rows_of(posterior)
    z = 2.0 * np.random.default_rng(2).standard_normal((5, posterior.n_params))
    value, grad = posterior.value_and_grad(rows.center + z @ root.T)
    found, slope = rows.value_and_grad(z)
    for density in (found, rows.log_density(z)):
        np.testing.assert_allclose(density, value, atol=2e-4 if name in SPARSE else 2e-3)
    np.testing.assert_allclose(slope, grad @ root, atol=2e-4)
    np.testing.assert_allclose(rows.grad(z), grad @ root, atol=2e-4)
    np.testing.assert_allclose(rows.locate(z), rows.center + z @ root.T, atol=1e-5)


def test_a_metric_is_the_inverse_of_its_own():
    rows, _ = rows_of(MODELS["dense"])
    np.testing.assert_allclose(
        rows.root.T @ rows.inverse @ rows.root, np.eye(rows.n_params), atol=1e-6
    )
    np.testing.assert_allclose(rows.inverse_t.T @ rows.root, np.eye(rows.n_params), atol=1e-10)


def test_far_out_the_density_is_finite_where_a_product_of_exponentials_is_not():
    posterior = MODELS["dense"]
    rows = WhitenedRows(posterior, np.zeros(posterior.n_params), np.full(posterior.n_samples, 0.1))
    z = 300.0 * np.random.default_rng(2).standard_normal((2, posterior.n_params))
    value, grad = posterior.value_and_grad(z @ rows.root.T)
    found, slope = rows.value_and_grad(z)
    np.testing.assert_allclose(found, value, rtol=1e-5)
    np.testing.assert_allclose(rows.grad(z), slope, rtol=1e-5, atol=1e-2)


def leapfrog(rows, z, momentum, step, n_steps):
    """Ends of trajectories that kick by half a step, turn and kick, in double precision."""
    cos, sin = np.cos(step)[:, None], np.sin(step)[:, None]
    for _ in range(n_steps):
        momentum = momentum + 0.5 * step[:, None] * (rows.grad(z) + z)
        z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
        momentum = momentum + 0.5 * step[:, None] * (rows.grad(z) + z)
    return z, momentum


@KINDS
def test_trajectories_follow_the_gradient_and_come_back(posterior):
    (rows, _), rng = rows_of(posterior), np.random.default_rng(4)
    z, momentum = rng.standard_normal((2, 3, rows.n_params))
    step = np.array([0.1, 0.2, 0.3])
    end, turned, value, force = along_rows(rows, z, momentum, rows.grad(z), step[:, None], 7)
    np.testing.assert_allclose([end, turned], leapfrog(rows, z, momentum, step, 7), atol=2e-5)
    np.testing.assert_allclose(value, rows.log_density(end))
    back = along_rows(rows, end, -turned, force, step[:, None], 7)
    np.testing.assert_allclose(back[0], z, atol=2e-5)


@KINDS
def test_a_position_is_rounded_alike_whatever_the_others(posterior):
    rows, _ = rows_of(posterior)
    z = np.random.default_rng(3).standard_normal((21, posterior.n_params))
    step = np.full((21, 1), 0.2)
    many, one = (
        (*rows.value_and_grad(some), *along_rows(rows, some, some, rows.grad(some), step[:n], 5))
        for n, some in ((21, z), (1, z[:1]))
    )
    for of_many, of_one in zip(many, one, strict=True):
        np.testing.assert_array_equal(of_many[:1], of_one)


def test_the_metric_of_sparse_rows_gives_draws_the_temperature_as_variance():
    posterior, temperature = SPARSE["sparse"], 0.5
    narrow = sparse_rows(posterior, np.zeros(posterior.n_params))
    normals = np.random.default_rng(4).standard_normal((400, posterior.n_params))
    draws = 0.1 + np.sqrt(2.0 * temperature) * normals * narrow.root
    matched = narrow.matched(draws, temperature)
    z = (draws - draws.mean(axis=0)) / matched.root
    assert z.var(axis=0, ddof=1).mean() == pytest.approx(temperature, rel=1e-6)
    np.testing.assert_allclose(matched.center, draws.mean(axis=0))
    assert np.abs(matched.root).max() > 1.1 * np.abs(narrow.root).max()


@pytest.mark.parametrize("likelihood, prior", [(Bernoulli(), Flat()), (Categorical(2), Normal())])
def test_flat_priors_and_several_predictors_have_no_sparse_rows(likelihood, prior):
    posterior = SPARSE["sparse"]
    other = GLMPosterior(posterior.X, posterior.y, likelihood, prior, intercept_at_mean=True)
    assert sparse_rows(other, np.zeros(other.n_params)) is None


def test_nearly_collinear_columns_and_flat_priors_are_not_whitened():
    posterior = make_posterior()
    weights = np.full(posterior.n_samples, 0.2)
    assert whiten_rows(posterior, np.zeros(posterior.n_params), weights) is not None
    X = np.column_stack([posterior.X, posterior.X[:, 0] + 1e-7 * posterior.X[:, 1]])
    for columns, prior in ((X, Normal(scale=1e8)), (posterior.X, Flat())):
        other = GLMPosterior(columns, posterior.y, Bernoulli(), prior, intercept_at_mean=True)
        assert whiten_rows(other, np.zeros(other.n_params), weights) is None


def test_steps_into_walls_are_shorter_than_those_between_them():
    posterior = make_counts()
    posterior.X[0] *= 20.0
    rows = WhitenedRows(posterior, np.zeros(posterior.n_params), np.full(700, 0.1))
    lengths = np.linalg.norm(posterior.design_rows(slice(None)) @ rows.root, axis=1)
    assert rows.softness == pytest.approx(1.0 / lengths[0], rel=1e-4)
    labels = make_posterior()
    rows = WhitenedRows(labels, np.zeros(labels.n_params), np.full(700, 0.1))
    lengths = np.linalg.norm(labels.design_rows(slice(None)) @ rows.root, axis=1)
    assert rows.softness == pytest.approx(1.0 / np.median(lengths), rel=1e-3)


def test_no_probe_of_the_rounding_is_a_row_of_a_users_generator():
    # along its own row a coefficient vector has a rate that single precision cannot hold
    X = np.random.default_rng(0).standard_normal((700, 299))
    posterior = GLMPosterior(X, np.ones(700), Poisson(), Normal(scale=0.2), intercept_at_mean=True)
    assert whiten_rows(posterior, np.zeros(300), np.ones(700)) is not None


def test_draws_of_walkers_follow_one_another():
    draws = np.arange(24.0).reshape(6, 4, 1)  # walker w, draw t: 4 w + t
    chains = Chains(draws, np.arange(4.0), np.zeros(6), None, 4).join_walkers(3, 10)
    assert chains.draws.shape == (2, 10, 1)
    np.testing.assert_array_equal(chains.draws[1, :, 0], np.arange(12, 22))
    np.testing.assert_array_equal(chains.weights[:5], [0, 1, 2, 3, 0])


@pytest.mark.parametrize(
    ("cost", "time", "n_trajectories", "n_points"),
    [
        (0.6, 5.0, 1000, 1),
        (0.6, 2.0, 1000, 3),  # 150 independent draws a chain are enough
        (1.2, 5.0, 834, 1),  # 1 / 1.2 of what was asked for takes as long as is allowed
        (2.5, 5.0, 500, 2),  # half of it may take half as long again
        (3.75, 5.0, 400, 2),
        (7.5, 5.0, 200, 4),
    ],
)
def test_costly_trajectories_are_as_many_as_the_time_allows(cost, time, n_trajectories, n_points):
    """``cost`` of a trajectory in units of that of which 1,000 draws are in time."""
    posterior = MODELS["dense"]
    run = make_run(posterior, sampler=HMC(path_length=1.8), step_size=0.2)
    task = Task.of(posterior, Settings.of(SGLDLogisticRegression()), seed=0)
    pilot = Adaptation(None, 0.2, 0.8, time, np.zeros((0, posterior.n_params)), n_settling=22)
    tuned = AdaptedRun(run, pilot, 3.0, 100, "", "")
    work = cost * THRESHOLDS.max_draw[1]
    rows = SimpleNamespace(work_of=lambda n_gradients: work, collapsed=False, softness=0.3)
    found, n_draws = _shared_trajectories(task, tuned, rows)
    assert n_draws == n_trajectories * n_points
    assert found.spacing == 3.0 * n_points
    assert found.run.sampler.n_points == n_points


@pytest.mark.parametrize("estimator", [SGLDLogisticRegression, slow(SGLDPoissonRegressor)])
def test_a_wide_fit_is_right_and_its_chains_do_not_depend_on_how_many_there_are(estimator):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((320, 300))
    u = X @ rng.standard_normal(300)
    y = u / 8.0 + rng.logistic(size=320) > 0
    if estimator is SGLDPoissonRegressor:
        y = rng.poisson(np.exp(0.5 + 0.03 * u))

    def fit(n_chains):
        model = estimator(prior="normal", n_draws=90, n_chains=n_chains, random_state=0)
        return model.fit(X, y)

    with pytest.warns(UserWarning, match="effective sample size|R-hat"):
        one = fit(1)
    with pytest.warns(UserWarning, match="effective sample size|R-hat"):
        two = fit(2)
    assert two.result_.plan.n_walkers == 8
    np.testing.assert_array_equal(one.posterior_.values[0], two.posterior_.values[0])
    # integration by parts, in the coordinates of theta: E[d log p] = 0
    posterior = two.result_.plan.posterior
    assert two.result_.plan.mode is None
    slopes = posterior.grad(two.result_.theta.reshape(-1, posterior.n_params))
    whitened = two.result_.plan.center.metric.sqrt_t(slopes)
    error = whitened.mean(axis=0) / (whitened.std(axis=0) / np.sqrt(60.0))
    assert np.sqrt(np.square(error).mean()) < 1.5
