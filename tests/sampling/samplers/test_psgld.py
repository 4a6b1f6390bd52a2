"""pSGLD: what the metric that follows the chain costs is what the docstring says."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.posterior import Flat, FunctionPosterior
from skbayes_sgld.sampling import PSGLD, run_chains
from tests.references.targets import make_run

N_PARAMS, N_CHAINS, N_DRAWS = 40, 50, 60
_SECOND_ORDER = 0.01  # what the formula leaves out where step and lag are small


@pytest.mark.parametrize("precision", [1.0, 25.0])
@pytest.mark.parametrize(
    "decay, pace, measured", [(0.99, 0.02, 0.21), (0.99, 0.1, 0.10), (0.999, 0.1, 0.06)]
)
def test_variances_are_too_wide_by_the_formula(decay, pace, measured, precision):
    normal = FunctionPosterior(
        lambda x: -0.5 * precision * (x**2).sum(1), lambda x: -precision * x, n_params=N_PARAMS
    )
    sampler, step_size = PSGLD(decay=decay), pace / np.sqrt(precision)
    run = make_run(normal, sampler=sampler, step_size=step_size)
    start = np.random.default_rng(0).standard_normal((N_CHAINS, N_PARAMS)) / np.sqrt(precision)
    draws = run_chains(run, start, n_draws=N_DRAWS, thin=int(1 / pace), n_burnin=500).draws
    variances = precision * np.mean(draws**2, axis=1).ravel()  # independent of one another
    error = variances.std() / np.sqrt(variances.size)
    expected = sampler.gaussian_inflation(step_size * sampler.speed(precision))
    assert variances.mean() == pytest.approx(expected, abs=4 * error + _SECOND_ORDER)
    assert expected - 1 == pytest.approx(measured, abs=0.01)  # the docstring's figures


def test_the_bias_of_a_slow_coordinate_is_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)) * [1.0, 0.1]
    y = X @ [1.0, 1.0] + rng.standard_normal(200)
    model = SGLDLinearRegression(
        sampler=PSGLD(decay=0.9),
        preconditioner=None,
        step_size=0.005,
        prior=Flat(),
        noise_variance=1.0,
        fit_intercept=False,
        n_draws=700,
        thin=50,
        random_state=0,
    )
    with pytest.warns(UserWarning, match="biases means or standard deviations"):
        model.fit(X, y)
    truth = np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    table = model.summary()
    too_wide = (table["sd"] / truth).max() - 1
    error = (1 + too_wide) / np.sqrt(2 * table["ess_bulk"].min())
    assert model.diagnose().bias == pytest.approx(too_wide, abs=3 * error + 0.05)
