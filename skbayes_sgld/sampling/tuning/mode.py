"""The mode of a log density, and the metric of the curvature there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skbayes_sgld._linalg import MAX_DENSE, inverse_root, one_blas_thread, solve_positive
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.boundary import as_posterior
from skbayes_sgld.posterior.protocol import Posterior
from skbayes_sgld.sampling.preconditioners.metric import Dense, Metric
from skbayes_sgld.sampling.tuning.curvature import structured_metric

Array = NDArray[Any]

_MAX_STEPS = 100
_TOLERANCE = 1e-10  # Newton decrement: squared distance to the mode in posterior sds
_SUBSET_FROM = 40_000  # rows: beyond, the search begins at the mode of a subset
_DAMPING = (0.0, *np.logspace(-4, 4, 9))
_DIFFERENCED = 2000  # parameters: with more, no curvature is taken by differences of gradients
_MAX_CLIMBS = 20
_CLIMB_STEPS = 200
_CLIMB_TOLERANCE = 1e-8


class Mode(NamedTuple):
    """A mode, and the metric of the curvature there.

    The metric is a dense matrix up to 3,000 parameters. Above it is diagonal, or diagonal plus a
    term for each row of the data where these are fewer than the parameters; no matrix of
    parameters by parameters is formed.
    """

    theta: Array
    metric: Metric

    @property
    def marginal_sd(self) -> Array:
        """The sd of each parameter by the Laplace approximation ``(P,)``."""
        return self.metric.marginal_sd

    def unwhiten(self, z: Array) -> Array:
        """``R z`` for each row of ``z (C, P)``, R being a root of the inverse curvature."""
        return self.metric.sqrt(z)

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x`` for each row of ``x (C, P)``."""
        return self.metric.whiten(x)

    @property
    def root(self) -> Array:
        """R as a matrix ``(P, P)``."""
        return self.unwhiten(np.eye(self.theta.size)).T


class NoModeError(ValueError):
    """No mode was found: the posterior is improper, or nearly."""


def find_mode(posterior: Posterior | BasePosterior, start: Array) -> Mode:
    """Find the mode of ``posterior`` from ``start (P,)``.

    Up to 3,000 parameters by Newton's method, up to 2,000 where the posterior does not know its
    curvature and it takes central differences of the gradient; above by L-BFGS (Liu & Nocedal
    1989) in coordinates whitened by the curvature where it stands.

    A prior with kinks is averaged over the width of the posterior (``posterior.smoothed``): what
    is found then is the centre of the normal distribution that matches the posterior best in
    expectation (Opper & Archambeau 2009, eq. 8), on which a preconditioner should be based.

    Raises
    ------
    NoModeError
        When there is no mode within reach.
    """
    posterior = as_posterior(posterior)
    many = posterior.n_samples > _SUBSET_FROM and not posterior.cheap_full_gradient
    if many and "subset" in posterior.abilities:
        every = posterior.n_samples // (_SUBSET_FROM // 2)
        with suppress(NoModeError):  # the rows left out may be those that determine the mode
            start = find_mode(posterior.subset(slice(None, None, every)), start).theta
    smooth = posterior.smoothed(None)
    if smooth is posterior:
        return _search(posterior, start)
    mode = _search(smooth, start)
    for _ in range(25):
        smooth = posterior.smoothed(mode.marginal_sd)
        if smooth is posterior:
            break
        previous, mode = mode, _search(smooth, mode.theta)
        if np.allclose(mode.marginal_sd, previous.marginal_sd, rtol=0.02):
            break
    return mode


def _search(posterior: BasePosterior, start: Array) -> Mode:
    largest = MAX_DENSE if "curvature" in posterior.abilities else min(_DIFFERENCED, MAX_DENSE)
    find = _damped_newton if start.size <= largest else _climb
    # a Cholesky factorisation by two threads of BLAS takes twenty times as long on a busy machine;
    # a step may go too far, and the line search takes it back
    with one_blas_thread(), np.errstate(all="ignore"):
        return find(posterior, start.astype(float))


def _damped_newton(posterior: BasePosterior, theta: Array) -> Mode:
    value = float(posterior.log_density(theta[None])[0])
    for _ in range(_MAX_STEPS):
        grad = posterior.grad(theta[None])[0]
        H = posterior.curvature(theta)
        step, damped = _damped_step(H, grad)
        decrement = float(grad @ step)
        if decrement < _TOLERANCE and not damped:
            return Mode(theta, Dense(inverse_root(H), H))
        theta, value = _line_search(posterior, theta, value, step, decrement)
    raise NoModeError(
        f"the mode of the posterior was not found in {_MAX_STEPS} Newton steps: the posterior "
        "may be improper; give the coefficients a proper prior, such as prior='normal'."
    )


def _damped_step(H: Array, grad: Array) -> tuple[Array, bool]:
    """Newton's step, with as much of H's diagonal added to H as makes it positive definite."""
    diagonal = np.abs(np.diagonal(H))
    for damping in _DAMPING:
        try:
            return solve_positive(H + np.diag(damping * diagonal), grad), damping > 0
        except np.linalg.LinAlgError:
            continue
    raise NoModeError(
        "the posterior's curvature is not positive definite: some combination of the "
        "coefficients is not determined by the data; give the coefficients a proper prior, such "
        "as prior='normal'."
    )


def _line_search(
    posterior: BasePosterior, theta: Array, value: float, step: Array, decrement: float
) -> tuple[Array, float]:
    fraction = 1.0
    while fraction > 1e-10:
        proposal = theta + fraction * step
        new = float(posterior.log_density(proposal[None])[0])
        # near the mode the gain is below the rounding error
        rounding = 1e-12 * (abs(value) + 1.0)
        if np.isfinite(new) and new >= value + 1e-4 * fraction * decrement - rounding:
            return proposal, new
        fraction /= 2.0
    return theta + step, value


def _climb(posterior: BasePosterior, theta: Array) -> Mode:
    """Climb by L-BFGS, whitening anew by the curvature at each stop."""
    steepest = np.sqrt(0.1 * _CLIMB_TOLERANCE / theta.size)
    for _ in range(_MAX_CLIMBS):
        metric = structured_metric(posterior, theta)
        slope = metric.sqrt_t(posterior.grad(theta[None]))
        if np.square(slope).sum() < _CLIMB_TOLERANCE:
            return Mode(theta, metric)
        found = minimize(
            _whitened(posterior, theta, metric),
            np.zeros_like(theta),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _CLIMB_STEPS, "ftol": 1e-15, "gtol": steepest},
        )
        theta = theta + metric.sqrt(found.x[None])[0]
    raise NoModeError(
        f"the mode of the posterior was not found in {_MAX_CLIMBS * _CLIMB_STEPS} steps: the "
        "posterior may be improper; give the parameters proper priors, such as prior='normal'."
    )


def _whitened(
    posterior: BasePosterior, origin: Array, metric: Metric
) -> Callable[[Array], tuple[float, Array]]:
    """Minus the log density and its gradient, as functions of the whitened theta."""

    def negative(z: Array) -> tuple[float, Array]:
        value, grad = posterior.value_and_grad(origin + metric.sqrt(z[None]))
        if not np.isfinite(value[0]):
            return np.inf, np.zeros_like(z)
        return -float(value[0]), -metric.sqrt_t(grad)[0]

    return negative
