"""Metrics and modes: dense up to 2,000 parameters, structured above, exact where they say so."""

import tracemalloc

import numpy as np
import pytest

from skbayes_sgld.priors import Laplace, Normal
from skbayes_sgld.sampling import Minibatch, NoModeError
from skbayes_sgld.sampling.metric import (
    Dense,
    Diagonal,
    LowRank,
    preconditioned_eigenvalues,
)
from skbayes_sgld.sampling.tuning import mode as mode_module
from skbayes_sgld.sampling.tuning import noise
from skbayes_sgld.sampling.tuning.mode import inverse_diagonal
from tests.references.targets import Density, logistic_posterior, mode_of
from tests.sampling.preconditioners.test_registry import check_metric

P = 7
RNG = np.random.default_rng(0)
FACTOR, DIAGONAL = RNG.standard_normal((3, P)), RNG.uniform(0.5, 100.0, P)
PRECISION = np.diag(DIAGONAL) + FACTOR.T @ FACTOR
SPREAD_OUT = np.linalg.cholesky(np.linalg.inv(PRECISION))

METRICS = {
    "identity": (Diagonal(np.ones(P)), np.eye(P)),
    "diagonal": (Diagonal(1.0 / DIAGONAL), np.diag(1.0 / DIAGONAL)),
    "low rank": (LowRank(DIAGONAL, FACTOR.copy()), np.linalg.inv(PRECISION)),
    "dense": (Dense(SPREAD_OUT), np.linalg.inv(PRECISION)),
    "dense, of a known inverse": (Dense(SPREAD_OUT, PRECISION), np.linalg.inv(PRECISION)),
}


@pytest.mark.parametrize("metric, G", METRICS.values(), ids=METRICS)
def test_every_operation_is_that_of_the_matrix(metric, G):
    check_metric(metric, G)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("factor", [3.0, np.linspace(1.0, 2.0, P)], ids=["one", "each"])
def test_a_scaled_metric_has_the_scales_it_was_told(name, factor):
    metric, _ = METRICS[name]
    root = np.broadcast_to(factor, P)[:, None] * metric.root
    check_metric(metric.scaled(factor), root @ root.T)


def test_the_rates_are_the_eigenvalues_of_the_metric_times_the_curvature(monkeypatch):
    metric, curved = Diagonal(0.1 / DIAGONAL), LowRank(DIAGONAL, FACTOR.copy())
    expected = np.sort(np.linalg.eigvals(np.diag(0.1 / DIAGONAL) @ PRECISION).real)
    np.testing.assert_allclose(preconditioned_eigenvalues(metric, curved), expected, rtol=1e-8)
    whole = preconditioned_eigenvalues(METRICS["dense"][0], curved)
    np.testing.assert_allclose(whole, 1.0, rtol=1e-8)  # its root is not symmetric
    monkeypatch.setattr("skbayes_sgld.sampling.metric.MAX_DENSE", 1)
    found = preconditioned_eigenvalues(metric, curved)
    np.testing.assert_allclose(found[[0, -1]], expected[[0, -1]], rtol=1e-3)
    np.testing.assert_allclose(np.diff(np.log(found)), np.log(found[-1] / found[0]) / (P - 1))


# ---- the curvature that a posterior tells, and the one that its gradients tell ------------------


def test_the_median_stands_in_where_a_diagonal_is_not_positive():
    found = inverse_diagonal(np.array([4.0, 0.0, 2.0, 8.0, -1.0])).diagonal
    np.testing.assert_allclose(found, [0.25, 0.25, 0.5, 0.125, 0.25])


def test_differences_are_taken_over_a_small_part_of_the_width():
    from skbayes_sgld.own_models import FunctionPosterior, as_posterior

    scales = np.array([1e-7, 1.0])
    steep = FunctionPosterior(  # x^2 / 2 + x^4 in units of the scale: no parabola
        lambda x: -(0.5 * (x / scales) ** 2 + (x / scales) ** 4).sum(axis=1),
        lambda x: -(x / scales + 4 * (x / scales) ** 3) / scales,
        2,
    )
    H = as_posterior(steep).curvature(np.zeros(2))
    np.testing.assert_allclose(np.diagonal(H), [1e14, 1.0], rtol=1e-3)


@pytest.mark.parametrize(
    "posterior",
    [
        Density(lambda x: x.sum(axis=1), np.ones_like, 3),
        Density(lambda x: 0.5 * (x**2).sum(axis=1), lambda x: x.copy(), 3),
    ],
    ids=["improper", "unbounded"],
)
def test_where_there_is_no_mode_it_is_said(posterior, monkeypatch):
    with pytest.raises(NoModeError, match="proper prior"):
        mode_of(posterior, np.full(3, 0.1))
    monkeypatch.setattr(mode_module, "MAX_DENSE", 2)
    monkeypatch.setattr(mode_module, "_MAX_CLIMBS", 3)
    with pytest.raises(NoModeError, match="proper prior"):
        mode_of(posterior, np.full(3, 0.1))


