"""Names mean what they say: what the plan of a run chooses, and what it leaves alone."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, _memory
from skbayes_sgld.inference import setting_checks
from skbayes_sgld.inference.planning import rows_read
from skbayes_sgld.inference.planning import task as planning
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Laplace, Normal
from skbayes_sgld.sampling import (
    HMC,
    SGLD,
    Curvature,
    Cyclical,
    FlatDecayFlat,
    Polynomial,
    Schedule,
)
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import noise
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.step_bias import step_bias
from tests.marks import slow
from tests.references.targets import Density, NormalMean, logistic_posterior, make_run, mode_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
LABELS = (X @ [1.0, -2.0, 0.0] + RNG.logistic(size=60) > 0).astype(int)
TARGET = X @ [1.0, -2.0, 0.0] + RNG.standard_normal(60)
SKEWED = (X[:12], (X[:12, 1] > 0).astype(int))  # separated: a wide prior alone holds the draws
WIDE = (RNG.standard_normal((20, 60)), RNG.standard_normal(20))
STILL = {"step_size": 1e-300, "n_draws": 4, "n_burnin": 0, "thin": 1}
PUBLISHED = {"sampler": "sgld", "preconditioner": None, "gradient": "minibatch", "batch_size": 10}
# the runs are too short for usable draws, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


LENGTHS = {"n_draws", "n_chains", "n_jobs", "verbose", "warm_start", "random_state"}
LENGTHS |= {"checkpoint", "resume_from", "max_time", "target_ess"}


def test_sgld_is_sgld_where_a_pilot_finds_it_in_error_and_auto_is_not():
    settings = {"prior": Normal(scale=10.0), "n_draws": 20, "random_state": 0}
    chosen = SGLDLogisticRegression(**settings).fit(*SKEWED)
    asked_for = SGLDLogisticRegression(sampler="sgld", **settings).fit(*SKEWED)
    assert isinstance(chosen.sampler_, HMC)
    assert isinstance(asked_for.sampler_, SGLD) and asked_for.step_size_ < 0.5
    assert "times those at the mode" in chosen.result_.choices["sampler"].why


def test_the_curvature_by_name_is_the_automatic_one_bit_by_bit():
    settings = {"prior": "normal", "n_draws": 50, "random_state": 0}
    first, second = (
        SGLDLinearRegression(preconditioner=name, **settings).fit(*WIDE)
        for name in ("auto", "curvature")
    )
    assert first.parameterization_ == second.parameterization_ == "noncentered"
    np.testing.assert_array_equal(first.posterior_.values, second.posterior_.values)


def test_parameterizations_by_name_have_the_same_posterior():
    settings = {"prior": Normal(scale=0.5), "noise_variance": 1.0, "random_state": 1}
    found = []
    for name in ("centered", "row_space"):
        model = SGLDLinearRegression(parameterization=name, **settings)
        model.fit(WIDE[0][:12, :15], WIDE[1][:12])
        assert model.parameterization_ == name
        found.append(model.summary())
    a, b = found
    error = np.hypot(a.mcse_mean, b.mcse_mean)
    assert (np.abs(a["mean"] - b["mean"]) < 5.0 * error).all()


def test_a_parameterization_that_is_not_available_is_refused():
    with pytest.raises(ValueError, match="parameterization='noncentered' needs a normal likeli"):
        SGLDLogisticRegression(parameterization="noncentered").fit(X, LABELS)
    with pytest.raises(ValueError, match="parameterization='row_space' needs a normal prior"):
        SGLDLogisticRegression(parameterization="row_space").fit(X, LABELS)


def test_a_published_algorithm_looks_for_no_mode_and_forms_no_matrix(monkeypatch):
    def refuse(*args):
        raise AssertionError("a mode was looked for")

    monkeypatch.setattr(planning, "newton_mode", refuse)
    P, n = 1500, 40
    wide, y = np.random.default_rng(0).standard_normal((n, P)), np.arange(n) % 2
    model = SGLDLogisticRegression(**PUBLISHED, step_size=1e-5, n_draws=5, n_chains=2)
    tracemalloc.start()
    try:
        model.fit(wide, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.result_.mode is None
    assert peak < 4 * P * P  # bytes: half of a matrix


def test_chains_begin_at_draws_from_the_prior_and_flat_parameters_at_zero():
    model = SGLDLinearRegression(
        **PUBLISHED | STILL, prior=Laplace(scale=2.0, location=1.0), n_chains=400, random_state=0
    ).fit(X, TARGET)
    starts = model.posterior_.values[:, 0]
    assert model.init_ == "prior"
    for j in range(3):
        assert stats.kstest(starts[:, j], stats.laplace(1.0, 2.0).cdf).pvalue > 1e-3
    np.testing.assert_allclose(starts[:, 3], 0.0, atol=1e-12)
    np.testing.assert_allclose(starts[:, 4], TARGET.var(), rtol=1e-12)


@pytest.mark.parametrize("preconditioner", [None, "curvature"])
def test_chains_begin_where_the_user_says(preconditioner):
    begin = np.array([[0.5, -1.0, 2.0, 3.0, 0.7], [1.0, 1.0, 1.0, -2.0, 1.3]])
    settings = STILL | {"sampler": "sgld", "preconditioner": preconditioner, "n_chains": 2}
    for init in (begin, begin[0]):
        model = SGLDLinearRegression(init=init, **settings).fit(X, TARGET)
        expected = np.broadcast_to(init, (2, 5))
        np.testing.assert_allclose(model.posterior_.values[:, 0], expected, rtol=1e-9)
    begin[:] = 0.0  # the plan has a copy
    assert np.all(model.result_.plan.settings.init != 0.0)
    zeros = SGLDLinearRegression(init="zeros", **settings).fit(X, TARGET).posterior_.values
    np.testing.assert_allclose(zeros[:, 0, :4], 0.0, atol=1e-9)
    np.testing.assert_allclose(zeros[:, 0, 4], TARGET.var(), rtol=1e-9)


def test_chains_begin_overdispersed_around_the_mode():
    settings = STILL | {"sampler": "sgld", "init": "mode", "temperature": 0.25}
    model = SGLDLogisticRegression(**settings, n_chains=400, random_state=0).fit(X, LABELS)
    assert model.result_.mode is not None
    u = model.result_.mode.metric.whiten(model.result_.theta[:, 0] - model.result_.mode.theta)
    # the variance of 400 normals, 1.5 times as wide as the posterior, within five standard errors
    np.testing.assert_allclose(u.var(axis=0), 1.5**2 * 0.25, rtol=5 * np.sqrt(2 / 400))


def test_chains_begin_at_the_ends_of_a_pilot_that_are_draws_of_the_posterior():
    rows = np.random.default_rng(2).standard_normal((40, 2))
    labels = (rows[:, 0] + 0.3 * rows[:, 1] > 0).astype(int)  # separated: a skewed posterior
    settings = {"prior": Normal(scale=20.0), "n_draws": 1000, "random_state": 0}
    model = SGLDLogisticRegression(**settings).fit(rows, labels)
    assert (model.init_, type(model.sampler_)) == ("pilot", HMC)
    posterior, starts = model.result_.theta.reshape(-1, 3), model.result_.plan.start
    mean, sd = posterior.mean(axis=0), posterior.std(axis=0)
    assert np.abs((model.result_.mode.theta - mean) / sd).min() > 0.6  # the mode is elsewhere
    # four places of each of 32 chains are worth 48 draws at the least
    assert len(starts) == 128
    np.testing.assert_allclose((starts.mean(axis=0) - mean) / sd, 0.0, atol=2.5 / np.sqrt(48))
    np.testing.assert_allclose(starts.std(axis=0) / sd, 1.0, atol=0.4)
    fewer = SGLDLogisticRegression(**settings, n_chains=2).fit(rows, labels)
    np.testing.assert_array_equal(fewer.posterior_.values, model.posterior_.values[:2])
    told = SGLDLogisticRegression(**settings, init="mode").fit(rows, labels)
    assert (told.init_, told.n_burnin_ > model.n_burnin_) == ("mode", True)


def test_chains_of_a_horseshoe_begin_at_the_ends_of_a_pilot():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((100, 6))
    labels = (rows[:, 0] + rng.logistic(size=100) > 0).astype(int)
    fit = SGLDLogisticRegression(prior="horseshoe", random_state=0).fit(rows, labels).result_
    assert (fit.plan.choices["init"].value, fit.plan.n_burnin < 10) == ("pilot", True)
    draws, starts = fit.theta.reshape(-1, fit.theta.shape[2]), fit.plan.start
    off = (starts.mean(axis=0) - draws.mean(axis=0)) / draws.std(axis=0)
    np.testing.assert_allclose(off, 0.0, atol=4.0 / np.sqrt(48))  # worth 48 draws at the least
    np.testing.assert_allclose(starts.std(axis=0) / draws.std(axis=0), 1.0, atol=0.5)


def test_chains_that_begin_far_out_move_to_the_posterior_first():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    settings = {"n_draws": 300, "random_state": 0}
    other = SGLDLogisticRegression(**settings).fit(rows, labels).summary()
    for init in ("prior", np.full(31, 50.0)):
        model = SGLDLogisticRegression(init=init, **settings).fit(rows, labels)  # no warning
        assert "moved towards the mode" in model.result_.plan.choices["init"].why
        mine = model.summary()
        error = np.hypot(mine.mcse_mean, other.mcse_mean)
        assert np.abs((mine["mean"] - other["mean"]) / error).max() < 4.5


def test_the_start_of_any_posterior_is_the_users_to_say():
    settings = STILL | {"sampler": "sgld", "preconditioner": None}

    normal = Density(lambda x: -0.5 * (x**2).sum(axis=1), lambda x: -x, n_params=1)
    draws = skbayes_sgld.sample(normal, init=[7.0], **settings)
    np.testing.assert_allclose(draws.values, 7.0)
    spread = skbayes_sgld.sample(normal, n_chains=300, random_state=0, **settings)
    assert stats.kstest(spread.values[:, 0, 0], stats.uniform(-2, 4).cdf).pvalue > 1e-3
    with pytest.raises(TypeError, match="init='prior' needs a posterior that can draw"):
        skbayes_sgld.sample(normal, init="prior", **settings)


@pytest.mark.parametrize(
    ("init", "error", "match"),
    [
        ("mean", ValueError, "init='mean' is not known"),
        ([1.0, 2.0], ValueError, r"init has shape \(2,\).*\(5,\) or \(4, 5\)"),
        (np.zeros((1, 1, 1)), ValueError, r"init has shape \(1, 1, 1\)"),
        ([np.nan] * 5, ValueError, "out of range: nan"),
        ({}, TypeError, "init={} is not accepted"),
        ([0.0, 0.0, 0.0, 0.0, -1.0], ValueError, "value -1 for noise_variance .* out of its range"),
    ],
)
def test_starts_that_cannot_be_used_are_refused(init, error, match):
    with pytest.raises(error, match=match):
        SGLDLinearRegression(init=init).fit(X, TARGET)


def test_every_automatic_setting_is_shown_where_it_is_looked_for():
    model = SGLDLogisticRegression(temperature=2.0, n_draws=50, random_state=0).fit(X, LABELS)
    attrs, table = model.summary().attrs, str(model.result_.plan)
    for name in Settings.__dataclass_fields__.keys() & model.get_params().keys():
        if name in LENGTHS:
            continue
        assert name in attrs and f"\n{name} " in f"\n{table}"
        assert f"{name}=" in repr(model.posterior_)
        if getattr(model, name) == "auto" and name != "prior":  # prior_ has numbers for scales
            assert getattr(model, f"{name}_") == attrs[name] or attrs[name] is None
    assert attrs["temperature"] == 2.0 and "temperature=2" in repr(model.posterior_)


@pytest.mark.parametrize("asked, share", [({"batch_size": 20}, False), ({}, True)])
def test_walkers_share_only_batches_whose_size_the_plan_chose(asked, share, by_steps, monkeypatch):
    # batches of the user's size may be noisy: shared, they would widen the mean of a chain
    monkeypatch.setattr(noise, "batch_pays", lambda *args: True)
    monkeypatch.setattr(rows_read, "batch_pays", lambda *args: True)
    model = GLMPosterior(X, LABELS.astype(float), Bernoulli(), Normal(1.0), intercept_at_mean=True)
    plan = make_plan(model, Settings.of(SGLDLogisticRegression(**asked)), seed=0)
    assert plan.run.batch_size is not None and plan.n_walkers > 1
    assert plan.run.dynamics.gradient.n_sharing == (plan.n_walkers if share else 1)


@pytest.mark.parametrize("eta, is_measured", [(0.05, False), (0.2, True)])
def test_a_pilot_measures_steps_of_at_least_a_fifth_of_the_suggested_one(eta, is_measured):
    posterior = logistic_posterior(40, 2)
    mode = mode_of(posterior, posterior.start())
    run = make_run(posterior, sampler=SGLD(), preconditioner=Curvature(), mode=mode)
    assert run.sampler.step_and_time(np.ones(1))[0] == 0.5
    bias, doubt = step_bias(run, mode, eta, True, 0)
    assert (doubt > 0.0) == is_measured  # the bias on a normal target is certain


@pytest.mark.parametrize(
    ("integrator", "eta", "bias"),
    [
        ("euler", 0.02, (1.0 - 12.5 * 0.02) ** -0.5 - 1.0),
        ("leimkuhler_matthews", 0.02, 0.0),
        ("leimkuhler_matthews", 0.1, np.inf),
    ],
)
def test_without_the_curvature_the_bias_is_that_of_the_closed_form_and_certain(
    integrator, eta, bias
):
    target = NormalMean()  # of precision 25
    mode = Mode(np.array([target.y.mean()]), Diagonal(np.array([1.0 / target.precision])))
    run = make_run(target, sampler=SGLD(integrator), mode=mode)
    assert step_bias(run, mode, eta, False, 0) == (pytest.approx(bias), 0.0)


class Stops(Schedule):
    """One until step 50, and another value from there on; or, without a value, one number."""

    def __init__(self, value=None):
        self.value = value

    def __call__(self, t):
        return 1.0 if self.value is None else np.where(np.asarray(t) < 50, 1.0, self.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.0, "is 0 at step 50; it must be positive"),
        (np.nan, "is nan at step 50"),
        (None, "one number a step"),
    ],
)
def test_a_schedule_without_a_positive_number_at_every_step_is_told_before_the_run(value, message):
    model = SGLDLinearRegression(schedule=Stops(value), n_draws=100, random_state=0)
    with pytest.raises(ValueError, match=f"schedule=.*{message}"):
        model.fit(X, TARGET)


# here the warning is the subject
@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_chains_that_a_schedule_slows_down_are_told_so():
    data, y = load_breast_cancer(return_X_y=True)
    data = (data[:, :4] - data[:, :4].mean(axis=0)) / data[:, :4].std(axis=0)
    model = SGLDLogisticRegression(schedule="harmonic", n_draws=200, random_state=0)
    with pytest.warns(ConvergenceWarning, match="set schedule='constant'"):
        model.fit(data, y)


NORMAL = Density(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)


def sd_by_recursion(etas, n_burnin):
    """Weighted sd of Euler's chain on a standard normal target, by its variance step by step."""
    variances, variance = [], 1.0
    for eta in etas:
        variance = (1.0 - eta) ** 2 * variance + 2.0 * eta
        variances.append(variance)
    return np.sqrt(np.average(variances[n_burnin:], weights=etas[n_burnin:]))


