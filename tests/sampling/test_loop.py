"""The runner: what a chain draws depends on the seed and on its own number, and on nothing else."""

import numpy as np
import pytest
from joblib import parallel_config

from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Reported
from skbayes_sgld.sampling import (
    SAGA,
    SGLD,
    SVRG,
    ControlVariate,
    Full,
    Minibatch,
    Polynomial,
    workers,
)
from skbayes_sgld.sampling.loop import run_chains, run_parts
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import StepCounts
from tests.references.targets import (
    NormalMean,
    make_run,
    posterior_of,
    run_at_mode,
)
from tests.sharing import share_after

CASES = {  # likelihood, gradient, batch size and further settings
    "logistic, all rows": (Bernoulli(), Full(), None, {}),
    "logistic, corrected draws": (Bernoulli(), Full(), None, {"curvature": 0.8}),
    "logistic, minibatch": (Bernoulli(), Minibatch(), 8, {}),
    "logistic, no replacement": (Bernoulli(), Minibatch(replacement=False), 8, {}),
    "logistic, control variate": (Bernoulli(), ControlVariate(2), 8, {}),
    "logistic, SAGA": (Bernoulli(), SAGA(), 8, {}),
    "softmax, control variate": (Categorical(3), ControlVariate(1), 8, {}),
    "linear, all rows": (NormalNoise(), Full(), None, {}),
    "linear, SVRG": (NormalNoise(), SVRG(period=3), 8, {}),
    "Adam": (Bernoulli(), Minibatch(), 8, {"schedule": Polynomial()}),
}
LENGTHS = {"n_draws": 40, "n_burnin": 5, "thin": 2, "seed": 9}


@pytest.fixture(params=CASES, scope="module")
def case(request):
    likelihood, gradient, batch_size, more = CASES[request.param]
    posterior = posterior_of(likelihood, 101, 7, intercept_at_mean=True)
    settings = {"sampler": SGLD(), "gradient": gradient, "step_size": 0.2} | more
    if request.param == "Adam":
        from skbayes_sgld.optimizers import Adam

        settings["sampler"] = Adam()
    curvature = settings.pop("curvature", None)
    run, mode = run_at_mode(posterior, batch_size=batch_size, **settings)
    run.dynamics.curvature = curvature
    start = mode.theta + 0.01 * np.arange(8)[:, None]
    return run, start, run_chains(run, start, **LENGTHS)


@pytest.mark.parametrize(
    ("chains", "how"),
    [
        *((slice(n), {}) for n in (1, 3)),
        *((slice(8), {"block_size": size}) for size in (1, 7, 1000)),
        (slice(3, 5), {"first_chain": 3}),
    ],
    ids=str,
)
def test_a_chain_depends_neither_on_the_others_nor_on_the_block_size(case, chains, how):
    run, start, expected = case
    got = run_chains(run, start[chains], **LENGTHS, **how).draws
    np.testing.assert_array_equal(got, expected.draws[chains])


def test_a_chain_does_not_depend_on_the_number_of_processes(case, monkeypatch):
    run, start, alone = case
    share_after(0.0, monkeypatch)
    told = []
    with parallel_config(backend="threading"):
        shared = run_chains(run, start, **LENGTHS, n_jobs=2, progress=told.append)
    np.testing.assert_array_equal(shared.draws, alone.draws)
    np.testing.assert_array_equal(shared.weights, alone.weights)
    np.testing.assert_allclose(shared.clipped, alone.clipped)
    assert shared.state.step == alone.state.step == sum(told)
    assert len(told) > 10  # a bar advances


def test_a_run_resumes_as_if_it_had_never_stopped(case, monkeypatch):
    run, start, expected = case
    first = run_chains(run, start, n_draws=13, n_burnin=5, thin=2, seed=9)
    second = run_chains(run, first.state, n_draws=27, thin=2)
    draws = np.concatenate([first.draws, second.draws], axis=1)
    np.testing.assert_array_equal(draws, expected.draws)
    np.testing.assert_array_equal(np.r_[first.weights, second.weights], expected.weights)
    # and the state that it resumed from can be resumed from again
    share_after(0.0, monkeypatch)
    with parallel_config(backend="threading"):
        again = run_chains(run, first.state, n_draws=27, thin=2, n_jobs=2)
    np.testing.assert_array_equal(again.draws, second.draws)


