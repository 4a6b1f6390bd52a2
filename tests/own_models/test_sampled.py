"""Models of a user's own, of which nothing promises one mode or a gradient that tells all."""

import warnings

import numpy as np
import pytest

from skbayes_sgld import sample
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.own_models import FunctionPosterior, as_posterior
from skbayes_sgld.own_models.search import energy_error, find_modes
from skbayes_sgld.sampling import HMC, ParallelTempering
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode, newton_mode
from tests.marks import slow


def mixture(means, sds, weights):
    """Mixture of round normal distributions."""
    parts = [*zip(np.atleast_2d(means), sds, weights, strict=True)]
    d = len(parts[0][0])

    def logs(x):
        return np.stack(
            [np.log(w) - d * np.log(s) - 0.5 * ((x - m) ** 2).sum(1) / s**2 for m, s, w in parts]
        )

    def grad(x):
        each = logs(x)
        p = np.exp(each - np.logaddexp.reduce(each))
        return sum(-(x - m) / s**2 * p[k, :, None] for k, (m, s, _) in enumerate(parts))

    return FunctionPosterior(lambda x: np.logaddexp.reduce(logs(x)), grad, d)


SPIKE = mixture([[0.0, 0.0], [2.0, 2.0]], [1.0, 0.05], [0.7, 0.3])
JUMP = FunctionPosterior(
    lambda x: -0.5 * x[:, 0] ** 2 + np.log(4.0) * (x[:, 0] > 0.0), lambda x: -x, n_params=1
)


