"""Schedule of a climb: noise of a shuffled pass, step sizes, batch sizes."""

import numpy as np
import pytest

from skbayes_sgld.likelihoods import Bernoulli, NormalNoise
from skbayes_sgld.optimizers import GD, SGD
from skbayes_sgld.optimizers import climb as climbing
from skbayes_sgld.optimizers.climb import climb
from skbayes_sgld.optimizers.climb_schedule import (
    ClimbSchedule,
    ClimbSettings,
    shuffled_noise,
)
from skbayes_sgld.optimizers.newton_step import newton_step
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import ConjugateNormal, InverseGamma, Normal
from skbayes_sgld.sampling import Constant, Polynomial
from skbayes_sgld.sampling.tuning.mode import inverse_diagonal
from tests.references.targets import logistic_posterior


@pytest.mark.parametrize("pull, n_steps", [(0.9, 1), (0.3, 8), (0.05, 40), (0.005, 2)])
def test_the_noise_of_a_shuffled_pass_is_that_of_simulated_ones(pull, n_steps):
    rng = np.random.default_rng(0)
    n_paths = 4000
    rows = rng.standard_normal((n_paths, n_steps))
    rows -= rows.mean(axis=1, keepdims=True)  # the noises of all batches add up to none
    rows *= np.sqrt(n_steps)  # the variance of a batch of n / n_steps of n rows, in sds
    z = np.zeros(n_paths)
    passes = min(2000, int(np.ceil(5.0 / (pull * n_steps))))
    for _ in range(passes):
        order = rng.permuted(rows, axis=1)
        for t in range(n_steps):
            z = z + pull * (order[:, t] - z)
    expected = float(shuffled_noise(np.array([pull]), n_steps)[0])
    assert np.sqrt(np.mean(z**2)) == pytest.approx(
        expected, rel=5.0 / np.sqrt(2 * n_paths) + 0.02, abs=1e-6
    )


def little_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    y = X @ [1.0, -2.0, 0.5] + 1e-3 * rng.standard_normal(100)
    noise = InverseGamma().for_data(y.var())
    return GLMPosterior(X, y, NormalNoise(), ConjugateNormal(), noise, intercept_at_mean=True)


def test_a_step_of_the_coefficients_does_not_depend_on_where_the_noise_is():
    posterior = little_noise()
    start = posterior.start()
    moves = []
    for gamma in (start[-1], start[-1] - 10.0, start[-1] + 3.0):
        ascent = climbing._Ascent(posterior, start, ClimbSettings(optimizer=GD()))
        theta = np.r_[start[:-1], gamma][None]
        ascent._state["theta"] = theta
        ascent._step(np.float64(0.5), None, ascent.whole, False)
        end = ascent.point
        moves.append(end[:-1] - theta[0, :-1])
        assert abs(end[-1] - gamma) < np.log1p(0.5 * np.exp(start[-1] - gamma) + 1.0)
    np.testing.assert_allclose(moves[1], moves[0], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(moves[2], moves[0], rtol=1e-9, atol=1e-14)


def test_the_distance_is_in_the_noise_that_is_left_and_not_in_that_of_the_point():
    posterior = little_noise()
    start = posterior.start()
    far = newton_step(posterior, start).distance
    widened = newton_step(posterior, np.r_[start[:-1], start[-1] + 4.0]).distance
    assert far > 100.0
    assert widened == pytest.approx(far, rel=0.1)


def test_steps_that_lead_astray_are_made_shorter():
    rng = np.random.default_rng(2)
    X = rng.standard_t(1.5, (300, 4))  # single rows hold most of the curvature
    y = (X @ np.ones(4) + rng.standard_normal(300) > 0).astype(float)
    found = climb(
        GLMPosterior(X, y, Bernoulli(), Normal()),
        np.r_[np.full(4, 30.0), 0.0],
        ClimbSettings(max_iter=400, tol=0.1),
    )
    assert found.end.distance <= 0.1


def test_batches_grow_from_an_eighth_of_the_rows_on_where_two_fill_a_pass():
    least = SGD().first_batch_size(10**6)
    assert ClimbSchedule(2 * least, ClimbSettings()).batch_size == least
    assert ClimbSchedule(2 * least - 1, ClimbSettings()).batch_size is None


def test_the_first_steps_do_not_depend_on_where_a_schedule_begins():
    posterior = logistic_posterior(64, 3)
    here = newton_step(posterior, np.zeros(4))
    first = []
    for schedule in (Constant(), Polynomial(), Polynomial(offset=1.0, power=1.0)):
        climb_schedule = ClimbSchedule(64, ClimbSettings(schedule=schedule))
        climb_schedule.begin(here, inverse_diagonal(here.diagonal))
        first.append(climb_schedule.etas(0, 0, 2))
    np.testing.assert_allclose(first[1:], [first[0], first[0]], rtol=1e-12)


def test_the_last_eight_passes_take_all_rows_once_eight_were_made():
    posterior = logistic_posterior(2000, 3)
    here = newton_step(posterior, np.full(4, 2.0))
    metric = inverse_diagonal(here.diagonal)
    for n_passes, whole in ((2, False), (20, False), (92, True), (99, True)):
        climb_schedule = ClimbSchedule(2000, ClimbSettings(max_iter=100, tol=1e-6))
        climb_schedule.begin(here, metric)
        climb_schedule.follow(here, metric, n_passes)
        assert (climb_schedule.batch_size is None) == whole
    short = ClimbSchedule(2000, ClimbSettings(max_iter=5, tol=1e-6))
    short.begin(here, metric)
    assert short.batch_size is not None
