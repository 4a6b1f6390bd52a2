"""Step size and batch size of a climb."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skbayes_sgld.sampling.dynamics import Array, Metric
from skbayes_sgld.sampling.optimizers.settings import ClimbSettings
from skbayes_sgld.sampling.optimizers.standing import Standing
from skbayes_sgld.sampling.preconditioners.rates import preconditioned_eigenvalues

_HEAVY = 4.0  # largest share of a row in the curvature that is allowed for, over the mean row's
_FLUSH = 8  # last passes, with all rows, which forget the noise of earlier batches
_NEAR = 0.9  # of tol: distance at which the climb is expected to end
_GAP = 0.25  # of the passes so far, until the distance is measured again
_CHEAP = 50  # parameters: measuring with so many costs about as much as a pass
_LEAST = 1e-12  # of the steepest curvature; rounding errors are below
# Root mean square distances over all directions, which steps shorten more evenly than the largest
_LOST = 3.0  # times the nearest so far: the steps are too long
_STALLED = 0.8  # of the last: a rule of unit steps needs shorter ones to come nearer
_SHORTER = 0.25


class Pace:
    """The step size and the batch size of a climb, chosen from where it stands.

    In the scaled coordinates a step of ``1 / (L + 4 P / B)`` is stable: L is the largest
    eigenvalue of the scaled curvature, and a batch of B rows has up to ``4 P / B`` more (Gower et
    al. 2019, Proposition 3.8, with rows of four times the mean size).

    Small batches make many steps a pass, but leave noise in the directions of high curvature.
    Passes with all rows forget that noise, but advance little in the other directions. Each time
    the distance is measured, the batch size is chosen that on a quadratic density would end
    nearest to the mode, eight passes with all rows included; once passes with all rows alone reach
    it, these are taken. A pass follows a shuffled order and the schedule counts passes; with a
    given batch size the schedule counts steps.

    Parameters
    ----------
    n_samples : int
    settings : ClimbSettings
    """

    def __init__(self, n_samples: int, settings: ClimbSettings) -> None:
        self._n, self._settings, self._rule = n_samples, settings, settings.optimizer
        self._factor, self.patience = 1.0, 1
        self._away = self._last = self._nearest = np.inf
        self.step_size = np.nan if settings.step_size is None else float(settings.step_size)
        self.batch_size: int | None = settings.batch_size
        if self._rule.full_gradient:
            self.batch_size = None
        elif self._grows:
            first = self._rule.first_batch_size(n_samples)
            self.batch_size = first if 2 * first <= n_samples else None

    @property
    def _grows(self) -> bool:
        return self._settings.batch_size is None and not self._rule.full_gradient

    @property
    def chooses_steps(self) -> bool:
        """Whether the step size is automatic."""
        return self._settings.step_size is None

    @property
    def adapts(self) -> bool:
        """Whether the step or batch size depends on measurements on the way."""
        return self.chooses_steps or self._grows

    @property
    def shuffles(self) -> bool:
        """Whether a pass goes along a shuffled order."""
        return self._grows or not self._settings.replacement

    @property
    def reported_batch_size(self) -> int | None:
        """Rows of a step; None for a rule that takes them all."""
        return None if self._rule.full_gradient else self.batch_size or self._n

    def etas(self, n_passes: int, n_steps: int, length: int) -> Array:
        """Sizes of the next steps ``(length,)``."""
        count = n_steps + np.arange(length)
        if self._settings.batch_size is None:
            count = np.full(length, n_passes)
        return self.step_size * self._settings.schedule(count)

    def begin(self, here: Standing, metric: Metric) -> None:
        """Set the pace at the start, in the metric that scales the steps."""
        self._away = float(np.linalg.norm(here.way))
        self._last = self._nearest = self._away / np.sqrt(here.way.size)
        self._set(here, metric, 0)

    def follow(self, here: Standing, metric: Metric, n_passes: int) -> bool:
        """Set the pace from the point reached; False where the climb has diverged."""
        away = float(np.linalg.norm(here.way)) / np.sqrt(here.way.size)
        lost = not away <= _LOST * max(self._nearest, self._settings.tol)
        if lost and self.chooses_steps:
            return False
        if away > _STALLED * self._last and self._rule.unit_steps:
            self._halve(n_passes)
        self._nearest, self._last = min(self._nearest, away), away
        self._set(here, metric, n_passes)
        return True

    def shorten(self) -> None:
        """Make all steps to come shorter."""
        self._factor *= _SHORTER
        self.step_size *= _SHORTER

    def _halve(self, n_passes: int) -> None:
        """Halve the steps while they are longer than ``tol`` asks, then double the batches."""
        step = self.step_size * float(self._settings.schedule(n_passes))
        if not self._rule.shrinks and step > 0.5 * self._settings.tol:
            self._factor *= 0.5
        elif self._grows and self.batch_size is not None:
            size = 2 * self.batch_size
            self.batch_size = size if 2 * size <= self._n else None

    def _set(self, here: Standing, metric: Metric, n_passes: int) -> None:
        rates, left, coordinates = _directions(here, metric)
        first = float(self._settings.schedule(0))
        self.patience = max(1, int(_GAP * n_passes), rates.size // _CHEAP)

        def step_of(batch: int | None) -> float:
            if not self.chooses_steps:
                return self.step_size
            heavy = 0.0 if batch is None else _HEAVY * rates.size / batch
            return self._factor * self._rule.step_size(rates[-1] + heavy, self._away) / first

        if self._grows and self._rule.noisy and not self._rule.unit_steps:
            now = float(self._settings.schedule(n_passes))
            until_last = self._settings.max_iter - _FLUSH - n_passes
            if until_last > 0 or n_passes < _FLUSH:
                self.patience = max(1, min(self.patience, until_last))
                self._choose_batch(
                    lambda b: np.minimum(step_of(b) * now * rates, 1.0), left, coordinates
                )
            else:  # the last passes are there to forget the noise
                self.batch_size = None
        self.step_size = step_of(self.batch_size)

    def _choose_batch(
        self, pull_of: Callable[[int | None], Array], left: Array, coordinates: Array
    ) -> None:
        """Choose the batch after which, and a few passes with all rows, the mode is nearest.

        ``left (P,)`` is how far it is in each direction, ``coordinates (n_coordinates, P)`` maps
        that to the distances of the coordinates.
        """
        all_rows = 1.0 - pull_of(None)
        for passes in range(1, _FLUSH + 1):
            if np.abs(coordinates @ (left * all_rows**passes)).max() < _NEAR * self._settings.tol:
                self.batch_size, self.patience = None, passes
                return
        best, squares = np.inf, np.square(coordinates)
        size, flushed = self._rule.first_batch_size(self._n), all_rows**_FLUSH
        while 2 * size <= self._n:
            pull, n_steps = pull_of(size), self._n // size
            kept = coordinates @ (left * flushed * (1.0 - pull) ** (n_steps * self.patience))
            noise = squares @ np.square(flushed * shuffled_noise(pull, n_steps))
            after = float(np.max(np.square(kept) + noise))
            if after < best:
                best, self.batch_size = after, size
            size *= 2
        if np.square(coordinates @ (left * all_rows ** (_FLUSH + self.patience))).max() < best:
            self.batch_size = None


def _directions(here: Standing, metric: Metric) -> tuple[Array, Array, Array]:
    """Curvatures in the scaled coordinates, ascending, and how far the mode is along each.

    Returns
    -------
    rates : ndarray of shape (P,)
        Curvatures.
    left : ndarray of shape (P,)
        Distances of the mode, in posterior standard deviations.
    coordinates : ndarray of shape (n_coordinates, P)
        Matrix that maps these to the distances of the coordinates, in theirs.
    """
    if here.curvature is None or here.coordinates is None:
        rates = preconditioned_eigenvalues(metric, here.metric)
        return rates, np.full(rates.size, here.distance), np.eye(rates.size)
    whitened = here.metric.whiten(metric.sqrt(np.eye(metric.n_params)))
    rates, vectors = np.linalg.eigh(whitened @ whitened.T)
    rates = np.maximum(rates, _LEAST * rates[-1])
    ways = whitened.T @ (vectors / np.sqrt(rates))
    return rates, here.way @ ways, here.coordinates @ ways


def shuffled_noise(pull: Array, n_steps: int) -> Array:
    """Noise at the end of a pass along a shuffled order, in posterior sds ``(P,)``.

    Parameters
    ----------
    pull : ndarray of shape (P,)
        The share of the way to the mode that a step makes, direction by direction, at most 1.
    n_steps : int
        Of the pass. Their noises, of variance ``n_steps`` each, add up to none: what is left is
        how unequally the later steps have forgotten them, pass after pass.
    """
    kept = 1.0 - np.clip(pull, 1e-12, 1.0 - 1e-12)
    total = -np.expm1(n_steps * np.log(kept)) / (1.0 - kept)
    squares = -np.expm1(2.0 * n_steps * np.log(kept)) / (1.0 - np.square(kept))
    left = np.maximum(squares - np.square(total) / n_steps, 0.0) * np.square(pull) * n_steps
    forgotten = -np.expm1(2.0 * n_steps * np.log(kept))
    return np.sqrt(left / forgotten)