def told(posterior, *args, **settings):
    """Result, warnings and report of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample(posterior, *args, random_state=0, **settings)
    return result, " ".join(str(w.message) for w in caught), result.diagnose()


def share_above_zero(result):
    """Share of the draws above 0, and four standard errors of it."""
    above = (result.values > 0.0).astype(float)
    share = above.mean()
    return share, 4.0 * np.sqrt(share * (1.0 - share) / effective_sample_size(above, "mean")[0])


def test_two_modes_are_found_and_have_their_masses():
    # R-hat was 1.000 with all chains in one of them
    apart = mixture([[3.0], [-3.0]], [1.0, 1.0], [0.2, 0.8])
    result, warned, report = told(apart, n_draws=500)
    assert isinstance(result.choices["sampler"].value, ParallelTempering)
    assert warned == "" and report.usable and len(result.plan.modes) == 2
    share, error = share_above_zero(result)
    assert abs(share - 0.2) < error < 0.1


def test_two_modes_are_found_from_a_saddle():
    apart = mixture([[4.0], [-4.0]], [1.0, 1.0], [0.5, 0.5])
    assert apart.grad(apart.start()[None]) == 0.0
    result, *_ = told(apart, n_draws=20)
    assert [mode.share for mode in result.plan.modes] == pytest.approx([0.5, 0.5], rel=0.01)


@pytest.mark.parametrize("settings", [{}, slow({"sampler": "hmc"})], ids=str)
def test_a_narrow_mode_that_chains_do_not_reach_is_told(settings):
    # draws of the wide one alone passed as usable
    _, warned, report = told(SPIKE, **settings)
    assert not report.usable
    missed = "A mode at theta[0]=2, theta[1]=2 has about 30%"
    assert "have not converged" in warned or missed in warned


def test_a_mode_that_chains_do_not_cross_to_is_told_with_its_share():
    far = mixture([[50.0], [-5.0]], [1.0, 1.0], [0.3, 0.7])
    _, warned, report = told(far, "hmc")
    assert not report.usable
    assert "A mode at theta[0]=50 has about 30% of the posterior, by its curvature" in warned
    assert "and 0.0% of the draws" in warned and "set sampler='parallel_tempering'" in warned
    _, warned, _ = told(far)  # parallel tempering, whose hottest rung does not get there either
    assert "max_temperature" in warned and "parallel_tempering" not in warned


@pytest.mark.slow
def test_a_jump_that_the_gradient_does_not_tell_is_sampled_by_the_density():
    # P(x > 0) is 4 / 5; all of the draws followed -x, and were those of N(0, 1)
    result, warned, _ = told(JUMP, check_gradient=False)
    assert isinstance(result.choices["sampler"].value, HMC) and warned == ""
    assert "jumps by 1.4 nats" in result.choices["sampler"].why
    share, error = share_above_zero(result)
    assert abs(share - 0.8) < error < 0.1


def test_a_sampler_that_follows_the_gradient_alone_is_told_of_a_jump():
    _, warned, report = told(JUMP, "sgld", step_size=0.1, preconditioner=None)
    assert "The log density jumps by 1.4" in warned and "set sampler='hmc'" in warned
    assert not report.usable


class Logistic:
    """Logistic regression as a user writes it."""

    def __init__(self, n, d):
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((n, d))
        u = self.X @ rng.standard_normal(d) / np.sqrt(d)
        self.y = (rng.random(n) < 1.0 / (1.0 + np.exp(-u))).astype(float)
        self.n_samples, self.n_params = n, d

    def _rows(self, x, idx):
        X, y = (self.X, self.y) if idx is None else (self.X[idx], self.y[idx])
        return X, y, (X @ x[:, :, None])[..., 0]

    def log_likelihood(self, x, idx=None):
        _, y, u = self._rows(x, idx)
        return y * u - np.logaddexp(0.0, u)

    def grad_log_likelihood(self, x, idx=None):
        X, y, u = self._rows(x, idx)
        return ((y - 1.0 / (1.0 + np.exp(-u)))[:, None] @ X)[:, 0]

    def log_prior(self, x):
        return -0.5 * (x**2).sum(axis=1)

    def grad_log_prior(self, x):
        return -x


def normal(d, correlation):
    """Correlated normal distribution whose sds run from 0.01 to 100."""
    sds = np.geomspace(0.01, 100.0, d)
    S = (correlation + (1.0 - correlation) * np.eye(d)) * np.outer(sds, sds)
    Q = np.linalg.inv(S)
    return FunctionPosterior(lambda x: -0.5 * ((x @ Q) * x).sum(1), lambda x: -x @ Q, d)


def banana(b, d):
    def grad(x):
        g, r = -x, x[:, 1] - b * x[:, 0] ** 2
        g[:, 0], g[:, 1] = -x[:, 0] / 4.0 + 2.0 * b * x[:, 0] * r, -r
        return g

    def log_density(x):
        r = x[:, 1] - b * x[:, 0] ** 2
        return -(x[:, 0] ** 2) / 8.0 - 0.5 * r**2 - 0.5 * (x[:, 2:] ** 2).sum(axis=1)

    return FunctionPosterior(log_density, grad, d)


def student(d, df):
    return FunctionPosterior(
        lambda x: -(df + d) / 2.0 * np.log1p((x**2).sum(1) / df),
        lambda x: -(df + d) * x / (df + (x**2).sum(axis=1, keepdims=True)),
        d,
    )


UNIMODAL = {
    "normal of 50, correlated": normal(50, 0.9),
    "banana": banana(0.2, 2),
    "Student t of 20": student(20, 12.0),
    "logistic of 50": Logistic(300, 50),
    "quartic": FunctionPosterior(lambda x: -(x**4).sum(1), lambda x: -4.0 * x**3, 3),
    "kink": FunctionPosterior(
        lambda x: -np.abs(x - 0.3).sum(1), lambda x: -np.sign(x - 0.3), 2, start=[1.0, 1.0]
    ),
}


# kinks are in test_widths.py too, and logistic models everywhere
@pytest.mark.parametrize(
    "name", [slow(each) if each in ("kink", "logistic of 50") else each for each in UNIMODAL]
)
def test_models_of_one_mode_are_sampled_without_a_word(name):
    result = sample(UNIMODAL[name], random_state=0)  # a warning would be an error
    assert result.plan.modes == () and result.problems == ()
    assert not isinstance(result.choices["sampler"].value, ParallelTempering)


def test_the_shares_of_modes_are_those_of_normal_distributions_by_hand():
    posterior = mixture([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], [1.0, 0.8, 1.2], [0.5, 0.2, 0.3])
    mode = newton_mode(posterior, np.zeros(2))
    first, *others = find_modes(posterior, mode, 1.0, seed=0)
    assert np.abs(first.theta - mode.theta).max() < 1e-6
    shares = {tuple(one.theta.round(1) + 0.0): one.share for one in (first, *others)}
    expected = {(0.0, 0.0): 0.5, (9.0, 0.0): 0.2, (0.0, 9.0): 0.3}
    assert shares == pytest.approx(expected, rel=0.02)
    assert first.falls(np.array([[3.0, 4.0]]) + first.theta) == pytest.approx(12.5, rel=0.01)
    wide = max(others, key=lambda one: one.share)  # of sd 1.2
    assert wide.falls(wide.theta[None]) == pytest.approx(2.0 * np.log(1.2), rel=0.01)
    # a mode of half a per cent is not worth another sampler
    light = mixture([[0.0], [9.0]], [1.0, 1.0], [0.995, 0.005])
    assert find_modes(light, newton_mode(light, np.zeros(1)), 1.0, seed=0) == []


def test_the_energy_of_trajectories_jumps_with_the_density_alone():
    mode = Mode(np.zeros(1), Diagonal(np.ones(1)))
    starts = np.random.default_rng(0).standard_normal((64, 1))
    share, size = energy_error(as_posterior(JUMP), mode, starts, 1.0, seed=1)
    # trajectories of 1.5 radians cross 0 with a probability of 1.5 / pi
    assert size == pytest.approx(np.log(4.0), abs=0.01)
    assert abs(share - 1.5 / np.pi) < 4.0 * np.sqrt(0.25 / 64)
    for name in ("normal of 50, correlated", "banana"):
        smooth = as_posterior(UNIMODAL[name])
        found = newton_mode(smooth, smooth.start())
        normals = np.random.default_rng(0).standard_normal((64, smooth.n_params))
        starts = found.theta + found.metric.sqrt(normals)
        assert energy_error(smooth, found, starts, 1.0, 0) == (0.0, 0.0)


def test_a_function_that_raises_far_from_its_mode_is_sampled_as_it_was():
    def log_density(x):
        if np.abs(x).max() > 8.0:
            raise np.linalg.LinAlgError("out of range")
        return -0.5 * (x**2).sum(axis=1)

    result = sample(FunctionPosterior(log_density, lambda x: -x, 2), random_state=0)
    assert result.plan.modes == () and result.problems == ()


BOX = FunctionPosterior(
    lambda x: np.where((np.abs(x) < 1.0).all(axis=1), 0.0, -np.inf), lambda x: 0.0 * x, n_params=2
)


# the gradient says nothing of the box's walls, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "metric"),
    [("sgld", None), ("auto", "auto"), ("random_walk", "auto"), slow("parallel_tempering", "auto")],
)
def test_a_uniform_box_is_sampled_without_a_runtime_warning(name, metric):
    # the density is 0 at both ends of the way from some starts: -inf less -inf
    settings = {"preconditioner": metric, "n_draws": 60, "check_gradient": False}
    result = sample(BOX, name, random_state=0, **settings)
    if result.plan.run.sampler.adjusted:
        assert np.abs(result.values).max() < 1.0
    else:  # it follows the gradient alone, which is 0
        outside = (np.abs(result.values) >= 1.0).any(axis=2).mean()
        assert result.undefined[0] == pytest.approx(outside, abs=0.02) and outside > 0.02
        assert any("of the draws, as at theta[0]=" in problem for problem in result.problems)