# ---- above 2,000 parameters --------------------------------------------------------------------


def test_the_structured_mode_of_a_small_model_is_newtons(monkeypatch):
    for posterior, exact in (
        (logistic_posterior(30, 50), True),
        (logistic_posterior(80, 5), False),
    ):
        newton = mode_of(posterior, posterior.start())
        monkeypatch.setattr(mode_module, "MAX_DENSE", 1)
        climbed = mode_of(posterior, posterior.start())
        monkeypatch.undo()
        distance = np.linalg.norm(newton.metric.whiten((climbed.theta - newton.theta)[None]))
        assert distance < 1e-3
        if exact:
            np.testing.assert_allclose(
                climbed.metric.marginal_sd, newton.metric.marginal_sd, rtol=1e-3
            )
        else:
            assert isinstance(climbed.metric, Diagonal)


@pytest.fixture
def hardly_any_dense(monkeypatch):
    """Let no matrix of more than 200 parameters be formed, so that small models tell."""
    sampling = "skbayes_sgld.sampling"
    tuning = [f"{sampling}.tuning.{name}" for name in ("mode", "noise", "adaptation")]
    for name in ("skbayes_sgld.posterior.glm", f"{sampling}.metric", *tuning):
        monkeypatch.setattr(f"{name}.MAX_DENSE", 200)


def test_a_users_model_of_many_parameters_gets_a_diagonal_from_its_gradients(hardly_any_dense):
    scales = np.geomspace(1e-3, 1e3, 500)
    from skbayes_sgld.own_models import FunctionPosterior

    posterior = FunctionPosterior(
        lambda x: -np.logaddexp(x / scales, -x / scales).sum(axis=1),
        lambda x: -np.tanh(x / scales) / scales,
        500,
    )
    mode = mode_of(posterior, scales * np.random.default_rng(0).uniform(-1, 1, 500))
    assert isinstance(mode.metric, Diagonal)
    assert np.all(np.abs(mode.theta) < 1e-3 * scales)
    np.testing.assert_allclose(mode.metric.marginal_sd, scales, rtol=0.02)
    posterior.curvature_diagonal = lambda theta: 4.0 / scales**2
    np.testing.assert_allclose(mode_of(posterior, 0 * scales).metric.marginal_sd, scales / 2)


@pytest.mark.parametrize("prior, metric", [(Normal(), LowRank), (Laplace(), Diagonal)])
def test_no_matrix_of_parameters_by_parameters_is_formed(
    prior, metric, hardly_any_dense, monkeypatch
):
    if metric is Diagonal:
        monkeypatch.setattr("skbayes_sgld.posterior.glm.MAX_DENSE", 10)  # too many rows for it
    P = 1201
    posterior = logistic_posterior(20, P - 1, prior, intercept_at_mean=True)
    tracemalloc.start()
    try:
        mode = mode_of(posterior, posterior.start())
        noise.measure_noise(posterior, Minibatch(), mode, 1.0, 0)
        preconditioned_eigenvalues(Diagonal(np.ones(P)), mode.metric)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(mode.metric, metric)
    assert peak < 8 * P**2 / 2


def test_a_rounded_root_is_the_root_to_single_precision_row_by_row():
    rng = np.random.default_rng(0)
    metric = Dense(rng.standard_normal((300, 300)) / np.sqrt(300))
    rounded, z = metric.rounded(), rng.standard_normal((6, 300))
    assert rounded is not metric
    for name in ("sqrt", "sqrt_t"):
        exact, narrow = getattr(metric, name)(z), getattr(rounded, name)(z)
        np.testing.assert_allclose(narrow, exact, rtol=0, atol=1e-5)
        assert not np.array_equal(narrow, exact)
        np.testing.assert_array_equal(getattr(rounded, name)(z[4:5]), narrow[4:5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [40, 301])
def test_noise_does_not_depend_on_the_steps_that_are_drawn_with_it(dtype, size):
    rng = np.random.default_rng(0)
    metric = Dense(rng.standard_normal((size, size)).astype(dtype))
    normals = rng.standard_normal((2, 21, size))
    together = metric.sqrt(normals)
    for first in (1, 5, 8, 13):
        np.testing.assert_array_equal(metric.sqrt(normals[:, first:]), together[:, first:])
