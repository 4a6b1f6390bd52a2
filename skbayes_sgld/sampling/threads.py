"""Steps of long runs in threads: each advances a group of the chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, lcm
from typing import Any

from skbayes_sgld._linalg import GROUP, cpu_count, in_threads
from skbayes_sgld.sampling.run import Chains, Run, RunState, StepCounts, join_parts
from skbayes_sgld.sampling.steps import advance_together
from skbayes_sgld.sampling.workers import side_by_side

_INTERRUPT_NUMBERS = 2**28  # numbers of X that threads read before they look for an interrupt


def advance(
    run: Run,
    state: RunState,
    steps: StepCounts,
    block_size: int | None = None,
    progress: Callable[[int], bool] | None = None,
) -> Chains:
    """Make ``steps``, in threads if steps are long; arrays and streams advance."""
    n_chains, parts = len(state.streams), list[Chains]()
    size = group_size(run, n_chains)
    if size is None or not steps.n_steps:
        return advance_together(run, state, steps, block_size, progress)
    edges, numbers = [*range(0, n_chains, size), n_chains], n_chains * _numbers(run)
    n_steps = max(1, run.dynamics.gradient.n_sharing * _INTERRUPT_NUMBERS // numbers)
    while steps.n_steps:
        now, steps = steps.cut(n_steps)
        part = side_by_side(_in_threads, advance_together, run, state, edges, now, block_size)
        parts.append(part)
        state = part.state
        if progress is not None and progress(now.n_steps):
            break
    return join_parts(parts)


def _in_threads(calls: Iterable[Any]) -> list[Any]:
    """Results of joblib's delayed calls, computed in threads of this process."""
    return in_threads(lambda call: call[0](*call[1], **call[2]), list(calls))


def _numbers(run: Run) -> int:
    """Numbers of X that a chain reads in a step on a batch, approximately."""
    return (run.batch_size or 0) * run.dynamics.posterior.n_params


def group_size(run: Run, n_chains: int) -> int | None:
    """Number of chains that a thread advances; None: this thread advances all of them.

    On two cores threads halve the time of long steps (1,000 rows of 100 columns).
    """
    numbers, n_sharing = _numbers(run), run.dynamics.gradient.n_sharing
    stays_in_cache = n_chains * numbers <= 2**16
    if stays_in_cache or numbers < 2**12 or cpu_count() == 1 or not run.dynamics.facts.thread_safe:
        return None
    # as many chains as fit in the cache, and enough that threads do not wait for the interpreter
    most = min(ceil(n_chains / cpu_count()), n_sharing * 2**19 / numbers)
    size = max(most, 2**15 / numbers)
    # products with a dense metric, or with rows that walkers share, take several chains at once
    multiple = GROUP if run.dynamics.metric.diagonal is None else 1
    multiple = lcm(multiple, n_sharing)
    n_groups = ceil(n_chains / (multiple * max(1, int(size / multiple))))
    even = multiple * ceil(n_chains / n_groups / multiple)  # the last group may be smaller
    return even if even < n_chains else None
