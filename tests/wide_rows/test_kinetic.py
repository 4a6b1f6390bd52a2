"""Kinetic Langevin dynamics along whitened rows: no rejections, and a bias that is measured."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression, SGLDPoissonRegressor
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import HMC
from skbayes_sgld.wide_rows import kinetic
from skbayes_sgld.wide_rows.kinetic_langevin import KineticLangevin
from skbayes_sgld.wide_rows.matching import matched_normal
from skbayes_sgld.wide_rows.whitened import WhitenedRows


class NormalRows:
    """Rows whose posterior is standard normal."""

    def grad(self, z):
        return -z


def walk(rows, z, step_size, n_kicks, friction=0.5, seed=0, cooling=0.0):
    """Positions ``(n_kicks, C, P)`` of chains."""
    rng, sampler = np.random.default_rng(seed), KineticLangevin(friction, cooling=cooling)
    momentum, path = rng.standard_normal(z.shape), []
    for _ in range(n_kicks):
        noise = rng.standard_normal(z.shape)
        z, momentum, _ = sampler.kicked(rows, z, momentum, step_size, noise)
        path.append(z)
    return np.array(path)


@pytest.mark.parametrize("friction", [0.5, 2.0])
def test_draws_of_a_normal_distribution_are_exact_at_any_step(friction):
    path = walk(NormalRows(), np.zeros((4000, 2)), 1.3, 30, friction)[-1]
    assert np.square(path).mean() == pytest.approx(1.0, abs=4 * np.sqrt(2 / 8000))
    assert path.mean() == pytest.approx(0.0, abs=4 / np.sqrt(8000))


def test_means_of_a_normal_distribution_have_the_autocorrelation_time_of_the_friction():
    path = walk(NormalRows(), np.random.default_rng(1).standard_normal((4000, 1)), 0.1, 600)
    variance = path.mean(axis=0).var() * 600 * 0.1
    assert variance == pytest.approx(2.0 * 0.5, rel=0.15)  # 60 units of time are not infinite


def small_posterior(scale=1.0, n=6):
    rng = np.random.default_rng(3)
    X, y = scale * rng.standard_normal((n, 2)), np.arange(n) % 3 > 0
    return GLMPosterior(X, y.astype(float), Bernoulli(), Normal(), fit_intercept=False)


def moments_by_quadrature(posterior):
    """Mean and covariance of two coefficients."""
    side = np.linspace(-6.0, 6.0, 301)
    theta = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    log_density = posterior.log_density(theta)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean = share @ theta
    return mean, (theta - mean).T @ (share[:, None] * (theta - mean))


def test_draws_have_the_moments_of_quadrature():
    posterior = small_posterior()
    mean, cov = moments_by_quadrature(posterior)
    rows = WhitenedRows(posterior, np.zeros(2), np.full(6, 0.02))
    path = walk(rows, np.zeros((64, 2)), 0.4, 1500)[50:]
    draws = rows.locate(path.reshape(-1, 2))
    sds = np.sqrt(np.diagonal(cov))
    # 64 x 580 units of time, of which two are an independent draw
    error = 4.0 / np.sqrt(64 * 290)
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sds, 0.0, atol=error)
    np.testing.assert_allclose(draws.std(axis=0) / sds, 1.0, atol=error)


def test_a_pilot_shortens_steps_that_heat(monkeypatch):
    rng = np.random.default_rng(0)
    X = 3.0 * rng.standard_normal((400, 240))
    y = (X @ rng.standard_normal(240) > 0).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(), fit_intercept=False)
    rows = WhitenedRows(posterior, np.zeros(240), np.full(400, 1e-3))
    assert rows.steepness() > 10.0
    found = []
    for longer in (1.0, 4.0):
        monkeypatch.setattr(kinetic, "_FIRST_STEP", longer * kinetic._FIRST_STEP)
        found.append(kinetic.settle(rows, KineticLangevin(), 1.0, seed=0, apart=0.1))
        assert found[-1].bias < kinetic._MOST_BIAS
    assert found[1].step_size < found[0].step_size


def test_less_noise_makes_up_for_the_heat_of_steps_between_walls(monkeypatch):
    monkeypatch.setattr(kinetic, "_FEW", 0.0)  # as if gradients were costly: steps are stretched
    rng = np.random.default_rng(0)
    X = 6.0 * rng.standard_normal((400, 240))
    y = (X @ rng.standard_normal(240) > 0).astype(float)
    posterior = GLMPosterior(X, y, Bernoulli(), Normal(), fit_intercept=False)
    rows = WhitenedRows(posterior, *matched_normal(posterior, None, 1.0))
    longest = kinetic._STRETCHED / np.sqrt(rows.steepness())
    found = kinetic.settle(rows, KineticLangevin(), 1.0, seed=0, apart=2.0 * longest)
    assert found.step_size == pytest.approx(longest)

    def excess(cooling):
        """Mean of ``-z . g`` per parameter, beyond 1."""
        start = np.random.default_rng(1).standard_normal((64, 240)).astype(np.float32)
        path = walk(rows, start, longest, 400, friction=0.4, cooling=cooling)[40::2]
        return np.mean([np.einsum("cp,cp->c", z, -rows.grad(z)).mean() for z in path]) / 240 - 1.0

    warm, cooled = excess(0.0), excess(found.cooling)  # with standard errors of 0.001
    assert found.cooling > 0.003
    assert warm - cooled == pytest.approx(found.cooling, abs=0.003)
    assert abs(cooled) < 0.004 < warm


def test_a_row_far_from_its_wall_is_not_steep():
    posterior = small_posterior(scale=100.0, n=1)
    label = 2.0 * posterior.y[0] - 1.0
    near, far = (
        WhitenedRows(posterior, shift * label * posterior.X[0] / 100.0, np.full(1, 1e-9))
        for shift in (0.0, 10.0)
    )
    assert far.steepness() < 1e-3 * near.steepness()


def wide_labels(n=320, d=300):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal(d) / 8.0 + rng.logistic(size=n) > 0).astype(int)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_are_sampled_without_rejections_and_counts_with_them():
    X, y = wide_labels()
    options = {"prior": "normal", "n_draws": 60, "random_state": 0}
    plan = SGLDLogisticRegression(**options).fit(X, y).result_.plan
    assert isinstance(plan.run.sampler, KineticLangevin)
    assert 0.0 <= plan.bias[0] < kinetic._MOST_BIAS
    for model, target in (
        (SGLDLogisticRegression(sampler=HMC(), **options), y),
        (SGLDPoissonRegressor(**options), y),
    ):
        assert isinstance(model.fit(X, target).result_.plan.run.sampler, HMC)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "one-hot"])
def test_a_default_fit_agrees_with_one_that_rejects(kind):
    rng = np.random.default_rng(7)
    n, d = 900, 500
    X = rng.standard_normal((n, d))
    if kind == "heavy-tailed":
        X = rng.standard_t(3, (n, d)) * np.exp(0.7 * rng.standard_normal(n))[:, None]
    if kind == "one-hot":
        levels = rng.choice(100, n, p=np.arange(1, 101.0)[::-1] ** 2 / 338350)
        X[:, 100:199] = levels[:, None] == np.arange(1, 100)
    y = (2.0 * X @ rng.standard_normal(d) / np.sqrt(d) + rng.logistic(size=n) > 0).astype(int)
    free = SGLDLogisticRegression(prior="normal", random_state=0).fit(X, y)
    exact = SGLDLogisticRegression(prior="normal", sampler=HMC(), random_state=1, n_draws=2000)
    exact.fit(X, y)
    assert isinstance(free.result_.plan.run.sampler, KineticLangevin)
    ours, theirs = (fit.result_.theta.reshape(-1, d + 1) for fit in (free, exact))
    sds = theirs.std(axis=0)
    assert np.log(ours.std(axis=0) / sds).mean() == pytest.approx(0.0, abs=0.008)
    center = free.result_.plan.center
    distances = [np.square(center.metric.whiten(z - center.theta)).mean() for z in (ours, theirs)]
    assert distances[0] == pytest.approx(distances[1], rel=0.01)
    shift = (ours.mean(axis=0) - theirs.mean(axis=0)) / sds
    assert np.sqrt(np.square(shift).mean()) < 0.07  # draws worth 600 and 1,000
    predictors = [X @ z[:, :d].T + z[:, d] for z in (ours, theirs)]
    toward = np.sign(predictors[1].mean(axis=1))
    shift = (predictors[0].mean(axis=1) - predictors[1].mean(axis=1)) / predictors[1].std(axis=1)
    assert np.mean(toward * shift) == pytest.approx(0.0, abs=0.02)
