"""Every preconditioner: all that its metric does is done by one matrix and its root."""

import numpy as np
import pytest
from scipy import linalg

from skbayes_sgld._components import resolve
from skbayes_sgld.sampling import PRECONDITIONERS, SGLD, Matrix
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Dense, Metric
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import Density, make_run

P = 4
COVARIANCE = linalg.toeplitz(0.6 ** np.arange(P)) * np.outer(*[[1.0, 0.2, 5.0, 30.0]] * 2)
MODE = Mode(np.linspace(-1.0, 1.0, P), Dense(np.linalg.cholesky(COVARIANCE)))
FLAT = Density(lambda x: np.zeros(len(x)), np.zeros_like, P)  # noise alone moves a chain


def check_preconditioner(name):
    """Raise where the preconditioner of this name is not one positive definite matrix."""
    preconditioner = resolve(name, PRECONDITIONERS, "preconditioner")
    check_metric(metric_of(preconditioner))
    check_noise_of_a_step(preconditioner)


def metric_of(preconditioner):
    """Metric as a run binds it: without the curvature for a preconditioner that does not ask."""
    return preconditioner.bind(P, MODE.metric if preconditioner.uses_curvature else None)


def check_metric(metric: Metric, G=None):
    """Raise where one of a metric's operations is another matrix's than the rest."""
    unit = np.eye(metric.n_params)
    G = metric.scale(unit) if G is None else G
    tiny = 1e-12 * np.abs(G).max()
    np.testing.assert_allclose(G, G.T, rtol=1e-10, atol=tiny)
    assert np.linalg.eigvalsh(G)[0] > 0, "G is not positive definite"
    np.testing.assert_allclose(metric.scale(unit), G, rtol=1e-10, atol=tiny)
    root = metric.sqrt(unit).T
    np.testing.assert_allclose(root @ root.T, G, rtol=1e-9, atol=tiny, err_msg="root")
    many = metric.sqrt(np.stack([unit, 2 * unit]))
    np.testing.assert_allclose(many[1].T, 2 * root, rtol=1e-10, atol=1e-300, err_msg="many at once")
    np.testing.assert_allclose(metric.sqrt_t(unit), root, rtol=1e-9, atol=tiny, err_msg="transpose")
    whitened = metric.whiten(unit).T
    np.testing.assert_allclose(whitened @ root, unit, atol=1e-9, err_msg="whiten")
    np.testing.assert_allclose(metric.whiten_t(unit), whitened, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(metric.marginal_sd**2, np.diagonal(G), rtol=1e-9)


def check_noise_of_a_step(preconditioner, eta=0.3, n_chains=4000):
    """The noise of a step has the covariance ``2 eta G`` that belongs to the drift."""
    run = make_run(
        FLAT,
        sampler=SGLD("euler"),
        preconditioner=preconditioner,
        step_size=eta,
        mode=MODE,
    )
    moved = run_chains(run, np.zeros((n_chains, P)), n_draws=1, seed=1).draws[:, 0]
    expected = 2.0 * eta * metric_of(preconditioner).scale(np.eye(P))
    variances = np.diagonal(expected)
    standard_error = np.sqrt((expected**2 + np.outer(variances, variances)) / n_chains)
    error = np.abs(moved.T @ moved / n_chains - expected)
    assert np.all(error < 4.5 * standard_error), "the noise is not the drift's"


@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_a_preconditioner_is_one_matrix_and_its_root(name):
    check_preconditioner(name)


@pytest.mark.parametrize("given", [COVARIANCE, np.diag(COVARIANCE)], ids=["matrix", "diagonal"])
def test_a_given_matrix_is_the_metric_or_its_diagonal(given):
    preconditioner = Matrix(given)
    G = given if given.ndim == 2 else np.diag(given)
    check_metric(preconditioner.bind(P, None), G)
    check_noise_of_a_step(preconditioner)
