"""Stochastic gradient ascent of a log posterior: passes over the rows until the mode is near."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skbayes_sgld._checks import check_batch_size
from skbayes_sgld.optimizers.climb_schedule import ClimbSchedule, ClimbSettings
from skbayes_sgld.optimizers.newton_step import NewtonStep, newton_step
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.metric import Metric
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.preconditioners import Identity
from skbayes_sgld.sampling.tuning.mode import inverse_diagonal


@dataclass(frozen=True)
class Climb:
    """End of a climb, and its path.

    Attributes
    ----------
    end : NewtonStep
        End, and its distance from the mode.
    path : ndarray of shape (n_points, P)
        Points after the passes ``passes (n_points,)``; the first is the start, after 0 passes.
    n_iter : int
        Passes made.
    step_size : float
    batch_size : int or None
        The last; None if every step took all rows.
    clipped : float
        Share of steps on which the gradient was clipped.
    """

    end: NewtonStep
    path: Array
    passes: Array
    n_iter: int
    step_size: float
    batch_size: int | None
    clipped: float


def climb(
    posterior: BasePosterior,
    start: Array,
    settings: ClimbSettings,
    progress: Callable[[int], bool] | None = None,
) -> Climb:
    """Climb from ``start (P,)`` until no coordinate is further than ``tol`` sds from the mode.

    Raises
    ------
    ChainOverflowError
        When steps of the user's size overflow. Steps that the climb chose are shortened
        instead.
    """
    advice = "or optimizer='gd', which takes all of them at every step"
    check_batch_size(settings.batch_size, posterior.n_samples, advice)
    ascent = _Ascent(posterior, start, settings)
    path, passes = [ascent.point], [0]
    every = max(1, -(-settings.max_iter * start.size // 2**22))  # 32 megabytes of points at most
    here, due = None, 1
    for n_passes in range(1, settings.max_iter + 1):
        ascent.make_pass(n_passes - 1)
        stop = progress is not None and progress(1)
        if n_passes % every == 0:
            path.append(ascent.point)
            passes.append(n_passes)
        last = stop or n_passes == settings.max_iter
        if last or (n_passes >= due and (settings.tol > 0 or ascent.climb_schedule.adapts)):
            here = ascent.measure(n_passes, last)
            if stop or here.distance <= settings.tol:
                break
            due = n_passes + ascent.climb_schedule.patience
    assert here is not None
    if passes[-1] != n_passes:
        path.append(here.theta)
        passes.append(n_passes)
    positions = np.unique(np.linspace(0, len(path) - 1, min(len(path), 500)).astype(int))
    climb_schedule, full = ascent.climb_schedule, settings.optimizer.full_gradient
    fired = np.sum(ascent.part.clipped) + np.sum(ascent.whole.clipped)
    return Climb(
        end=here,
        path=np.array(path)[positions],
        passes=np.array(passes)[positions],
        n_iter=n_passes,
        step_size=climb_schedule.step_size,
        batch_size=None if full else climb_schedule.batch_size or posterior.n_samples,
        clipped=float(fired / max(ascent.n_steps, 1)),
    )


class _Ascent:
    """State of a climb: position, step and batch sizes, random order of the rows.

    The curvature of the coefficients is proportional to the precision of the noise. So the metric,
    computed at the start, scales their steps by the current sd of the noise. A step of x in the
    log noise variance multiplies the variance by ``1 + x``, or divides it by ``1 - x`` if x is
    negative: equal to ``exp(x)`` to first order, but never far too long.
    """

    def __init__(self, posterior: BasePosterior, start: Array, settings: ClimbSettings) -> None:
        self.posterior, self.settings = posterior, settings
        self._rule = settings.optimizer
        self.climb_schedule = ClimbSchedule(posterior.n_samples, settings)
        if settings.projection is not None:
            start = settings.projection(start[None], np.eye(start.size))[0]
        self._start, self._noise = start, posterior.facts.noise_index
        self._metric = self._last_metric = self._choose_metric()
        self._rng = np.random.default_rng(np.random.SeedSequence(settings.seed))
        estimator = self._rule.gradient(settings.replacement)
        self.part = Dynamics(estimator.bind(posterior, None), self._metric, settings.clip)
        self.whole = Dynamics(Full().bind(posterior, None), self._metric, settings.clip)
        theta = np.array(start, dtype=float)[None]
        self._state: State = self._rule.init(theta) | self.part.gradient.begin(theta)
        self.n_steps = self._n_averaged = 0
        self._average = theta
        self._keep()

    def _choose_metric(self) -> Metric:
        """Metric at the start; the posterior is evaluated only if metric or step size needs it."""
        settings, climb_schedule, start = self.settings, self.climb_schedule, self._start
        preconditioner = settings.preconditioner
        by_column = isinstance(preconditioner, Identity) and climb_schedule.chooses_steps
        here = None
        if climb_schedule.adapts or preconditioner.uses_curvature:
            here = newton_step(self.posterior, start, settings.temperature, settings.projection)
        if here is not None and preconditioner.uses_curvature:
            metric = here.metric
        elif here is not None and by_column:
            assert here.diagonal is not None
            # steps in raw units become steps in units of the columns' spreads
            metric = inverse_diagonal(here.diagonal)
        else:
            metric, self._noise = preconditioner.bind(start.size, None), None
        if here is not None and climb_schedule.adapts:
            climb_schedule.begin(here, metric)
        return metric

    @property
    def point(self) -> Array:
        """Iterate, or the average of the iterates ``(P,)``."""
        return (self._average if self.settings.average else self._state["theta"])[0]

    def make_pass(self, n_passes: int) -> None:
        """Make one more pass over the rows, after ``n_passes`` of them."""
        averages = 0 < self.settings.average <= n_passes + 1
        with np.errstate(all="ignore"):
            if self.climb_schedule.batch_size is None:
                eta = self.climb_schedule.etas(n_passes, self.n_steps, 1)
                self._step(eta[0], None, self.whole, averages)
            else:
                rows = self._rows(self.climb_schedule.batch_size)
                etas = self.climb_schedule.etas(n_passes, self.n_steps, len(rows))
                for eta, batch in zip(etas, self.part.gradient.batches(rows), strict=True):
                    self._step(eta, batch, self.part, averages)
        theta = self._state["theta"]
        if not np.isfinite(theta).all():
            if not self.climb_schedule.chooses_steps:
                at = int(np.argmin(np.isfinite(theta[0])))
                raise ChainOverflowError(self.n_steps - 1, 0, at)
            self._go_back()

    def _step(self, eta: float, batch: object, dynamics: Dynamics, averages: bool) -> None:
        """Make one step of the rule, project it onto the set, and average."""
        state, before, noise = self._state, self._state["theta"], self._noise
        dynamics.metric = self._last_metric = metric = self._metric_at(before)
        self._rule.step(state, eta, None, batch, dynamics)
        theta = state["theta"]
        if noise is not None:
            change = theta[:, noise] - before[:, noise]
            theta[:, noise] = before[:, noise] + np.sign(change) * np.log1p(np.abs(change))
        projection = self.settings.projection
        if projection is not None and projection.outside(theta).any():
            root = metric.root * np.sqrt(self._rule.scale(state))[:, None, :]
            state["theta"] = theta = projection(theta, root)
        self.n_steps += 1
        self._n_averaged += averages
        self._average = self._average + (theta - self._average) / max(self._n_averaged, 1)

    def _metric_at(self, theta: Array) -> Metric:
        """Metric at ``theta (1, P)``."""
        if self._noise is None:
            return self._metric
        ratio = np.exp(0.5 * (theta[0, self._noise] - self._start[self._noise]))
        factor = np.full(theta.shape[1], ratio)
        factor[self._noise] = 1.0
        return self._metric.scaled(factor)

    def _keep(self) -> None:
        """Keep a state to go back to."""
        self._backup = dict(self._state), self._average, self._n_averaged

    def _go_back(self) -> None:
        """Return to the state that was kept, and go on in shorter steps."""
        state, self._average, self._n_averaged = self._backup
        self._state = dict(state)
        self.climb_schedule.shorten()

    def _rows(self, size: int) -> Array:
        """Rows ``(T, 1, B)`` of the steps of a pass."""
        n = self.posterior.n_samples
        if not self.climb_schedule.shuffles:
            return self._rng.integers(0, n, (-(-n // size), 1, size))
        n_steps = n // size
        return self._rng.permutation(n)[: n_steps * size].reshape(n_steps, 1, size)

    def measure(self, n_passes: int, last: bool) -> NewtonStep:
        """Distance of the point from the mode; it sets the step and batch sizes of later passes."""
        settings = self.settings
        here = newton_step(self.posterior, self.point, settings.temperature, settings.projection)
        if not np.isfinite(here.distance) and not self.climb_schedule.chooses_steps:
            raise ChainOverflowError(self.n_steps - 1, 0, int(np.abs(here.theta).argmax()))
        if last or here.distance <= settings.tol or not self.climb_schedule.adapts:
            return here
        with np.errstate(all="ignore"):  # steps of the user's size may be about to overflow
            well = self.climb_schedule.follow(here, self._last_metric, n_passes)
        if well:
            self._keep()
        else:
            self._go_back()
        return here
