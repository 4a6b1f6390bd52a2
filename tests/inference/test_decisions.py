"""Gradient, sampler and step size: they follow the posterior, and not the run."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.inference.planning import lengths, rows_asked_for
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.priors import Laplace, Normal
from skbayes_sgld.sampling import HMC, ControlVariate, Curvature, Full, NormClip
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.tuning import noise, pilots
from skbayes_sgld.sampling.tuning.adaptation import soften
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.pilots import Bias
from skbayes_sgld.sampling.tuning.precision import round_density, round_gradient
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from tests.references.targets import NormalMean, logistic_posterior, mode_of


# 5 draws of two chains are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_gradient_whose_batches_would_be_all_rows_is_warned_of():
    from skbayes_sgld.datasets import make_logistic

    X, y = make_logistic(2500, coef=np.linspace(-1, 1, 5), random_state=0)
    short = {"step_size": 0.01, "n_draws": 5, "n_burnin": 0, "thin": 1, "n_chains": 2}
    model = SGLDLogisticRegression(gradient="minibatch", random_state=0, **short)
    with pytest.warns(UserWarning, match="batches of all 2,500 rows.*set gradient='auto'"):
        model.fit(X, y)
    assert model.batch_size_ == 2500
    model.set_params(batch_size=100).fit(X, y)  # another warning would be an error


def test_a_near_normal_posterior_gets_the_largest_step(by_steps, rookies):
    default_fit = SGLDLogisticRegression(random_state=0).fit(*rookies)
    assert (default_fit.step_size_, default_fit.thin_) == (1.0, 2)
    assert default_fit.summary()["ess_bulk"].min() > 3000  # every draw is worth nearly one
    assert isinstance(default_fit.preconditioner_, Curvature)
    assert isinstance(default_fit.gradient_, Full)


def test_a_quiet_minibatch_has_the_posterior_of_all_rows(by_steps):
    from skbayes_sgld.datasets import make_logistic

    X, y = make_logistic(10_000, random_state=0)
    some = SGLDLogisticRegression(random_state=0).fit(X, y)
    assert isinstance(some.gradient_, ControlVariate) and some.batch_size_ < 500
    full = SGLDLogisticRegression(gradient="full", random_state=0).fit(X, y)
    sd = full.summary()["sd"]
    assert np.all(np.abs(some.coef_[0] - full.coef_[0]) < 0.1 * sd[: X.shape[1]])
    assert np.all(np.abs(some.summary()["sd"] / sd - 1.0) < 0.07)  # 4 errors of 1.7 %


def test_few_rows_on_which_steps_of_one_err_take_hmc_and_all_rows(by_steps, rookies):
    X, y = rookies
    model = SGLDLogisticRegression(prior="laplace", random_state=0).fit(X[:, :6], y)
    assert isinstance(model.sampler_, HMC)
    assert isinstance(model.gradient_, Full) and model.batch_size_ is None
    choices = model.result_.choices
    assert choices["gradient"].why == choices["batch_size"].why == "HMC() takes all rows"
    assert choices["step_size"].why.startswith("pilot acceptance ")


def test_a_linear_model_takes_all_rows_from_its_statistics():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    model = SGLDLinearRegression(random_state=0).fit(X, X[:, 0] + rng.standard_normal(20_000))
    assert isinstance(model.gradient_, Full)


def test_an_automatic_step_without_a_preconditioner_is_stable(rookies):
    few = {"n_draws": 40, "thin": 25}  # automatic thinning takes 100 steps a draw
    model = SGLDLogisticRegression(preconditioner=None, **few, random_state=0)
    with pytest.warns(UserWarning, match="set preconditioner to 'auto'"):
        model.fit(*rookies)
    assert model.step_size_ < 1e-2  # raw units: the steepest direction has 1,600 or so
    assert np.abs(model.coef_).max() < 5


def test_frequent_clipping_is_told(rookies):
    given = {"clip": NormClip(threshold=5.0), "step_size": 0.2, "n_draws": 100}
    model = SGLDLogisticRegression(**given, random_state=0)
    with pytest.warns(UserWarning) as told:
        model.fit(*rookies)
    share = f"clipped on {model.clipped_fraction_:.1%} of the steps"
    assert any(share in str(warning.message) for warning in told)


# ---- the thresholds, each where a figure stands just below and just above it ---------------------


@pytest.mark.parametrize("variance, temperature", [(3.0, 1.0), (700.0, 1.0), (700.0, 0.1)])
def test_the_batch_is_the_least_whose_noise_adds_a_hundredth_to_a_variance(variance, temperature):
    level, step = noise.NoiseLevel(variance), 0.5
    size = level.batch_size(step, temperature)
    added = step * variance / ((2.0 - step) * temperature)
    assert added / size <= 0.01 < added / max(size - 1, 1e-9)
    longest = level.step_size(40, temperature)
    assert level.inflation(longest, 40, temperature) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "most, width, exact",
    [(0.004, 1.0, False), (None, 1.0, True), (0.0, 1.99, False), (0.0, 2.01, True)],
)
def test_where_the_pilot_finds_an_error_chains_accept_or_reject(monkeypatch, most, width, exact):
    from skbayes_sgld.own_models import as_posterior

    settings = Settings.of(SGLDLogisticRegression())
    found = most if most is None else pilots.StepChoice(1.0, Bias(most, 0.0, width, 2.0, most, 1.0))
    monkeypatch.setattr(pilots, "choose_step_size", lambda *args, **kwargs: found)
    plan = make_plan(as_posterior(NormalMean()), settings, 0)
    assert isinstance(plan.choices["sampler"].value, HMC) == exact


# 3 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_few_rows_per_parameter_take_no_pilot_of_the_cheap_sampler(monkeypatch):
    # the mode's metric is known to be wrong there, and a pilot in it costs seconds for nothing
    def fail(*args):
        raise AssertionError("a pilot was run")

    monkeypatch.setattr(pilots, "choose_step_size", fail)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((330, 310))
    y = X[:, 0] + rng.logistic(size=330) > 0
    model = SGLDLogisticRegression(prior="normal", n_draws=3, n_burnin=1, random_state=0).fit(X, y)
    assert type(model.sampler_).__name__ == "KineticLangevin"
    assert "few rows per parameter" in model.result_.choices["sampler"].why


def test_rounded_trajectories_are_accepted_by_the_density_that_was_to_accept_them():
    posterior = logistic_posterior(200, 8, Laplace(scale=0.5))
    mode = mode_of(posterior, posterior.start())
    dynamics = Dynamics(Full().bind(posterior, None), mode.metric)
    rounded = round_gradient(dynamics, mode, 1.0)
    assert rounded.rounded and rounded.density_of is posterior
    soft = soften(dynamics, mode)
    assert soft.density_of is posterior and soft.gradient.posterior is not posterior
    both = round_gradient(soft, mode, 1.0)
    assert both.rounded and both.density_of is posterior


def test_exponentials_beyond_single_precision_are_no_reason_to_warn():
    posterior = logistic_posterior(200, 8, Normal(scale=100.0))
    near = mode_of(posterior, posterior.start())
    wide = Mode(near.theta, near.metric.scaled(1e3))
    dynamics = Dynamics(Full().bind(posterior, None), near.metric, rounded=True)
    round_density(dynamics, wide)  # a warning would be an error


@pytest.mark.parametrize(("most", "order"), [(4, 2), (3, 1)])
# 2 draws a chain are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_minibatches_have_the_second_order_where_the_curvature_is_formed(most, order, monkeypatch):
    monkeypatch.setattr(rows_asked_for, "MAX_DENSE", most)  # of four parameters
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.logistic(size=60) > 0
    model = SGLDLogisticRegression(batch_size=10, n_draws=2, random_state=0).fit(X, y)
    assert model.gradient_.order == order


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of 2 draws a chain
@pytest.mark.filterwarnings("ignore:The minibatches' noise:UserWarning")  # of ten rows
def test_a_batch_of_given_size_is_for_priors_that_learn_scales_too():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    prior, short = "hierarchical_normal", {"n_draws": 2, "n_burnin": 2, "thin": 1}
    model = SGLDLogisticRegression(prior=prior, batch_size=10, random_state=0, **short)
    model.fit(X, X[:, 0] + rng.logistic(size=60) > 0)  # rows have no local parameters there
    assert (model.gradient_.order, model.batch_size_) == (1, 10)


@pytest.fixture(scope="module")
def wide_and_many():
    """So many rows and columns that gradient, walkers and pilot are a matter of their cost."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2200, 100))
    y = rng.random(2200) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(100) / 10.0))
    return X, y


