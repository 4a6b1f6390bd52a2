"""What a fit keeps in order to be judged: distances in the sds of the tempered posterior."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.posterior import Normal
from skbayes_sgld.sampling import SGLD
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode


def judged(theta, temperature=1.0, sd=0.5):
    mode = Mode(np.array([3.0]), Diagonal(np.array([sd**2])))
    return SamplingResult(
        theta,
        ["x"],
        plan=None,
        mode=mode,
        theta=theta,
        mean=theta.mean((0, 1)),
        temperature=temperature,
        n_hot=0,
        positions=theta[:, -1],
        clipped=0.0,
        acceptance=None,
    )


def test_shift_and_width_are_in_units_of_the_tempered_sd():
    z = np.random.default_rng(0).standard_normal((4, 500, 1))
    z = (z - z.mean()) / z.std()
    for temperature in (0.25, 1.0, 9.0):
        theta = 3.0 + 0.5 * np.sqrt(temperature) * (0.2 + 1.3 * z)
        shift, width = judged(theta, temperature).from_laplace()
        assert shift == pytest.approx(0.2)
        assert width == pytest.approx(0.3)


def test_a_chain_is_divergent_by_its_own_mean():
    theta = np.full((3, 100, 1), 3.0)
    theta[1] += 0.5 * 2.0 * 4.1  # at temperature 4 the sd is 1
    assert judged(theta, 4.0).divergent(4.0) == [1]
    assert judged(theta, 4.0).divergent(4.2) == []


def test_a_hot_fit_of_a_normal_posterior_is_its_laplace_approximation():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X @ [1.0, -1.0] + rng.standard_normal(60)
    settings = {"noise_variance": 1.0, "prior": Normal(2.0), "random_state": 0}
    hot = SGLDLinearRegression(temperature=9.0, **settings).fit(X, y)
    report = hot.diagnose()
    # 3 where the temperature is forgotten: the sd of 4,000 nearly independent draws is known to 2 %
    assert abs(report.shift) < 0.1
    assert abs(report.width) < 0.08
    cold = SGLDLinearRegression(**settings).fit(X, y)
    ratio = hot.summary()["sd"] / cold.summary()["sd"]
    np.testing.assert_allclose(ratio, 3.0, rtol=0.08)


# the draws are the starts, which cannot converge
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_chains_start_half_as_wide_again_as_the_posterior(temperature):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + rng.standard_normal(200)
    model = SGLDLinearRegression(
        noise_variance=1.0,
        prior=Normal(2.0),
        sampler=SGLD("euler"),
        step_size=1e-12,  # the draws are the starts
        n_draws=1,
        n_burnin=0,
        thin=1,
        n_chains=600,
        temperature=temperature,
        random_state=0,
    ).fit(X, y)
    A = np.column_stack([X, np.ones(200)])
    precision = A.T @ A + np.diag([0.25, 0.25, 0.25, 0.0])
    starts = model.posterior_.flat - np.linalg.solve(precision, A.T @ y)
    white = starts @ np.linalg.cholesky(precision)
    variance = 1.5**2 * temperature
    assert abs(np.mean(white**2) / variance - 1.0) < 4.5 * np.sqrt(2.0 / white.size)