def test_processes_are_not_started_for_a_run_that_is_short(monkeypatch):
    run, start = make_run(NormalMean(), step_size=0.01), np.zeros((4, 1))
    expected = run_chains(run, start, n_draws=4000).draws
    monkeypatch.setattr(workers, "Parallel", None)  # a call would raise
    np.testing.assert_array_equal(run_chains(run, start, n_draws=4000, n_jobs=2).draws, expected)


@pytest.mark.parametrize("lengths", [(1, 3, 7), (7, 50, 3)])
def test_stretches_are_the_whole_run(lengths):
    whole = rest = StepCounts(*lengths)
    n_burnin = n_draws = 0
    for _ in range(20):
        steps, rest = rest.cut(-(-whole.n_steps // 20))
        assert steps.n_steps > 0 or not rest.n_steps  # to the end of a draw
        assert steps.n_burnin == 0 or not n_draws  # none after the first draw
        n_burnin, n_draws = n_burnin + steps.n_burnin, n_draws + steps.n_draws
    assert (n_burnin, n_draws) == lengths[:2]


def test_other_seeds_draw_other_numbers():
    run, start = make_run(NormalMean(), step_size=0.01), np.zeros((2, 1))
    draws = [run_chains(run, start, n_draws=40, seed=seed).draws for seed in (9, 10)]
    assert not np.any(draws[0] == draws[1])


@pytest.mark.parametrize("block_size", [1, 1000])
def test_an_overflow_names_the_step_at_which_it_happened(block_size):
    target = NormalMean()
    run = make_run(target, step_size=30.0 / target.precision)
    start = np.array([[target.y.mean()], [1e300]])
    with pytest.raises(ChainOverflowError) as error:
        run_chains(run, start, n_draws=400, seed=0, block_size=block_size)
    # |theta| grows by a factor of 29 a step
    steps = int(np.ceil(np.log(np.finfo(float).max / 1e300) / np.log(29)))
    assert (error.value.chain, error.value.parameter) == (1, 0)
    assert abs(error.value.step - (steps - 1)) <= 1


@pytest.mark.parametrize("block_size", [3, 1000])
def test_burnin_and_thinning_keep_the_draws_they_say_and_their_step_sizes(block_size):
    schedule = Polynomial()
    run = make_run(NormalMean(), schedule=schedule, step_size=0.01)
    start = np.zeros((2, 1))
    every = run_chains(run, start, n_draws=30).draws
    kept = run_chains(run, start, n_draws=6, n_burnin=3, thin=4, block_size=block_size)
    np.testing.assert_array_equal(kept.draws, every[:, 6:27:4])
    np.testing.assert_allclose(kept.weights, 0.01 * schedule(6 + 4 * np.arange(6)), rtol=1e-14)


def test_parts_of_a_run_become_twice_as_long_while_there_is_time():
    run = make_run(NormalMean(), step_size=0.01)
    parts = run_parts(run, np.zeros((1, 1)), StepCounts(0, 50, 2), seconds=1e9)
    assert [part.n_steps for part in parts] == [2, 4, 8, 16, 32, 38]


class Climbing(BasePosterior):
    """One parameter, reported as exp(theta), and a slope that never ends."""

    n_params, param_names = 1, ["log_s"]

    def log_density(self, theta):
        return 100.0 * theta[:, 0]

    def grad(self, theta):
        return np.full_like(theta, 100.0)

    @property
    def reported(self):
        return Reported(["s"], np.exp, np.log)


@pytest.mark.parametrize("block_size", [1, 7, 1000])
def test_a_parameter_beyond_its_range_is_found_at_the_same_step_whatever_the_block(block_size):
    run = make_run(Climbing(), step_size=1.0)
    with pytest.raises(ChainOverflowError) as caught:  # exp(709) from the eighth step on
        run_chains(run, np.zeros((1, 1)), n_draws=200, block_size=block_size)
    assert caught.value.step == 49