# the last step is the shortest, or a long one; a half of the steps is measured for "auto" alone
@pytest.mark.parametrize(
    ("preconditioner", "n_draws"), [("auto", 2001), slow("auto", 2000), (None, 2000), (None, 2001)]
)
@pytest.mark.parametrize(
    "schedule", [Cyclical(50), Cyclical(7), Polynomial(offset=0, power=0.1), FlatDecayFlat(1500)]
)
def test_the_bias_under_a_schedule_is_the_weighted_mean_over_the_draws(
    schedule, preconditioner, n_draws
):
    settings = {"sampler": SGLD("euler"), "step_size": 0.9, "preconditioner": preconditioner}
    settings |= {"n_draws": n_draws, "n_burnin": 100, "thin": 1, "init": np.zeros(2)}
    result = skbayes_sgld.sample(NORMAL, schedule=schedule, **settings, random_state=0)
    etas = 0.9 * schedule(np.arange(100 + n_draws))
    expected = sd_by_recursion(etas, 100) - 1.0
    bias, doubt = result.bias  # from the draws, with their Monte Carlo error, without a mode
    assert bias == pytest.approx(expected, rel=0.05, abs=doubt)
    assert (bias - doubt > 0.05) == any("times schedule=" in each for each in result.problems)
    if preconditioner == "auto":
        halved = sd_by_recursion(0.5 * etas, 100) - 1.0
        assert result.diagnose().halved_bias == pytest.approx(halved, rel=0.05)


