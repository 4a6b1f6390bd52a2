"""Settings of a climb, and the step and batch sizes that it chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from skbayes_sgld.optimizers.newton_step import NewtonStep
from skbayes_sgld.optimizers.projections import BoundProjection
from skbayes_sgld.optimizers.rules import SGD, Optimizer
from skbayes_sgld.sampling.base import Schedule
from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.metric import Metric, preconditioned_eigenvalues
from skbayes_sgld.sampling.preconditioners import Identity, Preconditioner
from skbayes_sgld.sampling.schedules import Polynomial

_FLUSH = 8  # final passes with all rows, which forget the noise of the batches before


@dataclass(frozen=True)
class ClimbSettings:
    """Settings of a climb; the climb chooses those that are None.

    Attributes
    ----------
    step_size : float or None
    batch_size : int or None
        None: contiguous batches of a shuffled order, which grow up to all rows.
    replacement : bool
        Whether batches of a given size are drawn with replacement, or along a shuffled order.
    preconditioner : Preconditioner
        Bound at the start. ``Identity()`` without a ``step_size`` gives each column its own step
        size.
    projection : BoundProjection or None
    average : int
        First pass whose iterates are averaged; 0 for none. If the schedule decays more
        slowly than 1 / t, the mean of the iterates has in the limit the smallest variance of any
        rule (Polyak & Juditsky 1992, Theorem 1). Under a constant step size eta, in the
        curvature's metric, its variance after t steps is about ``2 / (eta t)`` that of an iterate.
    max_iter : int
        Passes over the rows.
    tol : float
        Distance to the mode in the worst coordinate, in posterior sds, at which the climb ends.
    """

    optimizer: Optimizer = field(default_factory=SGD)
    step_size: float | None = None
    schedule: Schedule = field(default_factory=Polynomial)
    batch_size: int | None = None
    replacement: bool = True
    preconditioner: Preconditioner = field(default_factory=Identity)
    clip: Clip | None = None
    projection: BoundProjection | None = None
    average: int = 0
    temperature: float = 1.0
    max_iter: int = 2000
    tol: float = 0.1
    seed: int = 0


class ClimbSchedule:
    """Step size and batch size of a climb, chosen from its distance to the mode.

    In the scaled coordinates a step of ``1 / (L + 4 P / B)`` is stable: L is the largest
    eigenvalue of the scaled curvature, and a batch of B rows has up to ``4 P / B`` more (Gower et
    al. 2019, Proposition 3.8, with rows of four times the mean size).

    Small batches make many steps per pass, but leave noise in the directions of high curvature.
    Passes with all rows forget that noise, but advance little in the other directions. Whenever
    the distance is measured, the next batch size is the one that would end nearest to the mode of
    a quadratic density, after eight final passes with all rows. Once passes with all rows alone
    would reach the mode, they are made. A pass follows a shuffled order, and the schedule counts
    passes; with a batch size of the user's it counts steps.

    Parameters
    ----------
    n_samples : int
    settings : ClimbSettings

    Attributes
    ----------
    chooses_steps : bool
        Whether the step size is automatic.
    adapts : bool
        Whether the step size or the batch size depends on the distance to the mode.
    shuffles : bool
        Whether a pass takes the rows in a shuffled order.
    """

    def __init__(self, n_samples: int, settings: ClimbSettings) -> None:
        self._n, self._settings, self._rule = n_samples, settings, settings.optimizer
        self._grows = settings.batch_size is None and not self._rule.full_gradient
        self.chooses_steps = settings.step_size is None
        self.adapts = self.chooses_steps or self._grows
        self.shuffles = self._grows or not settings.replacement
        self._factor, self.patience = 1.0, 1
        self._away = self._last = self._nearest = np.inf
        self.step_size = np.nan if settings.step_size is None else float(settings.step_size)
        self.batch_size: int | None = settings.batch_size
        if self._rule.full_gradient:
            self.batch_size = None
        elif self._grows:
            first = self._rule.first_batch_size(n_samples)
            self.batch_size = first if 2 * first <= n_samples else None

    def etas(self, n_passes: int, n_steps: int, length: int) -> Array:
        """Sizes of the next steps ``(length,)``."""
        count = n_steps + np.arange(length)
        if self._settings.batch_size is None:
            count = np.full(length, n_passes)
        return self.step_size * self._settings.schedule(count)

    def begin(self, here: NewtonStep, metric: Metric) -> None:
        """Choose the first step and batch sizes, in the metric that scales the steps."""
        self._away = float(np.linalg.norm(here.step))
        self._last = self._nearest = self._away / np.sqrt(here.step.size)
        self._set(here, metric, 0)

    def follow(self, here: NewtonStep, metric: Metric, n_passes: int) -> bool:
        """Choose them again at a later point; False if the climb has diverged."""
        # the root mean square over all directions falls more evenly than the largest distance
        away = float(np.linalg.norm(here.step)) / np.sqrt(here.step.size)
        diverged = not away <= 3.0 * max(self._nearest, self._settings.tol)
        if diverged and self.chooses_steps:
            return False
        if away > 0.8 * self._last and self._rule.unit_steps:
            # halve the steps while they are longer than tol asks, then double the batches
            step = self.step_size * float(self._settings.schedule(n_passes))
            if not self._rule.shrinks and step > 0.5 * self._settings.tol:
                self._factor *= 0.5
            elif self._grows and self.batch_size is not None:
                size = 2 * self.batch_size
                self.batch_size = size if 2 * size <= self._n else None
        self._nearest, self._last = min(self._nearest, away), away
        self._set(here, metric, n_passes)
        return True

    def shorten(self) -> None:
        """Shorten all later steps."""
        self._factor *= 0.25
        self.step_size *= 0.25

    def _set(self, here: NewtonStep, metric: Metric, n_passes: int) -> None:
        rates, distances, coordinates = _directions(here, metric)
        first = float(self._settings.schedule(0))
        # at fifty parameters a Newton step costs about as much as a pass
        self.patience = max(1, n_passes // 4, rates.size // 50)

        def step_of(batch: int | None) -> float:
            if not self.chooses_steps:
                return self.step_size
            heavy = 0.0 if batch is None else 4.0 * rates.size / batch
            return self._factor * self._rule.step_size(rates[-1] + heavy, self._away) / first

        if self._grows and self._rule.noisy and not self._rule.unit_steps:
            now = float(self._settings.schedule(n_passes))
            until_last = self._settings.max_iter - _FLUSH - n_passes
            if until_last > 0 or n_passes < _FLUSH:
                self.patience = max(1, min(self.patience, until_last))
                self._choose_batch(
                    lambda b: np.minimum(step_of(b) * now * rates, 1.0), distances, coordinates
                )
            else:  # the final passes forget the noise
                self.batch_size = None
        self.step_size = step_of(self.batch_size)

    def _choose_batch(
        self, pull_of: Callable[[int | None], Array], distances: Array, coordinates: Array
    ) -> None:
        """Choose the batch size that ends nearest to the mode, with a few passes of all rows.

        ``distances (P,)`` are those of the mode in each direction, and ``coordinates
        (n_coordinates, P)`` maps them to the coordinates.
        """
        all_rows = 1.0 - pull_of(None)
        for passes in range(1, _FLUSH + 1):
            rest = coordinates @ (distances * all_rows**passes)
            if np.abs(rest).max() < 0.9 * self._settings.tol:
                self.batch_size, self.patience = None, passes
                return
        best, squares = np.inf, np.square(coordinates)
        size, flushed = self._rule.first_batch_size(self._n), all_rows**_FLUSH
        while 2 * size <= self._n:
            pull, n_steps = pull_of(size), self._n // size
            rest = coordinates @ (distances * flushed * (1.0 - pull) ** (n_steps * self.patience))
            noise = squares @ np.square(flushed * shuffled_noise(pull, n_steps))
            after = float(np.max(np.square(rest) + noise))
            if after < best:
                best, self.batch_size = after, size
            size *= 2
        if np.square(coordinates @ (distances * all_rows ** (_FLUSH + self.patience))).max() < best:
            self.batch_size = None


def _directions(here: NewtonStep, metric: Metric) -> tuple[Array, Array, Array]:
    """Curvatures in the scaled coordinates, ascending, and the distance of the mode along each.

    Returns
    -------
    rates : ndarray of shape (P,)
        Curvatures.
    left : ndarray of shape (P,)
        Distances of the mode, in posterior standard deviations.
    coordinates : ndarray of shape (n_coordinates, P)
        Matrix that maps these distances to those of the coordinates, in their own sds.
    """
    if here.coordinates is None:
        rates = preconditioned_eigenvalues(metric, here.metric)
        return rates, np.full(rates.size, here.distance), np.eye(rates.size)
    whitened = here.metric.whiten(metric.sqrt(np.eye(metric.n_params)))
    rates, vectors = np.linalg.eigh(whitened @ whitened.T)
    rates = np.maximum(rates, 1e-12 * rates[-1])  # smaller ones are rounding errors
    ways = whitened.T @ (vectors / np.sqrt(rates))
    return rates, here.step @ ways, here.coordinates @ ways


def shuffled_noise(pull: Array, n_steps: int) -> Array:
    """Noise at the end of a pass along a shuffled order, in posterior sds ``(P,)``.

    Parameters
    ----------
    pull : ndarray of shape (P,)
        Share of the distance to the mode that a step covers in each direction, at most 1.
    n_steps : int
        Steps of the pass. Their noises, of variance ``n_steps`` each, add up to zero, but later
        steps forget the earlier noises unequally, so that some noise is left after each pass.
    """
    memory = 1.0 - np.clip(pull, 1e-12, 1.0 - 1e-12)
    total = -np.expm1(n_steps * np.log(memory)) / (1.0 - memory)
    squares = -np.expm1(2.0 * n_steps * np.log(memory)) / (1.0 - np.square(memory))
    residual = np.maximum(squares - np.square(total) / n_steps, 0.0) * np.square(pull) * n_steps
    forgotten = -np.expm1(2.0 * n_steps * np.log(memory))
    return np.sqrt(residual / forgotten)
