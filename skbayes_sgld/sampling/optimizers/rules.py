"""MAP optimisers: the recursion of the samplers without the noise (ascent)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._components import check_number
from skbayes_sgld.sampling.gradients import ControlVariate, Full, Gradient, Minibatch
from skbayes_sgld.sampling.gradients.variance_reduction import SVRG
from skbayes_sgld.sampling.protocol import Algorithm, Array, Dynamics, State

_FOLDS = 30.0  # e-foldings: what is left of the start after a run is below rounding
_REACH = 6.0  # how many times the distance to the mode a rule of unit steps could travel
_MIN_BATCH, _MAX_BATCH = 32, 4096
_FINEST = 1e-3  # posterior sds: a batch that leaves less noise than this is not asked for
_SHRINKAGE = 0.1  # of the squared distance to the mode that the noise since a snapshot may leave


class Optimizer(Algorithm):
    """A rule that turns gradient estimates into moves towards the mode.

    The rule works in the preconditioned coordinates, ``theta = G^{1/2} u``: without a
    preconditioner they are the parameters themselves, with the curvature's their unit is a
    posterior sd.
    """

    uses_noise = False
    accumulators: tuple[str, ...] = ()

    def init(self, theta: Array, noise: Array | None) -> State:
        """Return the state: positions, a step count and the rule's accumulators, all zero."""
        state = {"theta": theta, "count": np.zeros(theta.shape[0])}
        return state | {name: np.zeros_like(theta) for name in self.accumulators}

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Move theta by eta times the rule's direction."""
        metric = dynamics.preconditioner
        gradient = metric.sqrt_t(dynamics.gradient_at(state["theta"], batch, state))
        state["count"] = state["count"] + 1
        state["theta"] = state["theta"] + eta * metric.sqrt(self.direction(state, gradient))

    def direction(self, state: State, gradient: Array) -> Array:
        """Return the direction to move in, from the gradient ``(C, P)``."""
        return gradient

    def scale(self, state: State) -> Array:
        """Return what the rule multiplied each coordinate by at the last step ``(C, P)``."""
        return np.ones_like(state["theta"])

    def gradient(self, replacement: bool) -> Gradient:
        """Return the estimator of the gradient that the rule takes."""
        return Full() if self.full_gradient else Minibatch(replacement)

    def step_size(self, multipliers: Array, distance: float, fastest: float) -> float:
        """Return the step size that reaches the mode with these multipliers.

        Parameters
        ----------
        multipliers : ndarray of shape (n_steps,)
            The schedule.
        distance : float
            From the start to the mode, in posterior sds.
        fastest : float
            The steepest curvature in the preconditioned coordinates.

        Returns
        -------
        step_size : float
            The gradient of a normal law shrinks with the distance, so what is left after n
            steps is ``exp(-sum eta)``; half the way at the first step at the most.
        """
        return min(_FOLDS / multipliers.sum(), 0.5 / multipliers[0]) / fastest

    def batch_size(
        self, etas: Array, tol: float, variance_of: Callable[[Gradient], float], n_samples: int
    ) -> int:
        """Return the batch whose noise leaves the path within ``tol`` of the mode.

        Parameters
        ----------
        etas : ndarray of shape (n_steps,)
            The step sizes, in the curvature's units.
        tol : float
            In posterior sds.
        variance_of : callable
            Returns the noise variance of an estimator from one row, near the mode.
        n_samples : int

        Returns
        -------
        batch_size : int
            Each step adds ``eta^2`` times the noise, which the later ones forget at eta.
        """
        kept = np.square(etas) @ np.exp(-2.0 * (etas.sum() - np.cumsum(etas)))
        noise = kept * variance_of(Minibatch())
        return _batch_size(noise / max(tol, _FINEST) ** 2, n_samples)


def _batch_size(wanted: float, n_samples: int) -> int:
    return int(min(max(_MIN_BATCH, np.ceil(wanted)), _MAX_BATCH, n_samples))


@dataclass(eq=False, repr=False)
class GD(Optimizer):
    """Gradient descent with all rows at every step (Karagiannis, Handout 6, Algorithm 11)."""

    full_gradient = True


@dataclass(eq=False, repr=False)
class SGD(Optimizer):
    """Batch stochastic gradient descent (Karagiannis, Handout 6, Algorithm 14)."""


@dataclass(eq=False, repr=False)
class Momentum(Optimizer):
    """SGD with momentum: ``v <- decay v + g``, move ``(1 - decay) v`` (Polyak 1964).

    The factor keeps the length of a step, in the long run, that of plain SGD.

    Parameters
    ----------
    decay : float, default=0.9
        In [0, 1).
    """

    decay: float = 0.9
    accumulators = ("velocity",)

    def check(self) -> None:
        """Raise where the decay is out of range."""
        check_number(self.decay, "optimizer.decay", low=0, high=1, closed="left")

    def direction(self, state: State, gradient: Array) -> Array:
        """Return the averaged gradient."""
        state["velocity"] = self.decay * state["velocity"] + (1 - self.decay) * gradient
        return state["velocity"]


