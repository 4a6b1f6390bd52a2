"""Chains side by side, in threads or processes: the same draws as of all chains together."""

from dataclasses import replace
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from joblib import delayed

from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.protocol import Facts
from skbayes_sgld.sampling import SAGA, SVRG, ControlVariate, Minibatch, block, threads, workers
from skbayes_sgld.sampling.clipping import NormClip, ValueClip
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.overflow import ChainOverflowError
from tests.references.targets import logistic_posterior, make_run, mode_of

BATCH, P = 8, 5
GRADIENTS = {
    "minibatch": Minibatch(),
    "control variate": ControlVariate(2),
    "svrg": SVRG(period=3),
    "saga": SAGA(),
}


@pytest.fixture
def two_chains_a_group(monkeypatch):
    """Threads of two chains each, or of the walkers that share rows; stretches of three steps."""

    def size(run, n_chains):
        return max(2, run.dynamics.gradient.n_sharing) if run.dynamics.facts.thread_safe else None

    monkeypatch.setattr(threads, "group_size", size)
    monkeypatch.setattr(threads, "_INTERRUPT_NUMBERS", 3 * 5 * BATCH * P)


def run_of(gradient, clip=None):
    posterior = logistic_posterior(101, P - 1)
    mode = mode_of(posterior, posterior.start())
    run = make_run(
        posterior, gradient=gradient, batch_size=BATCH, step_size=1e-3, clip=clip, mode=mode
    )
    return run, mode.theta + 0.01 * np.arange(5)[:, None]


LENGTHS = {"n_draws": 10, "n_burnin": 4, "thin": 2, "seed": 3}


@pytest.mark.parametrize(
    ("gradient", "clip"), [*((name, None) for name in GRADIENTS), ("minibatch", NormClip(2.0))]
)
def test_groups_draw_what_all_chains_draw_together(gradient, clip, two_chains_a_group, monkeypatch):
    run, start = run_of(GRADIENTS[gradient], clip)
    sizes, plain = [], threads.advance_together
    monkeypatch.setattr(
        threads,
        "advance_together",
        lambda run, state, *how: (sizes.append(len(state.streams)), plain(run, state, *how))[1],
    )
    told = []
    got = run_chains(run, start, **LENGTHS, progress=lambda n: told.append(n))
    assert set(sizes) == {1, 2}
    assert len(told) > 3
    assert sum(told) == got.state.step == got.n_steps == 24
    monkeypatch.setattr(threads, "group_size", lambda run, n: None)
    expected = run_chains(run, start, **LENGTHS)
    np.testing.assert_array_equal(got.draws, expected.draws)
    np.testing.assert_array_equal(got.weights, expected.weights)
    np.testing.assert_allclose(got.clipped, expected.clipped)
    assert (expected.clipped.max() > 0) == (clip is not None)
    for name, array in expected.state.sampler_state.items():
        np.testing.assert_array_equal(got.state.sampler_state[name], array)


class _Sized:
    """A run, as far as its groups depend on it."""

    def __init__(self, numbers, dense, n_sharing=1):
        self.batch_size, self.dynamics = numbers, self
        self.gradient = SimpleNamespace(n_sharing=n_sharing)
        self.posterior, self.facts = SimpleNamespace(n_params=1), Facts(thread_safe=True)
        self.metric = SimpleNamespace(diagonal=None if dense else np.ones(1))


@pytest.mark.parametrize(
    ("n_chains", "numbers", "dense", "n_sharing", "n_cores", "expected"),
    [
        (4, 2**10, False, 1, 2, None),  # all rows of a step stay in cache
        (4, 2**16, False, 1, 2, 2),
        (5, 2**16, False, 1, 2, 3),
        (4, 2**16, True, 1, 2, None),  # a product with the metric would be padded
        (64, 2**16, True, 1, 2, 8),  # as many as stay in cache
        (64, 2**16, True, 16, 2, 32),  # which are more where walkers share the rows
        (64, 2**20, True, 16, 2, 16),  # and never a part of those that do
        (16, 2**14, False, 1, 64, 2),  # a thread has enough to do
        (4, 2**16, False, 1, 1, None),
        (64, 2**11, False, 1, 2, None),  # of so short steps threads wait for each other
    ],
)
def test_groups_have_the_size_that_cache_metric_and_cores_ask_for(
    n_chains, numbers, dense, n_sharing, n_cores, expected, monkeypatch
):
    monkeypatch.setattr(threads, "cpu_count", lambda: n_cores)
    assert threads.group_size(_Sized(numbers, dense, n_sharing), n_chains) == expected


