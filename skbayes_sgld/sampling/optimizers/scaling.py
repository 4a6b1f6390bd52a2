"""Scales of the parameters' steps, which follow the noise variance as it moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array, Diagonal, Dynamics, Metric, State
from skbayes_sgld.sampling.optimizers.rules import Optimizer
from skbayes_sgld.sampling.optimizers.standing import Standing
from skbayes_sgld.sampling.protocol import Algorithm


def column_scales(posterior: BasePosterior, start: Standing) -> Metric:
    """Inverse of the curvature's diagonal at the start: a step size for each parameter.

    It standardises the columns of X: steps in raw units become steps in the columns' own.
    """
    if start.curvature is not None:
        diagonal = np.diagonal(start.curvature)
    else:
        diagonal, factor = posterior.curvature_factor(start.theta)
        if factor is not None:
            diagonal = diagonal + np.square(factor).sum(axis=0)
    positive = diagonal > 0
    usual = np.median(diagonal[positive]) if positive.any() else 1.0
    return Diagonal(1.0 / np.where(positive, diagonal, usual))


class _Scaled(Metric):
    """A metric whose parameters are scaled one by one; its root is ``diag(f) R``."""

    def __init__(self, metric: Metric, factor: Array) -> None:
        super().__init__(metric.n_params)
        self._metric, self._factor = metric, factor

    def scale(self, v: Array) -> Array:
        return self.sqrt(self.sqrt_t(v))

    def sqrt(self, z: Array) -> Array:
        return self._metric.sqrt(z) * self._factor

    def sqrt_t(self, v: Array) -> Array:
        return self._metric.sqrt_t(v * self._factor)

    def whiten(self, x: Array) -> Array:
        return self._metric.whiten(x / self._factor)

    def whiten_t(self, v: Array) -> Array:
        return self._metric.whiten_t(v) / self._factor

    @property
    def marginal_sd(self) -> Array:
        return self._metric.marginal_sd * self._factor


class Scales:
    """A metric that was taken at a point and follows the noise from there.

    Parameters
    ----------
    metric : Metric
    theta : ndarray of shape (P,)
        Where it was taken.
    noise : int or None
        The log noise variance among the parameters. A coefficient's curvature is in proportion
        to the precision of the noise, and so its scale to the noise's standard deviation.
    """

    def __init__(self, metric: Metric, theta: Array, noise: int | None) -> None:
        self.metric, self.noise = metric, noise
        self._gamma = None if noise is None else float(theta[noise])

    def at(self, theta: Array) -> Metric:
        """Metric at ``theta (1, P)``."""
        if self._gamma is None:
            return self.metric
        factor = np.full(theta.shape[1], np.exp(0.5 * (theta[0, self.noise] - self._gamma)))
        factor[self.noise] = 1.0
        return _Scaled(self.metric, factor)


class Following(Algorithm):
    """An optimizer whose metric follows the noise, and whose noise moves by a bounded ratio.

    A step of x in the log noise variance multiplies the variance by ``1 + x``, or divides it by
    ``1 - x`` where x is negative: to first order the same, and no step is too long.

    Parameters
    ----------
    optimizer : Optimizer
    scales : Scales
    """

    uses_noise = False

    def __init__(self, optimizer: Optimizer, scales: Scales) -> None:
        self.optimizer, self.scales = optimizer, scales

    def init(self, theta: Array, noise: Array | None) -> State:
        """State of the optimizer."""
        return self.optimizer.init(theta, noise)

    def scale(self, state: State) -> Array:
        """Factor that the rule applied to each coordinate at the last step ``(C, P)``."""
        return self.optimizer.scale(state)

    def step(
        self, state: State, eta: np.floating, noise: Array | None, batch: Any, dynamics: Dynamics
    ) -> None:
        """Make the optimizer's step in the metric of where it is."""
        before = state["theta"]
        dynamics.preconditioner = self.scales.at(before)
        self.optimizer.step(state, eta, noise, batch, dynamics)
        at = self.scales.noise
        if at is not None:
            change = state["theta"][:, at] - before[:, at]
            state["theta"][:, at] = before[:, at] + np.sign(change) * np.log1p(np.abs(change))