@dataclass(eq=False, repr=False)
class SVRGDescent(Optimizer):
    """SGD on stochastic variance reduced gradients (Johnson & Zhang 2013, Figure 1).

    The gradient is :class:`SVRG`'s: its noise vanishes as the path nears the mode, so that a
    constant step size reaches it to any precision. Here the period is in steps, and the next
    snapshot is the last point (their option I).

    Parameters
    ----------
    period : int, default=50
        Steps from snapshot to snapshot. With the default, at step sizes of 0.02 to 0.5, the path
        has gone most of its way by the next, and the steps in between have read fifty batches.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGDMAPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGDMAPRegressor(optimizer="svrg", tol=1e-6, schedule="constant", random_state=0)
    >>> model.fit(X, y).n_iter_ < model.max_iter  # a millionth of a posterior sd from the mode
    True
    """

    period: int = 50

    def check(self) -> None:
        """Raise where the period is not a positive whole number."""
        check_number(self.period, "optimizer.period", low=1, closed="left", integer=True)

    def gradient(self, replacement: bool) -> Gradient:
        """Return the estimator around snapshots."""
        return SVRG(self.period, replacement)

    def batch_size(
        self, etas: Array, tol: float, variance_of: Callable[[Gradient], float], n_samples: int
    ) -> int:
        """Return the batch whose noise shrinks the distance tenfold from snapshot to snapshot.

        An sd away from the snapshot the noise is that of a control variate an sd from its centre,
        and the path settles at ``eta / 2`` of its variance.
        """
        noise = 0.5 * etas.max() * variance_of(ControlVariate(order=1))
        return _batch_size(noise / _SHRINKAGE, n_samples)


class _UnitSteps(Optimizer):
    """A rule whose direction has about unit length in every coordinate."""

    epsilon: float

    def scale(self, state: State) -> Array:
        """Return one over the root of the squares."""
        return 1.0 / (np.sqrt(state["square"]) + self.epsilon)

    def step_size(self, multipliers: Array, distance: float, fastest: float) -> float:
        """Return the step size with which the rule could go six times the distance."""
        return _REACH * max(distance, 1.0) / self.travel(multipliers) / np.sqrt(fastest)

    def travel(self, multipliers: Array) -> float:
        """Return how far unit step sizes go."""
        return float(multipliers.sum())


@dataclass(eq=False, repr=False)
class AdaGrad(_UnitSteps):
    """Gradient over the root of the sum of its squares (Duchi, Hazan & Singer 2011, Figure 1).

    Parameters
    ----------
    epsilon : float, default=1e-8
        Added to the root.
    """

    epsilon: float = 1e-8
    accumulators = ("square",)

    def check(self) -> None:
        """Raise where epsilon is not positive."""
        check_number(self.epsilon, "optimizer.epsilon", low=0)

    def direction(self, state: State, gradient: Array) -> Array:
        """Return the scaled gradient."""
        state["square"] = state["square"] + np.square(gradient)
        return gradient * self.scale(state)

    def travel(self, multipliers: Array) -> float:
        """Return how far unit step sizes go: the direction shrinks with the root of the count."""
        return float((multipliers / np.sqrt(np.arange(1, len(multipliers) + 1))).sum())


@dataclass(eq=False, repr=False)
class RMSprop(_UnitSteps):
    """Gradient over the root of a running mean of its squares (Tieleman & Hinton 2012).

    Parameters
    ----------
    decay : float, default=0.99
        Of the running mean.
    epsilon : float, default=1e-8
        Added to the root.
    """

    decay: float = 0.99
    epsilon: float = 1e-8
    accumulators = ("square",)

    def check(self) -> None:
        """Raise where a parameter is out of range."""
        check_number(self.decay, "optimizer.decay", low=0, high=1, closed="left")
        check_number(self.epsilon, "optimizer.epsilon", low=0)

    def direction(self, state: State, gradient: Array) -> Array:
        """Return the scaled gradient."""
        state["square"] = self.decay * state["square"] + (1 - self.decay) * np.square(gradient)
        return gradient * self.scale(state)

    def travel(self, multipliers: Array) -> float:
        """Return how far unit step sizes go: the mean of squares starts at zero, too small."""
        mean_of_ones = 1.0 - self.decay ** np.arange(1, len(multipliers) + 1)
        return float((multipliers / np.sqrt(mean_of_ones)).sum())


@dataclass(eq=False, repr=False)
class Adam(_UnitSteps):
    """Running means of gradient and square, corrected for their start (Kingma & Ba 2015, Alg. 1).

    Parameters
    ----------
    decay : float, default=0.9
        beta_1.
    square_decay : float, default=0.999
        beta_2.
    epsilon : float, default=1e-8
        Added to the root.
    """

    decay: float = 0.9
    square_decay: float = 0.999
    epsilon: float = 1e-8
    accumulators = ("velocity", "square")

    def check(self) -> None:
        """Raise where a parameter is out of range."""
        check_number(self.decay, "optimizer.decay", low=0, high=1, closed="left")
        check_number(self.square_decay, "optimizer.square_decay", low=0, high=1, closed="left")
        check_number(self.epsilon, "optimizer.epsilon", low=0)

    def direction(self, state: State, gradient: Array) -> Array:
        """Return the corrected and scaled mean gradient."""
        b1, b2 = self.decay, self.square_decay
        state["velocity"] = b1 * state["velocity"] + (1 - b1) * gradient
        state["square"] = b2 * state["square"] + (1 - b2) * np.square(gradient)
        return state["velocity"] / (1 - b1 ** state["count"][:, None]) * self.scale(state)

    def scale(self, state: State) -> Array:
        """Return one over the root of the corrected squares."""
        square = state["square"] / (1 - self.square_decay ** state["count"][:, None])
        return 1.0 / (np.sqrt(square) + self.epsilon)
