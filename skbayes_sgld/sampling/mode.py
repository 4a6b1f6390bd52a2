"""The mode of a log density by Newton's method."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import inverse_root

Array = NDArray[Any]

_MAX_STEPS = 100
_TOLERANCE = 1e-10  # Newton decrement: squared distance to the mode in posterior sds
_SUBSET_FROM = 40_000  # rows; from here on a part of them finds the neighbourhood of the mode
_DAMPING = (0.0, *np.logspace(-4, 4, 9))


class Mode(NamedTuple):
    """A mode, and what the curvature there says of the posterior's width.

    ``root`` is a root of the inverse curvature, ``root root^T = H^{-1}``.
    """

    theta: Array
    curvature: Array
    root: Array

    @property
    def spread(self) -> Array:
        """The sd of each parameter by the Laplace approximation ``(P,)``."""
        return np.sqrt(np.einsum("pq,pq->p", self.root, self.root))


class NoModeError(ValueError):
    """Newton's method found no mode: the posterior is improper, or nearly."""


def find_mode(posterior: Any, start: Array) -> Mode:
    """Find the mode of ``posterior`` from ``start (P,)``.

    A prior with kinks is averaged over the width of the posterior (``posterior.smoothed``): what
    is found then is the centre of the normal law that matches the posterior best in expectation
    (Opper & Archambeau 2009, eq. 8), which is what a preconditioner wants to know.

    Raises
    ------
    NoModeError
        When there is no mode within reach.
    """
    if posterior.n_samples > _SUBSET_FROM:
        every = posterior.n_samples // (_SUBSET_FROM // 2)
        with suppress(NoModeError):  # the rows left out may be what determines the mode
            start = find_mode(posterior.subset(slice(None, None, every)), start).theta
    smooth = posterior.smoothed(None)
    mode = _newton(smooth, start)
    for _ in range(25):
        smooth = posterior.smoothed(mode.spread)
        if smooth is posterior:
            break
        previous, mode = mode, _newton(smooth, mode.theta)
        if np.allclose(mode.spread, previous.spread, rtol=0.02):
            break
    return mode


def _newton(posterior: Any, start: Array) -> Mode:
    with np.errstate(all="ignore"):  # a step may go too far; the line search takes it back
        return _damped_newton(posterior, start.astype(float))


def _damped_newton(posterior: Any, theta: Array) -> Mode:
    value = float(posterior.log_density(theta[None])[0])
    for _ in range(_MAX_STEPS):
        grad = posterior.grad(theta[None])[0]
        H = posterior.curvature(theta)
        root, damped = _damped_root(H)
        step = root @ (root.T @ grad)
        decrement = float(grad @ step)
        if decrement < _TOLERANCE and not damped:
            return Mode(theta, H, root)
        theta, value = _line_search(posterior, theta, value, step, decrement)
    raise NoModeError(
        f"the mode of the posterior was not found in {_MAX_STEPS} Newton steps: the posterior "
        "may be improper; give the coefficients a proper prior, such as prior='normal'."
    )


def _damped_root(H: Array) -> tuple[Array, bool]:
    """Return a root of the inverse of H, with as much of its diagonal added as that takes."""
    diagonal = np.abs(np.diagonal(H))
    for damping in _DAMPING:
        try:
            return inverse_root(H + np.diag(damping * diagonal)), damping > 0
        except np.linalg.LinAlgError:
            continue
    raise NoModeError(
        "the posterior's curvature is not positive definite: some combination of the "
        "coefficients is not determined by the data; give the coefficients a proper prior, such "
        "as prior='normal'."
    )


def _line_search(
    posterior: Any, theta: Array, value: float, step: Array, decrement: float
) -> tuple[Array, float]:
    fraction = 1.0
    while fraction > 1e-10:
        proposal = theta + fraction * step
        new = float(posterior.log_density(proposal[None])[0])
        # near the mode the gain drowns in rounding: allow for it
        rounding = 1e-12 * (abs(value) + 1.0)
        if np.isfinite(new) and new >= value + 1e-4 * fraction * decrement - rounding:
            return proposal, new
        fraction /= 2.0
    return theta + step, value