@pytest.mark.slow
def test_the_bias_of_automatic_steps_under_a_schedule_is_that_of_the_draws():
    settings = {"sampler": SGLD("euler"), "n_draws": 100, "random_state": 0}
    steady = skbayes_sgld.sample(NORMAL, **settings)
    falling = skbayes_sgld.sample(NORMAL, schedule=FlatDecayFlat(hold=1), **settings)
    assert falling.bias[0] == pytest.approx(0.1 * steady.bias[0], rel=0.05)


class Growing(Schedule):
    """Long steps after 40 short ones, by which the step size is chosen."""

    def __call__(self, t):
        return np.where(np.asarray(t) < 40, 0.05, 1.0)


def test_automatic_steps_that_a_schedule_lengthens_are_told_to_leave_it():
    settings = {"sampler": SGLD("euler"), "n_draws": 100, "random_state": 0}
    result = skbayes_sgld.sample(NORMAL, schedule=Growing(), **settings)
    assert result.bias[0] > 0.2
    assert any("set schedule='constant'" in problem for problem in result.problems)


def test_few_rows_a_column_under_the_conjugate_prior_are_warned_of():
    few, y = X[:5], TARGET[:5]
    short = {"prior": "conjugate_normal", "n_draws": 50, "random_state": 0}
    with pytest.warns(UserWarning, match="5 rows for 3 columns.*prior='normal'"):
        SGLDLinearRegression(**short).fit(few, y)
    wide = np.random.default_rng(0).normal(size=(5, 8))
    with pytest.warns(UserWarning, match="5 rows for 8 columns") as told:
        SGLDLinearRegression(**short).fit(wide, y)
    advice = next(str(w.message) for w in told if "5 rows" in str(w.message))
    assert "set prior='hierarchical_normal'" in advice  # a given scale would not tell the noise
    # another warning would be an error
    SGLDLinearRegression(**short | {"prior": "normal"}).fit(few, y)
    SGLDLinearRegression(**short).fit(X[:6], TARGET[:6])


def test_draws_beyond_the_memory_that_is_left_are_refused_with_their_size(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**9)
    setting_checks.check_room(4, 4_000_000, 7)  # 0.9 GB
    with pytest.raises(MemoryError, match=r"^n_draws=4000000 of 11 .* takes 1\.41 GB.*fewer draws"):
        setting_checks.check_room(4, 4_000_000, 11)