# a plan does not depend on how many draws are too few
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_walkers_share_the_batches_and_the_pilot_takes_all_rows_unless_batches_are_given(
    wide_and_many, monkeypatch
):
    piloted, plain = [], pilots.choose_step_size

    def noted(run, *args, **kwargs):
        piloted.append(run.batch_size)
        return plain(run, *args, **kwargs)

    monkeypatch.setattr(pilots, "choose_step_size", noted)
    automatic = SGLDLogisticRegression(random_state=0).fit(*wide_and_many).result_
    plan = automatic.plan
    assert plan.n_walkers == plan.run.dynamics.gradient.n_sharing == 16
    assert plan.run.batch_size > 2200 / 16  # the pilot's own batches would cost more than all rows
    assert "16 walkers share each" in automatic.choices["batch_size"].why
    # the pilot at half the step, whose chains are many more than the walkers, took their batches
    assert automatic.diagnose().halved_bias < THRESHOLDS.max_bias
    for given in ({"batch_size": 500}, {"gradient": "control_variate"}):
        model = SGLDLogisticRegression(n_draws=10, random_state=0, **given)
        assert model.fit(*wide_and_many).result_.plan.run.dynamics.gradient.n_sharing == 1
    assert piloted[:2] == [None, 500]


@pytest.mark.slow
def test_the_mean_over_walkers_that_share_batches_varies_as_independent_draws_do(wide_and_many):
    means, sds = [], []
    for seed in range(8):
        result = SGLDLogisticRegression(random_state=seed).fit(*wide_and_many).result_
        assert result.plan.run.dynamics.gradient.n_sharing == 16
        means.append(result.draws.values.reshape(-1, 101).mean(axis=0))
        sds.append(result.draws.values.reshape(-1, 101).std(axis=0))
    spread = np.std(means, axis=0, ddof=1) / np.mean(sds, axis=0)
    worth = result.summary()["ess_bulk"].to_numpy()
    ratio = np.mean(np.square(spread) * worth)  # 1 where the effective sample size is right
    # the variance of 8 means has a relative error of sqrt(2 / 7), and parameters are 101
    assert abs(ratio - 1.0) < 4 * np.sqrt(2.0 / 7.0 / 101.0)


