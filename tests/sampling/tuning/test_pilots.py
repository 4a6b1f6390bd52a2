"""The bias of a step size is that of the sampler which is run, its own or a user's."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

import skbayes_sgld
from skbayes_sgld.sampling import (
    GRADIENTS,
    PSGLD,
    SAMPLERS,
    SGHMC,
    SGLD,
    Minibatch,
    Sampler,
)
from skbayes_sgld.sampling.base import check_requirements
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.pilots import (
    StandardNormal,
    choose_step_size,
    measure_bias,
    normal_inflation,
    step_sizes,
)
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from tests.references.targets import (
    NormalMean,
    assert_moments,
    logistic_posterior,
    make_run,
    run_at_mode,
)


@dataclass(eq=False, repr=False)
class BAOAB(Sampler):
    """Underdamped Langevin dynamics, split as Leimkuhler & Matthews 2013: exact if normal."""

    friction: float = 1.0

    def init(self, theta):
        return {
            "theta": theta,
            "velocity": np.zeros_like(theta),
            "force": np.full_like(theta, np.nan),
        }

    def prepare(self, normals, previous, eta, dynamics):
        keep = np.exp(-self.friction * eta)
        return normals * np.sqrt(dynamics.temperature * (1 - keep**2))[:, None, None]

    def step(self, state, eta, noise, batch, dynamics):
        if np.isnan(state["force"]).any():
            state["force"] = dynamics.force(state, batch)
        velocity = state["velocity"] + 0.5 * eta * state["force"]
        move = 0.5 * eta * velocity
        velocity = np.exp(-self.friction * eta) * velocity + noise
        move += 0.5 * eta * velocity
        state["theta"] = state["theta"] + dynamics.metric.sqrt(move)
        state["force"] = dynamics.force(state, batch)
        state["velocity"] = velocity + 0.5 * eta * state["force"]


class TooWide(BAOAB):
    """A sampler whose author added too much noise: variances are 21 % too large."""

    def prepare(self, normals, previous, eta, dynamics):
        return 1.1 * super().prepare(normals, previous, eta, dynamics)


def gamma():
    """A parameter that is positive, with shape 5 and rate 2."""
    from skbayes_sgld.own_models import FunctionPosterior

    density = (lambda x: 4 * np.log(x[:, 0]) - 2 * x[:, 0], lambda x: 4 / x - 2)
    return FunctionPosterior(*density, 1, ["a"], transforms={"a": "positive"})


def bias_of(sampler, posterior, step_size, **settings):
    return measure_bias(*run_at_mode(posterior, sampler=sampler, **settings), step_size, 0)


def test_a_users_sampler_is_measured_by_running_it():
    # the pilot ran SGLD's recursion beside it, and found a bias of 274 %
    found = bias_of(BAOAB(), StandardNormal(3), 0.5)
    assert found.size < 0.005 and found.width == pytest.approx(1.0, abs=0.2)
    wrong = bias_of(TooWide(), StandardNormal(3), 0.5)
    assert wrong.size == pytest.approx(0.105, abs=0.01)


def test_a_users_sampler_gets_a_step_size_of_use_and_draws_of_the_right_distribution():
    draws = skbayes_sgld.sample(gamma(), BAOAB(), random_state=0)
    assert draws.choices["step_size"].value >= 0.25
    assert draws.summary()["ess_bulk"].min() > 1500
    exact = stats.gamma(5, scale=0.5)
    assert_moments(draws, exact.mean(), exact.std(), rough=0.015)


def test_eulers_bias_on_a_skewed_distribution_is_that_of_its_draws():
    posterior = gamma()
    found = bias_of(SGLD("euler"), posterior, 0.3)
    run, mode = run_at_mode(posterior, sampler=SGLD("euler"), step_size=0.3)
    draws = run_chains(run, np.zeros((100, 1)), n_draws=2000, n_burnin=50).draws
    from_grad = -(posterior.grad(draws.reshape(-1, 1)) * (draws.reshape(-1, 1) - mode.theta)).mean()
    # E[-u d log p / du] is what the pilot reads a variance's error from
    assert found.size == pytest.approx(0.5 * abs(from_grad - 1), abs=found.doubt + 0.01)


def with_integrators():
    """Samplers whose step is not tested, with each of their integrators."""
    for cls in SAMPLERS.values():
        if not cls.adjusted and "integrator" in cls().get_params():
            yield from (cls(integrator=name) for name in ("euler", "leimkuhler_matthews"))
        elif not cls.adjusted:
            yield cls()


@pytest.mark.parametrize("sampler", with_integrators(), ids=repr)
def test_the_variance_that_a_sampler_declares_is_what_it_has_when_it_runs(sampler, monkeypatch):
    """A force that is 3 % too large makes it 3 % too small."""
    monkeypatch.setattr(pilots, "_INFLATIONS", {})
    step = min(step_sizes(sampler)[0], 0.3)
    declared = normal_inflation(sampler, step, 2)
    monkeypatch.setattr(type(sampler), "gaussian_inflation", lambda self, eta: None)
    assert normal_inflation(sampler, step, 2) == pytest.approx(declared, abs=0.012)


def test_an_unstable_step_has_infinite_bias_and_an_undeclared_variance_falls_with_the_step():
    assert bias_of(SGLD("euler"), StandardNormal(2), 2.5).size == np.inf
    assert normal_inflation(TooWide(), 0.5, 2) == pytest.approx(1.21, abs=0.01)
    assert normal_inflation(BAOAB(), 1e-4, 2) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("width, left", [(0.9e4, False), (1.1e4, True)])
def test_chains_far_wider_than_the_mode_s_variance_have_left_the_posterior(width, left):
    sums = pilots._Sums(np.zeros((5, 2, 1)), 1.0, 0.0)
    sides = np.array([[1.0], [-1.0], [1.1], [-1.1]])
    u = sides * np.sqrt(width / np.square(sides).mean())
    sums.add(u, -sides / u, sides)
    found = sums.bias(1.0)
    assert np.isinf(found.size) == np.isinf(found.upper) == left
    assert left or found.width == pytest.approx(width, rel=1e-3)


def test_step_sizes_fall_by_about_a_third_at_a_time():
    ratios = np.divide(pilots.STEP_SIZES[1:], pilots.STEP_SIZES[:-1])
    assert np.all((ratios > 0.6) & (ratios < 0.75))


def test_a_pilot_of_many_rows_has_eight_pairs_of_chains_and_32_of_many_columns():
    assert pilots.n_chains(make_run(logistic_posterior(20_000))) == 16
    wide = logistic_posterior(2000, 255)
    assert wide.n_params == 256
    assert pilots.n_chains(make_run(wide)) == 64
    assert pilots.n_chains(make_run(logistic_posterior(2000, 254))) == 16
    assert pilots.n_chains(make_run(wide, batch_size=2000)) == 16


def test_a_step_is_not_shortened_for_an_error_that_is_not_its_own():
    # PSGLD's memory leaves 1.6 % of an sd at the best of its steps; at 0.1 Euler adds 1.2 %, and
    # the step fell to a third for an error above 1.5 % that no step is without
    step, found = choose_step_size(*run_at_mode(StandardNormal(2), sampler=PSGLD()), 0)
    assert step == 0.1
    assert found.size == pytest.approx(0.028, abs=0.002)


def test_a_pilot_is_not_thrown_far_away_by_a_metric_of_one_gradient():
    # a first gradient near 0 makes a metric of its inverse: widths of 9, times of 1e5
    found = bias_of(PSGLD(), StandardNormal(20), 0.1)
    assert found.width == pytest.approx(1.06, abs=0.25)
    assert found.time < 2.0 * PSGLD().step_and_time(np.ones(20), 0.1)[1]


def test_minibatches_of_a_run_are_those_of_the_pilot():
    from skbayes_sgld.own_models import as_posterior

    quiet = bias_of(SGLD(), as_posterior(NormalMean(400)), 0.5)
    loud = bias_of(SGLD(), as_posterior(NormalMean(400)), 0.5, batch_size=20)
    assert quiet.size < 1e-10  # the two chains are one
    assert loud.doubt > 0.01


@pytest.mark.parametrize("name", sorted(set(GRADIENTS) - {"full"}))
def test_pairs_that_share_a_batch_find_what_pairs_with_a_copy_each_find(name):
    sharing, apart = (logistic_posterior(500, 3) for _ in range(2))
    apart.facts = replace(apart.facts, shares_batches=False)
    shared, copied = (
        bias_of(SGLD(), each, 0.5, gradient=GRADIENTS[name](), batch_size=20)
        for each in (sharing, apart)
    )
    assert shared == pytest.approx(copied, rel=1e-6) and shared.doubt > 0.0


def test_a_sampler_that_understates_its_time_is_spaced_by_what_the_pilot_saw():
    from skbayes_sgld.own_models import as_posterior

    class Boastful(SGHMC):
        def step_and_time(self, rates, step=None):
            step, time = super().step_and_time(rates, step)
            return step, time / 20

    draws = skbayes_sgld.sample(as_posterior(StandardNormal(5)), Boastful(0.05), random_state=0)
    assert draws.choices["thin"].value > 2


def test_an_algorithm_says_what_it_needs_and_what_else_would_do():
    from skbayes_sgld.own_models import as_posterior

    class Riemannian(BAOAB):
        requires = ("curvature",)
        remedy = "set sampler='hmc'"

    match = r"^sampler=Riemannian\(\) needs a posterior with curvature .* no curvature.*or set samp"
    with pytest.raises(TypeError, match=match):
        check_requirements(Riemannian(), StandardNormal(2), None)
    run = make_run(as_posterior(NormalMean()), sampler=Riemannian())
    with pytest.raises(TypeError, match=match.replace("no curvature", "NormalMean")):
        run_chains(run, np.zeros((1, 1)), n_draws=1)
    with pytest.raises(ValueError, match=r"^sampler='hmc' needs the gradient from all rows|HMC"):
        check_requirements(SAMPLERS["hmc"](), StandardNormal(2), 10)


def choose(monkeypatch, error, sampler=None, **options):
    """Choice where the error at a step size is ``error(step_size)``, and what was measured."""
    (run, mode), measured = run_at_mode(StandardNormal(2), sampler=sampler or SGLD()), []

    def fake(run, mode, step_size, seed, limit=None, decides=False):
        measured.append(step_size)
        size, doubt = error(step_size)
        return pilots.Bias(size, doubt, 1.0, 2.0, size + doubt, 1.0)

    monkeypatch.setattr(pilots, "measure_bias", fake)
    return choose_step_size(run, mode, 0, **options), measured


@pytest.mark.parametrize(
    "sampler, error_at_one, expected",
    [
        *((SGLD(), error, step) for error, step in [(0.0099, 1.0), (0.0101, 0.7), (0.0203, 0.7)]),
        *((SGLD(), error, step) for error, step in [(0.0205, 0.5), (0.041, 0.35), (200.0, 0.02)]),
        # of one that errs on a normal posterior too, at most 0.015 sds
        *((SGLD("euler"), error, step) for error, step in [(0.0599, 0.5), (0.0601, 0.35)]),
        *((SGLD("euler"), error, step) for error, step in [(0.13, 0.25), (200.0, 0.01)]),
    ],
)
def test_the_step_is_the_largest_that_costs_at_most_a_hundredth(
    monkeypatch, sampler, error_at_one, expected
):
    (step_size, found), _ = choose(monkeypatch, lambda step: (error_at_one * step**2, 0.0), sampler)
    assert step_size == expected
    assert found.size == pytest.approx(error_at_one * expected**2)


def test_a_step_that_a_shorter_one_does_not_better_is_kept(monkeypatch):
    found, measured = choose(monkeypatch, lambda step: (0.05, 0.0), SGLD("euler"))
    assert found[0] == measured[0] == 0.5 and len(measured) == 2


@pytest.mark.parametrize("doubt, expected", [(0.0099, 1.0), (0.0101, 0.7), (0.039, 0.5)])
def test_an_error_that_a_pilot_leaves_possible_shortens_the_step(monkeypatch, doubt, expected):
    (step_size, found), measured = choose(monkeypatch, lambda step: (0.0, doubt))
    assert step_size == expected and measured == [1.0]
    assert found.upper <= THRESHOLDS.max_bias


def test_with_a_spare_sampler_three_steps_are_tried_and_none_without_hope(monkeypatch):
    # errors of the fourth power: at 1 of 15 %, and so of 0.9 % at 0.5
    found, measured = choose(monkeypatch, lambda step: (0.15 * step**4, 0.0), has_spare=True)
    assert found[0] == 0.5 and measured == [1.0, 0.5]
    found, measured = choose(monkeypatch, lambda step: (0.17 * step**4, 0.0), has_spare=True)
    assert found is None and measured == [1.0]
    found, measured = choose(monkeypatch, lambda step: (0.06 * step**1.5, 0.0), has_spare=True)
    assert found is None and measured == [1.0, 0.5]


class Leaning(StandardNormal):
    """Log gamma variables: of skewness ``-c`` to first order, steep to one side."""

    def __init__(self, skewness):
        super().__init__(5)
        self.skewness = skewness

    def log_density(self, theta):
        c = self.skewness
        return -(np.expm1(c * theta) - c * theta).sum(axis=1) / c**2

    def grad(self, theta):
        return -np.expm1(self.skewness * theta) / self.skewness


def long_run(posterior, step_size):
    """Errors of the sds of a long run, by quadrature."""
    x = np.linspace(-30.0, 30.0, 60_001)
    log_p = posterior.log_density(np.stack([x] + [0 * x] * 4, axis=1))
    p = np.exp(log_p - log_p.max())
    mean = (p @ x) / p.sum()
    sd = np.sqrt(p @ (x - mean) ** 2 / p.sum())
    run = make_run(posterior, sampler=SGLD(), step_size=step_size)
    draws = run_chains(run, np.zeros((50, 5)), n_draws=4000, n_burnin=20).draws
    return draws.mean() - mean, draws.reshape(-1).std() / sd - 1.0


@pytest.mark.parametrize("skewness, near", [(0.25, True), (0.6, False)])
def test_a_pilot_accepts_a_step_of_one_where_long_chains_have_no_error(skewness, near):
    posterior = Leaning(skewness)
    run, mode = run_at_mode(posterior, sampler=SGLD())
    chosen = {choose_step_size(run, mode, seed)[0] for seed in range(10)}
    assert (chosen == {1.0}) == (1.0 in chosen) == near
    for step_size, fits in [(1.0, near), (max(chosen), True)]:
        mean, sd = long_run(posterior, step_size)
        # a million draws, worth more than 300,000
        assert (abs(mean) < 0.005 and abs(sd) < 0.005) == fits


def test_mirrored_chains_see_through_skewness():
    # without their mirror images as many chains leave a doubt of a hundredth and more
    found = bias_of(SGLD(), Leaning(0.1), 1.0)
    assert 0.0005 < found.upper < 0.0015


def test_a_pilot_stops_where_its_error_is_plain_or_cannot_be_shown_to_be_small():
    calls = []

    class Counted(Leaning):
        def grad(self, theta):
            calls.append(1)
            return super().grad(theta)

    posterior, mode = Counted(0.3), Mode(np.zeros(5), Diagonal(np.ones(5)))

    def length(sampler, limit, decides=False):
        run, _ = run_at_mode(posterior, mode, sampler=sampler)
        calls.clear()
        return measure_bias(run, mode, 0.5, 0, limit, decides).upper, len(calls)

    _, plain = length(SGLD("euler"), 1e-9)
    _, whole = length(SGLD("euler"), None)
    assert 0.1 < plain / whole < 0.2
    possible, whole = length(SGLD(), None)
    assert length(SGLD(), 1.0)[1] < 0.2 * whole
    assert length(SGLD(), possible / 3)[1] == whole
    assert length(SGLD(), possible / 3, True)[1] < 0.2 * whole
    decided, undecided = (length(SGLD(), 1.5 * possible, decides)[1] for decides in (True, False))
    assert decided == undecided > length(SGLD(), 1.0, True)[1]


def test_a_remembered_gradient_is_forgotten_with_its_batch():
    from skbayes_sgld.own_models import as_posterior

    posterior, theta = NormalMean(), np.zeros((1, 1))
    bound = Minibatch().bind(as_posterior(posterior))
    remembered = pilots._CachedGradient(bound)
    first, second = remembered.prepare(np.array([[[0, 1]], [[2, 3]]]))
    for batch in (first, first, second):
        np.testing.assert_array_equal(remembered(theta, batch), bound(theta, batch))
    assert not np.array_equal(bound(theta, first), bound(theta, second))
