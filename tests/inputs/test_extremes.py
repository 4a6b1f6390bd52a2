"""Counts of nearly nothing, weights of nearly everything and starts far out."""

import warnings

import numpy as np
import pytest

from skbayes_sgld import (
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld._linalg import column_moments
from skbayes_sgld.inference import run as running
from skbayes_sgld.inference.overflow import explain_overflow
from skbayes_sgld.inference.strategies import accept_reject
from skbayes_sgld.neural_network.estimators import standardise
from skbayes_sgld.sampling import HMC, Polynomial
from skbayes_sgld.sampling.tuning import adaptation
from tests.inputs.good import make
from tests.inputs.refusals import X, Y, refuse
from tests.marks import SHORT, short_chains

# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_counts_of_zero_over_long_exposures_have_a_mode():
    counts = np.random.default_rng(1).poisson(1.0, 30)
    model = make(SGLDPoissonRegressor, n_draws=200).fit(X, counts, exposure=1e8)
    shorter = make(SGLDPoissonRegressor, n_draws=200).fit(X, counts)
    moved = shorter.posterior_.flat.mean(axis=0) - model.posterior_.flat.mean(axis=0)
    sd = shorter.posterior_.flat.std(axis=0)
    assert np.all(np.abs(moved - [0.0, 0.0, 0.0, np.log(1e8)]) < 0.3 * sd)


# the count of 1e-12 is the subject
@pytest.mark.filterwarnings("ignore:y has the value 1e-12, and the model is of whole counts")
def test_counts_of_nearly_nothing_are_refused():
    model = make(SGLDPoissonRegressor, sampler="hmc", step_size=1e-16, thin=10)
    refuse(model, "count as 2e-12 in all.*improper, or nearly", [[1.0], [2.0]], [1e-12, 1e-12])


def test_a_row_of_nearly_all_the_weight_leaves_its_columns_a_spread():
    weight = np.ones(30)
    weight[-1] = 2.0**63
    make(SGLDLogisticRegression).fit(X, Y > 0, weight)
    assert np.all(column_moments(X, weight)[1] > 0)


@pytest.mark.parametrize("sampler", ["auto", "sgld", "psgld", "hmc", "mala"])
def test_the_least_step_of_all_is_a_step(sampler):
    """The time to an independent draw is infinite, and no overflow."""
    model = make(SGLDLinearRegression, sampler=sampler, step_size=5e-324, n_burnin=5, thin=1)
    assert np.isfinite(model.fit(X, Y).coef_).all()


def test_a_schedule_without_a_first_step_is_refused():
    model = make(SGLDLinearRegression, schedule=Polynomial(offset=2, power=1e17))
    refuse(model, r"schedule.power=1e\+17 makes the first step 0 times", X, Y)


@short_chains
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_draws_about_a_far_mode_overflow_without_a_warning():
    X = np.random.default_rng(0).standard_normal((300, 2))
    SGLDLogisticRegression(prior="cauchy", random_state=0, **SHORT).fit(X, X[:, 0] > 0.0)


def test_intervals_much_narrower_than_single_precision():
    Z = np.array([[1e20, 1e4], [-1e20, 1e4 + 1e-3], [3e20, 1e4 - 1e-3]], dtype=np.float32)
    y = 1e20 * np.array([0.1, -0.1, 0.6])
    with pytest.warns(UserWarning, match="sums to 3e-06"):
        model = SGDMAPRegressor(prior="normal", random_state=0).fit(Z, y, np.full(3, 1e-6))
    low, high = model.predict_interval(Z).T
    assert np.all((low < model.predict(Z)) & (model.predict(Z) < high))


def test_a_variance_that_rounding_makes_negative_is_that_of_a_constant():
    constant = np.full((20, 1), 1e8 + 1.0 / 3.0)
    weight = np.random.default_rng(0).uniform(0.1, 10.0, 20)
    for size in range(1, 40):
        scaled, _, units = standardise(constant * size, np.arange(20) % 2, weight, False, None)
        assert np.isfinite(scaled).all() and units.width[0] == 1.0


def test_a_start_that_overflows_is_refused_without_a_long_search(monkeypatch):
    taken, step = [], HMC.step

    def counting(self, state, eta, *args):
        taken.append(self.gradients(float(eta)))
        return step(self, state, eta, *args)

    def explaining(*args):
        taken.clear()  # what the run itself took
        return explain_overflow(*args)

    # the start stays where it is
    for mend in ("move_into_posterior", "leave_dead_ends"):
        monkeypatch.setattr(adaptation, mend, lambda run, start, *args: start)
    monkeypatch.setattr(accept_reject, "nearer_to_center", lambda run, start, *args: start)
    monkeypatch.setattr(HMC, "step", counting)
    monkeypatch.setattr(running, "explain_overflow", explaining)
    far = {"init": np.full(2, 400.0), "step_size": 1e-16}
    model = make(SGLDPoissonRegressor, sampler="hmc", thin=10, **far)
    refuse(model, "overflowed at step 0 in .* all shorter.* units of X and y", [[1], [2]], [1, 1])
    assert 0 < sum(taken) < 12_000


# the weights are the subject
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
@pytest.mark.parametrize(
    "noise", [{"noise_model": "log_linear"}, {"noise_distribution": "student_t"}]
)
def test_numbers_whose_rows_count_as_nothing_are_refused_at_once(noise):
    model = make(SGLDLinearRegression, **noise)
    refuse(model, "count as 3e-14 in all.*improper, or nearly", weight=np.full(len(X), 1e-15))


@pytest.mark.parametrize("noise", ["normal", "student_t"])
@pytest.mark.parametrize(("n", "far"), [(2, 200.0), (300, 100.0)])
def test_intervals_of_noise_that_draws_disagree_about_have_no_warning(n, far, noise):
    """Far out, log-linear noise has sds of very different sizes under the draws."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = X[:, 0] + np.exp(0.5 * X[:, 0]) * rng.standard_normal(60)
    model = SGLDLinearRegression(
        noise_model="log_linear", noise_distribution=noise, n_draws=200, random_state=0
    ).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interval = model.predict_interval(far * np.resize(X[:2], (n, 2)))
    assert (interval[:, 0] < interval[:, 1]).all()