def test_a_plan_tells_defaults_from_what_was_given():
    from skbayes_sgld.datasets import make_logistic

    X, y = make_logistic(100, random_state=0)[:2]
    plain = SGLDLogisticRegression(random_state=0).fit(X, y).result_.choices
    other = {"schedule": "polynomial", "temperature": 2.0, "clip": NormClip(1e3)}
    given = SGLDLogisticRegression(step_size=0.1, n_draws=4, random_state=0, **other)
    with pytest.warns(ConvergenceWarning):
        given = given.fit(X, y).result_.choices
    for name in other:
        assert (plain[name].why, given[name].why) == ("the default", "given")


def test_a_start_by_name_counts_as_given_with_several_walkers_too(by_steps):
    from skbayes_sgld.datasets import make_logistic

    X, y = make_logistic(100, random_state=0)[:2]
    init = SGLDLogisticRegression(init="mode", random_state=0).fit(X, y).result_.choices["init"]
    assert "walkers a chain" in init.why and init.given


def test_no_more_draws_are_made_than_memory_holds(monkeypatch):
    from skbayes_sgld.datasets import make_logistic

    X, y = make_logistic(200, random_state=0)
    n_params = X.shape[1] + 1
    few = replace(THRESHOLDS, max_numbers=2.0 * n_params * 50)
    monkeypatch.setattr(lengths, "THRESHOLDS", few)
    model = SGLDLogisticRegression(n_draws=100, n_chains=2, random_state=0)
    with pytest.warns(ConvergenceWarning):  # so few draws tell little
        plan = model.fit(X, y).result_.plan
    assert plan.n_draws == 50
    assert "would take too much memory" in plan.choices["n_draws"].why
