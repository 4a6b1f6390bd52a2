"""Many columns and many rows a column: a nearly normal posterior, and steps on small batches.

With many rows a column, the posterior is a normal distribution up to a small rest. Its mean and
covariance follow from averages of each row's score and curvature over the posterior. These averages
are also the control variates, so that a batch has little noise. The covariance of that noise is
known, and steps inject as much less. On 20,000 rows of 600 columns, batches of 290 rows are as
exact as batches of 3,700 rows under the plan of :class:`Langevin`: a fit takes a third of the time.

No pilot runs. The log ratio of the posterior to the normal distribution, at a few draws, bounds the
error of the normal distribution's moments. Steps of size 1 are right to a higher order: their draws
have the posterior's mean and covariance to second order in the log ratio.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._linalg import largest_eigenvalue_of, one_blas_thread
from skbayes_sgld._random import start_normals
from skbayes_sgld._timings import stage
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.planning.lengths import usual_lengths
from skbayes_sgld.inference.planning.plans import chosen, draft, finish
from skbayes_sgld.inference.planning.rows_read import RowsRead
from skbayes_sgld.inference.planning.starts import choose_start
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.strategies.base import Strategy
from skbayes_sgld.posterior.averaged import (
    AveragedRows,
    averaged_rows,
    predictor_variances,
    squared_rests,
)
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.propriety import check_mode
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.row_sum import RowSum
from skbayes_sgld.sampling.compensated import Compensated
from skbayes_sgld.sampling.gradients import ControlVariate
from skbayes_sgld.sampling.gradients.about_mean import AboutMean
from skbayes_sgld.sampling.gradients.control_variate import expand_all_rows
from skbayes_sgld.sampling.metric import Dense, Metric
from skbayes_sgld.sampling.samplers import SGLD
from skbayes_sgld.sampling.tuning import pilots
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, affordable
from skbayes_sgld.sampling.tuning.leverage import phrase_of
from skbayes_sgld.sampling.tuning.mode import Mode, climb_whitened
from skbayes_sgld.sampling.tuning.noise import NoiseLevel

# Largest share of a variance that is the noise of batches. With 0.25, chains of 20,000 rows of 600
# columns left the posterior: the noise grows with the fourth power of the distance from its mean
_MOST_NOISE = 0.1
_UNKNOWN = 0.02  # share of that noise that is not known
# Share of that noise in the variance of draws: at a step of 1 SGLD's correction by 1/9 of the
# difference of two gradients takes (8/9)^2 of the last one's noise, and (1/9)^2 of the next
_IN_DRAWS = 65 / 81
_MOST_STEPS, _MOST_CLIMBS = 8, 100  # steps to a mean, and of a climb
_MOST_PASSES = 4  # of averages over all rows
_STEEPEST = 0.3  # largest slope, in whitened coordinates, at which a climb ends
_PROBES = 32  # draws that measure the variances of predictors
_DRAWS = 32  # draws at which the normal distribution is compared with the posterior
# Largest bound on the error of the normal distribution's moments. With 0.05 (5,000 rows of 300
# columns, 20,000 of 900), errors of the steps' means and sds were below 0.3 % of an sd
_MOST_ERROR = 0.06
_MANY = 2.0  # rows, relative to P^2, beyond which steps are cheap beside passes over the rows
_FEWEST = 32  # rows of the smallest batch
# Longest step, in sds, that one row of a batch makes, and largest change of one parameter: rows
# beyond are always read. With 8,000 rows of 66 log-normal columns, draws had a kurtosis of 3.1, and
# of 39 if only steps of more than half an sd were excluded
_LONGEST, _LONGEST_IN_ONE = 1.0, 0.15
_MOST_LOOKED_AT = 2000  # rows of the longest steps, whose changes of each parameter are computed
_MOST_COLLINEAR = 1e4  # largest variance of a coefficient, relative to that given the others


class NearlyNormal(Strategy):
    """SGLD on small batches whose noise is known, about the posterior's mean."""

    only = ("likely_normal",)

    @classmethod
    def suits(cls, task: Task) -> bool:
        """Whether the prior is normal, and all is left to the tuning, at a temperature of 1."""
        posterior: Any = task.posterior
        settings = task.settings
        left = settings.all_left_to_tuning and settings.tau == 1.0
        if not (left and task.finding is None and posterior.linear_prior.normal):
            return False
        return bool(posterior.rounded() is not posterior)

    @classmethod
    def plan(cls, task: Task) -> Plan | Task:
        """Plan with steps of size 1; or the task, if the posterior is not nearly normal."""
        posterior: Any = task.posterior
        rounded = posterior.rounded()
        rows = rounded.row_sum(np.float32).for_few_passes()
        lost = np.linalg.LinAlgError  # a curvature that is not positive definite
        with one_blas_thread(), np.errstate(all="ignore"), suppress(lost):
            near = _near(rounded, rows, _probes(task.seed, posterior.n_params))
            if near is None:
                return task
            check_mode(posterior, near.theta)
            errors = _errors(rounded, rows, near, task.seed)
            if errors[0] < _MOST_ERROR:
                found = _sampled(rows, near)
                return task if found is None else _planned(task, rounded, near, found, *errors)
        return task


