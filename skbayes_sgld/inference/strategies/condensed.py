"""Many rows of which few matter: chains follow these, and an expansion of the others.

With nearly separated classes, a rare class or outlying rows, steps without rejections are biased,
and trajectories on all rows are expensive. With counts whose dispersion may be 0, batches without
visible noise have many rows. But most rows have a log likelihood that is quadratic
over the posterior, up to a small remainder: their sum is one expansion. Rows are drawn in
proportion to their remainders, and stand for those of all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.few_rows import (
    MOST_SHARE,
    by_averages,
    chance_error,
    drawn_rows,
    few_rows_matter,
    n_averaged,
)
from skbayes_sgld.inference.planning.plans import draft
from skbayes_sgld.inference.planning.rows_read import all_rows
from skbayes_sgld.inference.planning.stand_in import error_of, exact_density, normal_moves
from skbayes_sgld.inference.planning.task import Finding, Task
from skbayes_sgld.inference.strategies.accept_reject import (
    adapt_run,
    draft_adjusted,
    finish_adapted,
)
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.inference.strategies.langevin import plan_steps
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.condensed import CondensedPosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.base import Map
from skbayes_sgld.sampling.samplers import HMC, SGLD
from skbayes_sgld.sampling.tuning.mode import Center

# Error of a mean, in sds, or of an sd, relative, that is aimed at, and the largest that a pilot may
# find. An error of the log density with an sd of 0.1 makes one of 0.03 by chance
_AIM, _LIMIT = 0.025, 0.04
_AIM_OF_STEPS = 0.015  # that of steps which all rows have without visible bias
_FEWEST = 250  # rows that are tried first
# Sd of a log density's error, if most rows are drawn independently, from which none are tried. It
# was 0.001 to 0.09 where few enough rows mattered, and 0.4 for 20,000 rows of 600 columns: that
# fit takes 0.6 s less without the trial. Draws at equal distances make half of the error
_HOPELESS = 0.3
_FAR = "the log density is far from a normal one"
_MOVES, _TESTS = 8, 64  # draws at which remainders are measured, and at which the error is


class Condensed(Strategy):
    """SGLD or HMC on the rows that matter and an expansion of the others."""

    only = ("condensable",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether Langevin steps are biased or read many rows, and no rows are asked for."""
        left = task.settings.all_left_to_tuning
        return left and (task.finding is not None or task.rows_read is not None)

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan of steps or trajectories on the rows that matter, if they are few."""
        posterior, center = task.posterior, Center(task.mode.theta, task.mode.metric)
        tau = task.settings.tau
        assert isinstance(posterior, GLMPosterior)
        choices = {k: v for k, v in task.choices.items() if k not in ("gradient", "batch_size")}

        @cache  # a later seed belongs to a later centre
        def remainders(seed: int) -> Array:
            return _remainders(posterior, center, tau, seed) / tau

        if task.finding is None:
            on_all = task.rows_read is not None and task.rows_read.noise is None
            if on_all and _is_far_from_normal(remainders(task.seed), posterior.n_params):
                task = task.found(finding=Finding(f"{SGLD()}: {_FAR}"), rows_read=None)
            else:
                outcome = _steps(replace(task, choices=choices), center)
                if outcome is None or isinstance(outcome, Plan):
                    return outcome or task
                task = task.found(finding=outcome.finding)
        assert task.finding is not None
        always = np.zeros(0, int) if task.rows_read is None else task.rows_read.posterior.always
        # the next times about the pilot's centre, since rows far from the mode may matter
        for number in range(3):
            seed = task.seed + number
            few = condensed(posterior, center, tau, seed, remainders(seed), always)
            if few is None:
                break
            inner = replace(task, posterior=few, choices=choices)
            found = trajectories(inner, center, posterior, few.n_samples)
            if isinstance(found, Plan):
                return found
            center = found
        return task


def trajectories(task: Task, center: Center, posterior: Any, n_few: int) -> Plan | Center:
    """Plan of HMC on a task's few rows, which stand for all rows of a posterior.

    The pilot's centre is returned if it finds that they do not.
    """
    assert task.finding is not None
    tau = task.settings.tau
    run, rows_read = draft_adjusted(task, HMC())
    tuned = adapt_run(task, run, center, task.finding.why)
    center, theta = tuned.found.center, tuned.found.ends
    if len(theta) < _TESTS:
        theta = center.theta + normal_moves(center, tau, task.seed, _MOVES, _TESTS)
    with np.errstate(all="ignore"):
        exact = exact_density(posterior, theta)
        off = error_of(task.posterior, theta, exact, tau, np.ones(len(theta)))
    if off >= _LIMIT:
        return center
    why = few_rows_matter(n_few, posterior.n_samples, off)
    plan = finish_adapted(task, rows_read.because(why), tuned)
    return replace(plan, posterior=posterior, bias=(off, 0.0))


def _is_far_from_normal(remainders: Array, n_params: int) -> bool:
    """Whether the log density differs so much from a normal one that steps of SGLD are biased.

    At most moves it differs by more than the square root of the number of parameters: by one nat
    in the direction of each. Their pilot, which finds this too, takes a second for seven classes of
    21,634 rows.
    """
    terms = np.square(remainders.sum(axis=1)).reshape(-1, 2).sum(axis=1)  # of both orders
    return bool(np.median(terms) > n_params)


def _steps(task: Task, center: Center) -> Plan | Task | None:
    """Plan of SGLD on the rows that matter; the task with a finding, or None if they are many.

    Where such steps have no visible bias, normal draws are those of the posterior, over which
    expansions with averages leave less than those at the mode: of 4,360 nearly Poisson counts 250
    to 500 rows are then enough, in place of 2,000.
    """
    posterior: Any = task.posterior
    found = averaged_rows(posterior, center, task.settings.tau, task.seed)
    if found is None:
        return None
    few, off = found
    inner = replace(task, posterior=few)
    rows_read = all_rows(few_rows_matter(few.n_samples, posterior.n_samples, off), few, task.mode)
    outcome = plan_steps(inner, draft(inner, SGLD(), rows_read, task.mode), rows_read)
    if isinstance(outcome, Task):
        return outcome
    size, doubt = outcome.bias
    return replace(outcome, posterior=posterior, bias=(size + off, doubt))


def averaged_rows(
    posterior: GLMPosterior, center: Center, tau: float, seed: int, map_: Map | None = None
) -> tuple[CondensedPosterior, float] | None:
    """Posterior by few rows and expansions with averages over normal draws, and its error.

    ``map_`` takes the draws to the posterior's parameters; None leaves them. None is returned if
    too many rows matter.
    """
    n_pairs = n_averaged(posterior.n_samples) // 2
    moves = normal_moves(center, tau, seed, _MOVES, n_pairs + _TESTS)
    draws = center.theta + np.concatenate([moves[:n_pairs], -moves[:n_pairs]])
    tests = center.theta + moves[n_pairs:]
    if map_ is not None:
        draws, tests = map_.forward(draws), map_.forward(tests)
    none = np.empty(0, int)
    return by_averages(posterior, draws, tests, tau, seed, _AIM_OF_STEPS, _FEWEST, none)


def condensed(
    posterior: GLMPosterior,
    center: Center,
    tau: float,
    seed: int,
    remainders: Array,
    always: Array,
) -> CondensedPosterior | None:
    """Posterior by the rows that matter; None if they are too many.

    Rows are drawn with probabilities in proportion to their remainders, at most 1, and in an order
    in which neighbours have similar remainders, at equal distances. Their number is doubled until
    the error is small enough. Rows ``always`` have a weight of 1: where the posterior of a rare
    level has heavy tails, their remainders at normal moves are too small.
    """
    if not np.isfinite(remainders).all():
        return None
    size = np.sqrt(np.square(remainders).mean(axis=0))
    if chance_error(size, int(MOST_SHARE * len(size))) > _HOPELESS:
        return None
    order = np.argsort(_likeness(remainders, size))
    theta = center.theta + normal_moves(center, tau, seed, _MOVES, _TESTS)
    with one_blas_thread(), np.errstate(all="ignore"):
        expansion, exact = (
            posterior.expand_likelihood(center.theta),
            exact_density(posterior, theta),
        )
        # a draw of the normal distribution may be beyond all of the posterior
        level = (
            exact / tau
            + 0.5 * np.square(center.metric.whiten(theta - center.theta)).sum(axis=1) / tau
        )
        weight = np.exp(np.minimum(level - np.median(level), 0.0))
    n_rows = _FEWEST
    while n_rows <= MOST_SHARE * len(size):
        drawn = drawn_rows(size, order, always, n_rows, seed)
        few = CondensedPosterior(posterior, *drawn, expansion)
        n_rows *= 2
        is_last = n_rows > MOST_SHARE * len(size)
        if error_of(few, theta, exact, tau, weight) < (_LIMIT if is_last else _AIM):
            return few
    return None


def _remainders(posterior: GLMPosterior, center: Center, tau: float, seed: int) -> Array:
    """Remainders ``(2 n_moves, n)`` of the rows at moves from the centre.

    They are the cubic and the quartic term, from differences of the log likelihood at moves of both
    signs and half the length.
    """
    found = np.empty((2 * _MOVES, posterior.n_samples))
    with one_blas_thread(), np.errstate(all="ignore"):
        (at_center,) = posterior.log_likelihood(center.theta[None])
        for number, move in enumerate(normal_moves(center, tau, seed, 0, _MOVES)):
            steps = np.outer([1.0, -1.0, 0.5, -0.5], move)
            ahead, back, near, near_back = posterior.log_likelihood(center.theta + steps)
            # of each term, three quarters are left
            found[2 * number] = (0.5 * (ahead - back) - (near - near_back)) / 0.75
            even = 0.5 * (ahead + back) - 2.0 * (near + near_back) + 3.0 * at_center
            found[2 * number + 1] = even / 0.75
    return found


def _likeness(remainders: Array, size: Array) -> Array:
    """Coordinate ``(n,)`` in which rows whose remainders are alike are neighbours."""
    shapes = remainders / np.maximum(size, 1e-300)
    vectors = np.linalg.eigh((remainders * size) @ remainders.T)[1]
    return vectors[:, -1] @ shapes
