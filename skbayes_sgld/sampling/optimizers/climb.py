"""Stochastic gradient ascent of a log posterior: passes over the rows until the mode is near."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array, Dynamics, Metric, State
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.optimizers.averaging import Averaged
from skbayes_sgld.sampling.optimizers.pace import Pace
from skbayes_sgld.sampling.optimizers.projections import Projected
from skbayes_sgld.sampling.optimizers.scaling import Following, Scales, column_scales
from skbayes_sgld.sampling.optimizers.settings import ClimbSettings
from skbayes_sgld.sampling.optimizers.standing import Standing, measure
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.preconditioners import Identity
from skbayes_sgld.sampling.protocol import Algorithm

_BLOCK_NUMBERS = 2**16  # gathered values of a block, which then stays in cache
_PATH_POINTS = 500
_PATH_NUMBERS = 2**22


@dataclass(frozen=True)
class Climb:
    """End of a climb, and the path that led there.

    Attributes
    ----------
    end : Standing
    path : ndarray of shape (n_points, P)
        After the passes ``passes (n_points,)``, of which the first is 0: the start.
    n_iter : int
        Passes made.
    step_size : float
    batch_size : int or None
        The last; None where every step took all rows.
    clipped : float
        Share of steps on which the gradient was clipped.
    """

    end: Standing
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
        When steps of a given size leave the range of floating point numbers. Those that the climb
        chose are made shorter instead.
    """
    walk = _Walk(posterior, start, settings)
    path, passes = [walk.reported], [0]
    every = max(1, -(-settings.max_iter * start.size // _PATH_NUMBERS))
    measured, due = None, 1
    for done in range(1, settings.max_iter + 1):
        walk.go(done - 1)
        stop = progress is not None and progress(1)
        if done % every == 0:
            path.append(walk.reported)
            passes.append(done)
        last = stop or done == settings.max_iter
        if (done >= due and walk.looks) or last:
            measured = walk.look(done, last)
            if stop or measured.distance <= settings.tol:
                break
            due = done + walk.pace.patience
    assert measured is not None
    if passes[-1] != done:
        path.append(measured.theta)
        passes.append(done)
    kept = np.unique(np.linspace(0, len(path) - 1, min(len(path), _PATH_POINTS)).astype(int))
    return Climb(
        measured,
        np.array(path)[kept],
        np.array(passes)[kept],
        done,
        walk.pace.step_size,
        walk.pace.reported_batch_size,
        walk.clipped,
    )


class _Walk:
    """The state of a climb: position, pace, random order of the rows."""

    def __init__(self, posterior: BasePosterior, start: Array, settings: ClimbSettings) -> None:
        self.posterior, self.settings = posterior, settings
        rule = settings.optimizer
        if settings.projection is not None:
            start = settings.projection(start[None], np.eye(start.size))[0][0]
        scales, self.pace = self._plan(start)
        algorithm: Algorithm = Following(rule, scales)
        if settings.projection is not None:
            algorithm = Projected(algorithm, settings.projection)
        if settings.average:
            algorithm = Averaged(algorithm, np.iinfo(int).max)
        self._algorithm = algorithm
        self._rng = np.random.default_rng(np.random.SeedSequence(settings.seed))
        estimator = rule.gradient(settings.replacement)
        self._part = Dynamics(estimator.bind(posterior, None), scales.metric, settings.clip)
        self._whole = Dynamics(Full().bind(posterior, None), scales.metric, settings.clip)
        theta = np.array(start, dtype=float)[None]
        self._state: State = algorithm.init(theta, None) | self._part.gradient.begin(theta)
        self._n_steps = 0
        self._safe = dict(self._state)

    def _plan(self, start: Array) -> tuple[Scales, Pace]:
        """Metric and pace; the posterior is evaluated only where one of them has to be chosen."""
        posterior, settings = self.posterior, self.settings
        named, pace = settings.preconditioner, Pace(self.posterior.n_samples, settings)
        raw = isinstance(named, Identity) and not pace.chooses_steps
        if not (pace.adapts or named.uses_curvature):
            return Scales(named.bind(start.size, None), start, None), pace
        here = measure(posterior, start, settings.temperature, settings.projection)
        if raw or not (isinstance(named, Identity) or named.uses_curvature):
            scales = Scales(named.bind(start.size, None), start, None)
        else:
            metric = here.metric if named.uses_curvature else column_scales(posterior, here)
            scales = Scales(metric, start, posterior.noise_index)
        if pace.adapts:
            pace.begin(here, scales.at(start[None]))
        return scales, pace

    @property
    def looks(self) -> bool:
        """Whether the distance to the mode is needed before the last pass."""
        return self.settings.tol > 0 or self.pace.adapts

    @property
    def reported(self) -> Array:
        """The iterate, or the average ``(P,)``."""
        return self._state["average" if self.settings.average else "theta"][0]

    @property
    def clipped(self) -> float:
        """The share of steps on which the gradient was clipped."""
        fired = np.sum(self._part.clipped) + np.sum(self._whole.clipped)
        return float(fired / max(self._n_steps, 1))

    def go(self, n_passes: int) -> None:
        """Make one more pass over the rows."""
        state, step = self._state, self._algorithm.step
        if self.settings.average == n_passes + 1:
            assert isinstance(self._algorithm, Averaged)
            self._algorithm.start = self._n_steps + 1
        with np.errstate(all="ignore"):
            if self.pace.batch_size is None:
                eta = self.pace.etas(n_passes, self._n_steps, 1)
                step(state, eta[0], None, None, self._whole)
                self._n_steps += 1
            else:
                gradient = self._part.gradient
                for idx in self._blocks(self.pace.batch_size):
                    eta = self.pace.etas(n_passes, self._n_steps, len(idx))
                    for size, batch in zip(eta, gradient.prepare(idx), strict=True):
                        step(state, size, None, batch, self._part)
                    self._n_steps += len(idx)
        if not np.isfinite(state["theta"]).all():
            if not self.pace.chooses_steps:
                at = int(np.argmin(np.isfinite(state["theta"][0])))
                raise ChainOverflowError(self._n_steps - 1, 0, at)
            self._back()

    def _back(self) -> None:
        """Return to the last state that was well, and go on in shorter steps."""
        self._state.update(self._safe)
        self.pace.shorten()

    def _blocks(self, size: int) -> Iterator[Array]:
        """Yield the rows ``(T, 1, B)`` of the steps of a pass, a cache full at a time."""
        n = self.posterior.n_samples
        most = max(1, _BLOCK_NUMBERS // (size * self._state["theta"].shape[1]))
        shuffled = self.pace.shuffles
        order = self._rng.permutation(n) if shuffled else None
        n_steps = n // size if shuffled else -(-n // size)
        for first in range(0, n_steps, most):
            length = min(most, n_steps - first)
            if order is None:
                yield self._rng.integers(0, n, (length, 1, size))
            else:
                yield order[first * size : (first + length) * size].reshape(length, 1, size)

    def look(self, n_passes: int, last: bool) -> Standing:
        """Measure where the climb stands and set the pace for the passes to come."""
        settings = self.settings
        here = measure(self.posterior, self.reported, settings.temperature, settings.projection)
        if not np.isfinite(here.distance) and not self.pace.chooses_steps:
            raise ChainOverflowError(self._n_steps - 1, 0, int(np.abs(here.theta).argmax()))
        if last or here.distance <= settings.tol or not self.pace.adapts:
            return here
        with np.errstate(all="ignore"):  # steps of a given size may be on their way to overflow
            well = self.pace.follow(here, self._metric(), n_passes)
        if well:
            self._safe = dict(self._state)
        else:
            self._back()
        return here

    def _metric(self) -> Metric:
        whole = self.pace.batch_size is None
        return (self._whole if whole else self._part).preconditioner
