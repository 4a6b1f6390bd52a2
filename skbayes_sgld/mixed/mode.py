"""The mode of a mixed model, by turns: of coefficients given the others, and of each of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.collapsed import Marginal
from skbayes_sgld.mixed.posterior import MixedPosterior
from skbayes_sgld.mixed.working import WorkingModel

_ROUNDS, _NEWTON, _CLOSE = 12, 20, 0.05
_WIDEST = 1.5  # sd of a hyperparameter where the rows say nothing: that of the priors' tails
_WIDEST_OWN = 3.0  # sd of an own parameter
_STEP = 1e-3  # of differences of gradients


def find_mode(
    value_and_grad: Callable[[Array], tuple[Array, Array]], start: Array, widest: float = _WIDEST
) -> tuple[Array, Array]:
    """Mode ``(P,)`` of a log density, and a root of the covariance by the curvature there.

    No standard deviation is above ``widest``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the gradient is not finite about the mode.
    """

    def function(theta: Array) -> tuple[float, Array]:
        value, grad = value_and_grad(theta[None])
        if not np.isfinite(value[0]):
            return 1e300, np.zeros_like(theta)
        return -float(value[0]), -grad[0]

    found = minimize(function, start, jac=True, method="BFGS", options={"gtol": 1e-3}).x
    step = _STEP * np.eye(len(found))
    above, below = np.split(value_and_grad(np.vstack([found + step, found - step]))[1], 2)
    precision = (below - above) / (2.0 * _STEP)
    if not np.all(np.isfinite(precision)):
        raise np.linalg.LinAlgError("the density is not finite about its mode")
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    return found, vectors / np.sqrt(np.maximum(values, widest**-2))


@dataclass(frozen=True, eq=False)
class JointMode:
    """Mode of all parameters: of coefficients given the others, and of each of these by Laplace.

    Attributes
    ----------
    working : WorkingModel
    marginal : Marginal
        Expansion of the likelihood there.
    linear : ndarray of shape (n_linear,)
    eta : ndarray of shape (m,)
        Hyperparameters and own parameters.
    root : ndarray of shape (m, m)
        Root of their covariance.
    """

    working: WorkingModel
    marginal: Marginal
    linear: Array
    eta: Array
    root: Array

    @classmethod
    def of(cls, posterior: MixedPosterior) -> JointMode:
        """Mode of a posterior, by turns."""
        working, model = WorkingModel(posterior), posterior.model
        h, own = posterior.covariances.start(), model.start()[posterior.n_linear :]
        now = _expansion(working, model.start()[: posterior.n_linear], own)
        root_own = np.zeros((0, 0))
        for _ in range(_ROUNDS):
            now = _mode_given(working, now, h, own)
            before = np.append(h, own)
            h, root_h = find_mode(partial(_density_of_scales, now.marginal), h)
            if own.size:
                density = partial(_density_of_own, posterior, now.linear)
                own, root_own = find_mode(density, own, _WIDEST_OWN)
                now = _expansion(working, now.linear, own)
            moved = np.append(h, own) - before
            sds = np.append(np.sqrt(np.square(root_h).sum(1)), np.sqrt(np.square(root_own).sum(1)))
            if np.all(np.abs(moved) < _CLOSE * sds):
                break
        now = _mode_given(working, now, h, own)
        m, k = len(h), len(own)
        root = np.zeros((m + k, m + k))
        root[:m, :m], root[m:, m:] = root_h, root_own
        return cls(working, now.marginal, now.linear, np.append(h, own), root)


class _Expansion(NamedTuple):
    """Likelihood expanded about coefficients and effects: its log there, and the marginal."""

    linear: Array
    value: float
    marginal: Marginal


def _mode_given(working: WorkingModel, start: _Expansion, h: Array, own: Array) -> _Expansion:
    """Mode of the coefficients given hyperparameters and own parameters, and the expansion there.

    Newton's steps are halved until the density rises.
    """
    posterior, zeros = working.posterior, np.zeros((1, working.posterior.n_linear))

    def log_density(at: _Expansion) -> float:
        theta = posterior.parameters.join(np.append(at.linear, own)[None], h[None], "scales")
        return at.value + float(posterior.log_prior(theta)[0])

    now, value = start, log_density(start)
    for _ in range(_NEWTON):
        step = now.marginal.draw(h[None], np.ones(1), zeros)[0] - now.linear  # zeros: the mean
        factor, then = 1.0, _expansion(working, now.linear + step, own)
        while factor > 1e-3 and not log_density(then) > value - 1e-6:
            factor *= 0.5
            then = _expansion(working, now.linear + factor * step, own)
        before, now, value = value, then, log_density(then)
        if abs(value - before) < 0.01:
            break
    return now


def _expansion(working: WorkingModel, linear: Array, own: Array) -> _Expansion:
    """Likelihood expanded about coefficients, and the marginal of the hyperparameters."""
    value, gram = working.expansion(linear, own)
    origin = np.zeros((1, working.posterior.n_linear))
    return _Expansion(linear, value, Marginal(working, gram, 0.0, origin))


def _density_of_scales(marginal: Marginal, h: Array) -> tuple[Array, Array]:
    """Log density of hyperparameters ``(C, m)``, and its gradient."""
    return marginal.value_and_grad(h, np.ones(len(h)))[:2]


def _density_of_own(posterior: MixedPosterior, linear: Array, own: Array) -> tuple[Array, Array]:
    """Log density of own parameters ``(C, k)`` given coefficients and effects, and its gradient."""
    base = np.hstack([np.tile(linear, (len(own), 1)), own])
    value, grad = posterior.model.value_and_grad(base)
    return value, grad[:, -own.shape[1] :]
