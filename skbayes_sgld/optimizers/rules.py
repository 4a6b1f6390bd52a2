"""MAP optimizers: the recursion of the samplers without its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Algorithm
from skbayes_sgld.sampling.dynamics import Array, Dynamics, State
from skbayes_sgld.sampling.gradients import Full, Gradient, Minibatch
from skbayes_sgld.sampling.gradients.svrg import SVRG

_FEWEST = 32  # rows of the first batches


class Optimizer(Algorithm):
    """A rule that turns gradient estimates into moves towards the mode.

    The rule works in the preconditioned coordinates, ``theta = G^{1/2} u``: without a
    preconditioner these are the parameters themselves; with the curvature's their unit is a
    posterior sd.
    """

    accumulators: tuple[str, ...] = ()
    noisy = True  # whether its steps have noise at the mode
    unit_steps = False  # whether the length of a step is independent of the gradient's
    shrinks = False  # whether its steps become shorter by themselves

    def init(self, theta: Array) -> State:
        """State: positions, a step count and the rule's accumulators, all zero."""
        state = {"theta": theta, "count": np.zeros(theta.shape[0])}
        return state | {name: np.zeros_like(theta) for name in self.accumulators}

    def n_normals(self, n_params: int) -> int:
        """Zero: steps have no noise."""
        return 0

    def step(self, state: State, eta: float, noise: Any, batch: Any, dynamics: Dynamics) -> None:
        """Move theta by eta times the rule's direction."""
        gradient = dynamics.force(state, batch)
        state["count"] = state["count"] + 1
        move = eta * dynamics.metric.sqrt(self.direction(state, gradient))
        state["theta"] = state["theta"] + move

    def direction(self, state: State, gradient: Array) -> Array:
        """Direction of the move, from the gradient ``(C, P)``."""
        return gradient

    def scale(self, state: State) -> Array:
        """Factor by which the last step scaled each coordinate ``(C, P)``."""
        return np.ones_like(state["theta"])

    def gradient(self, replacement: bool) -> Gradient:
        """Estimator of the gradient that the rule follows."""
        return Full() if self.full_gradient else Minibatch(replacement)

    def step_size(self, steepest: float, away: float) -> float:
        """Largest step size that is stable.

        Parameters
        ----------
        steepest : float
            Largest curvature in the preconditioned coordinates.
        away : float
            Distance from the start to the mode, in posterior standard deviations.
        """
        return 1.0 / steepest

    def first_batch_size(self, n_samples: int) -> int:
        """Number of rows of the first batches, if batches may grow."""
        return _FEWEST


@dataclass(eq=False, repr=False)
class GD(Optimizer):
    """Gradient descent with all rows at every step (Karagiannis, Handout 6, Algorithm 11).

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> SGDMAPClassifier(optimizer="gd", max_iter=50)
    SGDMAPClassifier(max_iter=50, optimizer='gd')
    """

    full_gradient = True
    noisy = False


@dataclass(eq=False, repr=False)
class Newton(GD):
    """Newton's method with a line search, all rows at every step (:func:`find_mode`).

    It has no step size, no batches and no schedule.

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> SGDMAPClassifier(optimizer="newton", max_iter=50)
    SGDMAPClassifier(max_iter=50, optimizer='newton')
    """


@dataclass(eq=False, repr=False)
class SGD(Optimizer):
    """Batch stochastic gradient descent (Karagiannis, Handout 6, Algorithm 14).

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> SGDMAPClassifier(optimizer="sgd", max_iter=50)
    SGDMAPClassifier(max_iter=50)
    """


@dataclass(eq=False, repr=False)
class Momentum(Optimizer):
    """SGD with momentum: ``v <- decay v + g``, move ``(1 - decay) v`` (Polyak 1964).

    The factor makes steps in the long run as long as those of plain SGD.

    Parameters
    ----------
    decay : float, default=0.9
        Weight of the past velocity, in [0, 1).

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> from skbayes_sgld.optimizers import Momentum
    >>> SGDMAPClassifier(optimizer=Momentum(decay=0.5))
    SGDMAPClassifier(optimizer=Momentum(decay=0.5))
    """

    decay: float = 0.9
    accumulators = ("velocity",)

    def check(self) -> None:
        """Raise if the decay is out of range."""
        check_number(self.decay, "optimizer.decay", low=0, high=1, closed="left")

    def direction(self, state: State, gradient: Array) -> Array:
        """Running mean of the gradients."""
        state["velocity"] = self.decay * state["velocity"] + (1 - self.decay) * gradient
        return state["velocity"]

    def step_size(self, steepest: float, away: float) -> float:
        """Step size of plain SGD over ``1 - decay``."""
        return 1.0 / steepest / (1.0 - self.decay)