def test_a_chains_walkers_share_its_rows_and_depend_on_no_other_chain(two_chains_a_group):
    run, start = run_of(ControlVariate(2))
    run.dynamics = run.dynamics.for_walkers(4, share=True)
    start = start[0] + 0.01 * np.arange(8)[:, None]
    both = run_chains(run, start, **LENGTHS)
    assert len(np.unique(both.draws[:, -1, 0])) == 8
    for first in (0, 4):
        alone = run_chains(run, start[first : first + 4], first_chain=first, **LENGTHS)
        np.testing.assert_array_equal(alone.draws, both.draws[first : first + 4])
    end = both.state
    drawn = block.draw_block(run, run.dynamics, end.sampler_state, end.streams, end.step, 3)
    assert drawn.idx.shape == (3, 2, BATCH)
    part = run_chains(run, start, n_draws=3, seed=3)
    rest = run_chains(run, part.state, n_draws=4, block_size=2)
    whole = run_chains(run, start, n_draws=7, seed=3)
    np.testing.assert_array_equal(rest.draws, whole.draws[:, 3:])


def test_a_run_in_groups_goes_on_from_where_it_ended_as_often_as_asked(two_chains_a_group):
    run, start = run_of(Minibatch())
    whole = run_chains(run, start, n_draws=20, seed=3).draws
    none = run_chains(run, start, n_draws=0, seed=3)  # as a fit with max_time begins
    part = run_chains(run, start, **LENGTHS, progress=lambda n: True)
    assert none.n_steps == 0 < part.n_steps == part.state.step < 24
    for begun in (none, part, part):
        rest = run_chains(run, begun.state, n_draws=20 - begun.n_steps)
        np.testing.assert_array_equal(rest.draws, whole[:, begun.n_steps :])


def test_each_chain_keeps_a_metric_and_a_bound_of_its_own(two_chains_a_group, monkeypatch):
    run, start = run_of(Minibatch())
    own = np.linspace(1.0, 3.0, 5 * P).reshape(5, P)
    run.dynamics = replace(run.dynamics, metric=Diagonal(own), clip=ValueClip(own))
    got = run_chains(run, start, **LENGTHS)
    monkeypatch.setattr(threads, "group_size", lambda run, n: None)
    np.testing.assert_array_equal(got.draws, run_chains(run, start, **LENGTHS).draws)


def test_an_overflow_in_a_group_names_the_earliest_step_and_the_number_of_the_chain(
    two_chains_a_group,
):
    run, start = run_of(Minibatch())
    start[4], start[3] = 1e300, 1e290
    run.step_size = 100.0
    with pytest.raises(ChainOverflowError) as error:
        run_chains(run, start, **LENGTHS)
    assert error.value.chain == 4


def test_a_users_posterior_is_not_called_by_two_threads(two_chains_a_group):
    class Own(GLMPosterior):
        facts = Facts(thread_safe=False)

    own = logistic_posterior(101, P - 1)
    own.__class__ = Own
    run = make_run(own, gradient=Minibatch(), batch_size=BATCH, step_size=1e-3)
    told = []
    run_chains(run, np.zeros((5, P)), n_draws=24, progress=lambda n: told.append(n))
    assert told == [24]


def test_an_interrupt_while_joblib_ends_leaves_its_threads_usable(monkeypatch):
    def interrupted(self):
        monkeypatch.undo()
        raise KeyboardInterrupt

    with joblib.parallel_config(backend="threading"):
        monkeypatch.setattr(ThreadPool, "terminate", interrupted)
        calls = [delayed(abs)(-1)] * 4
        with pytest.raises(KeyboardInterrupt), workers.Processes(2).open(2) as share:
            share(calls)
        with workers.Processes(2).open(2) as share:
            assert share(calls) == [1, 1, 1, 1]