class Near(NamedTuple):
    """Normal distribution near a posterior, about the averages of its rows at a point close by.

    Attributes
    ----------
    theta : ndarray of shape (P,)
        Mean of the distribution.
    metric : Dense
        Its covariance.
    rows : AveragedRows
        Averages of the rows, about the point of the expansion.
    expansion : Expansion
        Expansion of the log likelihood with these averages.
    """

    theta: Array
    metric: Dense
    rows: AveragedRows
    expansion: Expansion


class Sampled(NamedTuple):
    """How batches estimate what the expansion leaves.

    Attributes
    ----------
    always : ndarray of bool of shape (n,)
        Whether every batch reads a row.
    size : int
        Rows of a batch, besides.
    noise : ndarray of shape (P, P)
        Covariance of the noise of a batch of one row, in the coordinates of the metric.
    """

    always: Array
    size: int
    noise: Array


@stage("mode")
def _near(posterior: Any, rows: RowSum, moves: Array) -> Near | None:
    """Normal distribution near the posterior; None if the averages do not lead to one.

    ``rows`` is the sum over its rows, and ``moves (k, P)`` are normal.
    """
    P = posterior.n_params
    subset = posterior.subset(slice(None, None, max(1, posterior.n_samples // (10 * P))))
    theta = posterior.start()
    metric = Dense.from_curvature(subset.expand(theta).curvature)
    climb = partial(climb_whitened, partial(_value_and_grad, posterior, rows), theta, metric)
    whitened = climb(np.zeros(P), maxiter=_MOST_CLIMBS, gtol=_STEEPEST)
    theta = theta + metric.sqrt(whitened[None])[0]
    metric = Dense.from_curvature(subset.expand(theta).curvature)
    variance = predictor_variances(rows, metric.sqrt(moves))
    theta = _settled(posterior, rows, theta, variance, metric, 0.01 * P)
    for _ in range(_MOST_PASSES):
        averages = averaged_rows(rows, theta, variance)
        grad, H = rows.pullback(averages.score[None]), rows.gram(averages.curvature)
        expansion = Expansion(theta, grad, H, averages.expansion)
        H = posterior.with_prior_part(expansion).curvature
        metric = Dense.from_curvature(H)
        # a column that is so nearly a combination of the others is lost in single precision
        if np.max(np.diagonal(H) * np.square(metric.marginal_sd)) > _MOST_COLLINEAR:
            return None
        variance = predictor_variances(rows, metric.sqrt(moves))
        theta = _settled(posterior, rows, theta, variance, metric, 0.01)
        move = theta - expansion.theta
        if move @ H @ move < 0.02 * P:
            return Near(theta, metric, averages._replace(variance=variance), expansion)
    return None


@stage("pilots")
def _sampled(rows: RowSum, near: Near) -> Sampled | None:
    """Rows of a batch and their noise; None if they are many."""
    n = rows.design.shape[0]
    square = squared_rests(rows, near.theta, near.rows.variance, near.expansion.of_rows)
    # length in sds of the step that a row of a batch of one makes, and in its largest coordinate
    length, largest = n * np.sqrt(square * near.rows.variance), np.zeros(n)
    some = np.argsort(-length)[:_MOST_LOOKED_AT]
    metric = near.metric.rounded().in_groups_of(None)
    moves = metric.scale(rows.design.rows(some))
    share = np.abs(moves / near.metric.marginal_sd).max(axis=1)
    largest[some] = share * length[some] / np.sqrt(near.rows.variance[some])
    reach, size = np.maximum(length / _LONGEST, largest / _LONGEST_IN_ONE), _FEWEST
    while np.count_nonzero(reach > size) > size // 4:
        size += size // 4
    if 4 * size > n:
        return None
    always = reach > size
    square[always] = 0.0
    n_drawn = n - np.count_nonzero(always)
    noise = metric.sqrt_t(metric.sqrt_t(rows.gram(square)).T) * n_drawn
    most = largest_eigenvalue_of(lambda z: noise @ z, len(noise))
    size = max(size, int(np.ceil(most / _MOST_NOISE)))
    return None if 4 * size > n else Sampled(always, size, noise)


def _probes(seed: int, P: int) -> Array:
    """Normal moves ``(_PROBES, P)`` whose products have a mean of the identity."""
    normals = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + _PROBES), P)
    return normals / np.sqrt(_PROBES)


@stage("pilots")
def _errors(posterior: Any, rows: RowSum, near: Near, seed: int) -> tuple[float, float]:
    """Bounds on the errors of means, in sds, and sds, relative: of the normal, and of the steps.

    With phi the log ratio of the posterior to the normal distribution and r its gradient, in
    whitened coordinates, errors of the normal distribution's moments are its means of ``phi r`` and
    of ``phi r z / 2``, to second order: at most the sd of phi times the largest root mean square of
    r. Errors of steps of size 1 are of an order higher: there is a further factor r.
    """
    normals = start_normals(seed, range(FIRST_CHAIN, FIRST_CHAIN + _DRAWS), near.theta.size)
    value, grad = _value_and_grad(posterior, rows, near.theta + near.metric.sqrt(normals))
    phi = value + 0.5 * np.square(normals).sum(axis=1)
    rest = near.metric.sqrt_t(grad) + normals
    largest = float(np.sqrt(np.square(rest).mean(axis=0).max()))
    return float(phi.std()) * largest, float(phi.std()) * largest**2


def _value_and_grad(posterior: Any, rows: RowSum, theta: Array) -> tuple[Array, Array]:
    """Log density ``(C,)`` and its gradient ``(C, P)``, by few passes over the rows."""
    value, grad = rows.value_and_grad(theta, group=None)
    return value + posterior.log_prior(theta), grad + posterior.grad_log_prior(theta)


def _settled(
    posterior: Any, rows: RowSum, theta: Array, variance: Array, metric: Metric, near: float
) -> Array:
    """Point at which the averaged gradient is 0, to a squared distance in sds if steps reach it."""
    best, last = theta, np.inf
    for _ in range(_MOST_STEPS):
        score = averaged_rows(rows, theta, variance).score
        slope = rows.pullback(score[None]) + posterior.grad_log_prior(theta[None])[0]
        force = metric.sqrt_t(slope[None])
        distance = float(np.square(force).sum())
        if not distance < last:
            return best
        best, last = theta, distance
        theta = theta + metric.sqrt(force)[0]
        if distance < near:
            break
    return theta


def _about_mean(posterior: Any, near: Near, always: Array) -> AboutMean:
    """Gradient about the mean of the normal distribution."""
    at = near.expansion
    force = near.metric.sqrt_t((at.grad + posterior.grad_log_prior(at.theta[None])[0])[None])
    return AboutMean(
        posterior,
        expansion=at,
        rows=expand_all_rows(posterior, at),
        mean=at.theta + near.metric.sqrt(force)[0],
        drawn=np.flatnonzero(~always),
        always=np.flatnonzero(always),
    )


def _planned(
    task: Task, rounded: Any, near: Near, found: Sampled, of_normal: float, of_steps: float
) -> Plan | Task:
    """Plan of steps on batches; or the task, if they overflow from far out.

    ``rounded`` is the posterior with gradients in single precision.
    """
    posterior, mode = task.posterior, Mode(near.theta, near.metric, near.expansion)
    noise = NoiseLevel(_UNKNOWN * _MOST_NOISE * found.size)
    gradient = _about_mean(rounded, near, found.always)
    for size in (found.size, 2 * found.size, 4 * found.size):
        why = f"batches of {size:,} add noise that is known, and left out of that of the steps"
        why += phrase_of(len(gradient.always))
        choices = {"gradient": Choice(ControlVariate(), why), "batch_size": Choice(size, why)}
        run = draft(task, SGLD(), RowsRead(choices, posterior, mode, noise), mode)
        metric = Compensated(run.dynamics.metric.rounded(), _IN_DRAWS * found.noise / size)
        dynamics = replace(run.dynamics, gradient=gradient, metric=metric)
        run = replace(run, dynamics=dynamics, n_samples=len(gradient.drawn))
        if pilots.holds_far_out(run, mode, 1.0, task.seed):
            break
    else:
        return task
    said = f"off by about {of_steps:.1%} of an sd; a normal distribution by at most {of_normal:.1%}"
    time = run.sampler.step_and_time(np.ones(1), 1.0)[1]
    many = run.n_samples > _MANY * mode.theta.size**2
    lengths = usual_lengths(task, run, time, affordable(run, time) if many else 1)
    return finish(
        task,
        run,
        choices | chosen(task, run, f"the cheapest; {said}", said),
        lengths,
        choose_start(task, mode, lengths.n_walkers),
        mode=mode,
        center=mode,
        bias=(of_steps, 0.0),
        noise=noise,
    )