@dataclass(eq=False, repr=False)
class SVRGDescent(Optimizer):
    """SGD on stochastic variance reduced gradients (Johnson & Zhang 2013, Figure 1).

    The gradient is that of :class:`SVRG`. Its noise vanishes as the path approaches the mode, so a
    constant step size reaches the mode to any precision. The period is in steps, and the next
    snapshot is the last point (their option I).

    Parameters
    ----------
    period : int, default=50
        Steps from snapshot to snapshot. At step sizes of 0.02 to 0.5, 50 steps cover most of the
        distance to the mode.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGDMAPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = X[:, [2, 3, 8]]  # body mass index, blood pressure and triglycerides
    >>> model = SGDMAPRegressor(optimizer="svrg", tol=1e-6, schedule="constant", random_state=0)
    >>> model.fit(X, y).n_iter_ < model.max_iter  # a millionth of a posterior sd from the mode
    True
    """

    period: int = 50
    noisy = False

    def check(self) -> None:
        """Raise if the period is not a positive whole number."""
        check_number(self.period, "optimizer.period", low=1, closed="left", integer=True)

    def gradient(self, replacement: bool) -> Gradient:
        """Gradient estimator with snapshots every ``period`` steps."""
        return SVRG(self.period, replacement)

    def first_batch_size(self, n_samples: int) -> int:
        """Batch size at which a period is a pass over the rows."""
        return max(_FEWEST, -(-n_samples // self.period))


class _UnitSteps(Optimizer):
    """A rule whose direction has a size of about 1 in every coordinate."""

    epsilon: float
    accumulators: tuple[str, ...] = ("square",)
    unit_steps = True

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        check_number(self.epsilon, "optimizer.epsilon", low=0)

    def scale(self, state: State) -> Array:
        """Reciprocal root of the accumulated squares."""
        return 1.0 / (np.sqrt(state["square"]) + self.epsilon)

    def step_size(self, steepest: float, away: float) -> float:
        """A twentieth of the distance to the mode, in the coordinates of the steps."""
        return max(away, 1.0) / 20.0 / float(np.sqrt(steepest))


@dataclass(eq=False, repr=False)
class AdaGrad(_UnitSteps):
    """Gradient over the root of the sum of its squares (Duchi, Hazan & Singer 2011, Figure 1).

    Parameters
    ----------
    epsilon : float, default=1e-8
        Added to the root, so that a gradient of zero does not divide.

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> from skbayes_sgld.optimizers import AdaGrad
    >>> SGDMAPClassifier(optimizer=AdaGrad(epsilon=1e-06))
    SGDMAPClassifier(optimizer=AdaGrad(epsilon=1e-06))
    """

    epsilon: float = 1e-8
    shrinks = True

    def step_size(self, steepest: float, away: float) -> float:
        """Half of the distance to the mode, as the steps of this rule shrink by themselves."""
        return max(away, 1.0) / 2.0 / float(np.sqrt(steepest))

    def direction(self, state: State, gradient: Array) -> Array:
        """Gradient scaled by the reciprocal root of its squares."""
        state["square"] = state["square"] + np.square(gradient)
        return gradient * self.scale(state)


@dataclass(eq=False, repr=False)
class RMSprop(_UnitSteps):
    """Gradient over the root of a running mean of its squares (Tieleman & Hinton 2012).

    Parameters
    ----------
    decay : float, default=0.99
        Weight of the past in the running mean, in [0, 1).
    epsilon : float, default=1e-8
        Added to the root, so that a gradient of zero does not divide.

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> from skbayes_sgld.optimizers import RMSprop
    >>> SGDMAPClassifier(optimizer=RMSprop(decay=0.9))
    SGDMAPClassifier(optimizer=RMSprop(decay=0.9))
    """

    decay: float = 0.99
    epsilon: float = 1e-8

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        super().check()
        check_number(self.decay, "optimizer.decay", low=0, high=1, closed="left")

    def direction(self, state: State, gradient: Array) -> Array:
        """Gradient scaled by the reciprocal root of its squares."""
        state["square"] = self.decay * state["square"] + (1 - self.decay) * np.square(gradient)
        return gradient * self.scale(state)


@dataclass(eq=False, repr=False)
class Adam(_UnitSteps):
    """Running means of gradient and square, corrected for their start (Kingma & Ba 2015, Alg. 1).

    Parameters
    ----------
    decay : float, default=0.9
        Weight of the past in the mean gradient: beta_1 of the paper.
    square_decay : float, default=0.999
        Weight of the past in the mean square: beta_2 of the paper.
    epsilon : float, default=1e-8
        Added to the root, so that a gradient of zero does not divide.

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> from skbayes_sgld.optimizers import Adam
    >>> SGDMAPClassifier(optimizer=Adam(square_decay=0.99))
    SGDMAPClassifier(optimizer=Adam(square_decay=0.99))
    """

    decay: float = 0.9
    square_decay: float = 0.999
    epsilon: float = 1e-8
    accumulators = ("velocity", "square")

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        super().check()
        check_number(self.decay, "optimizer.decay", low=0, high=1, closed="left")
        check_number(self.square_decay, "optimizer.square_decay", low=0, high=1, closed="left")

    def direction(self, state: State, gradient: Array) -> Array:
        """Mean gradient, corrected for its start and scaled."""
        b1, b2 = self.decay, self.square_decay
        state["velocity"] = b1 * state["velocity"] + (1 - b1) * gradient
        state["square"] = b2 * state["square"] + (1 - b2) * np.square(gradient)
        return state["velocity"] / (1 - b1 ** state["count"][:, None]) * self.scale(state)

    def scale(self, state: State) -> Array:
        """Reciprocal root of the squares, corrected for their start."""
        square = state["square"] / (1 - self.square_decay ** state["count"][:, None])
        return 1.0 / (np.sqrt(square) + self.epsilon)


OPTIMIZERS: Registry[Optimizer] = Registry(
    Optimizer,
    gd=GD,
    sgd=SGD,
    momentum=Momentum,
    svrg=SVRGDescent,
    adagrad=AdaGrad,
    rmsprop=RMSprop,
    adam=Adam,
    newton=Newton,
)
