"""The normal distribution near a posterior with unequal noise, by restricted likelihood.

With few rows per parameter the joint mode is no centre: the coefficients fit some rows so closely
that the noise there goes to zero. The coefficients are therefore integrated out, as in restricted
maximum likelihood, by scoring (Smyth & Verbyla 1999): with the leverages h of the weighted
regression, the score of a row's log variance is ``(r^2 / sigma^2 - (1 - h)) / 2`` and its
information ``(1 - h)^2 / 2``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import inverse_root, solve_positive
from skbayes_sgld.posterior.priors import CoefficientPrior

Array = NDArray[Any]

_ROUNDS = 300  # of 45 rows with 15 columns, 43; of binary columns and responses, 190
_CLOSE = 1e-3  # squared distance to the centre, in sds
_LONGEST = 1.0  # change of a log variance in one round
_DAMPING = 0.7  # the information is that of the expected residuals, and overshoots
_SHORTER, _LONGER = 0.7, 1.1  # of the damping: where the last step has overshot, and elsewhere
_NEAR = 0.1  # squared distance to the centre, in sds, at which a search that has to end may end


class _UnequalNoise(Protocol):
    """The members of a posterior with unequal noise that the search uses."""

    def mean_and_noise(self, theta: Array) -> tuple[Array, Array, Array]:
        """Designs of the mean and of the log variance, each with a level, and the log variance."""

    def grad(self, theta: Array) -> Array: ...
    def prior_precision(self, theta: Array) -> Array:
        """Curvature of the log prior without what couples noise and coefficients."""

    def start(self) -> Array: ...
    @property
    def weight(self) -> Array | None: ...
    @property
    def prior(self) -> CoefficientPrior: ...


def restricted_normal(
    posterior: _UnequalNoise, start: Array | None = None, within: float = _NEAR
) -> tuple[Array, Array] | None:
    """Mean and precision of a normal distribution near the posterior; None where none is found.

    Where the search does not come to rest, the nearest point that it has seen is taken, if its
    squared distance to the centre is about ``within``, in sds.
    """
    theta = posterior.start() if start is None else start.copy()
    weight = 1.0 if posterior.weight is None else posterior.weight
    damping, moved, least = _DAMPING, None, within
    found: tuple[Array, Array] | None = None
    for _ in range(_ROUNDS):
        design, Z, log_variance = posterior.mean_and_noise(theta)
        L, H = design.shape[1], posterior.prior_precision(theta)
        of_mean = H[:L, :L].copy()  # in units of the noise at the centre, if the prior is
        known = weight * np.exp(-log_variance)
        H[:L, :L] += (design.T * known) @ design
        try:
            root = inverse_root(H[:L, :L])
            theta[:L] += root @ (root.T @ posterior.grad(theta[None])[0, :L])
            grad = posterior.grad(theta[None])[0, L:]
            leverage = known * np.square(design @ root).sum(axis=1)
            share = np.clip(1.0 - leverage, 0.0, 1.0)
            H[L:, L:] += (Z.T * (0.5 * weight * np.square(share))) @ Z
            grad += 0.5 * leverage @ Z
            if posterior.prior.scaled_by_noise:
                grad[-1] += 0.5 * float(np.sum(root * (of_mean @ root)))
            step = solve_positive(H[L:, L:], grad)
        except np.linalg.LinAlgError:
            break
        distance = float(grad @ step)
        if not np.isfinite(distance):
            break
        if distance < least:
            least, found = distance, (theta.copy(), H)
        if distance < _CLOSE:
            break
        overshot = moved is not None and float(grad @ moved) < 0.0
        damping = damping * _SHORTER if overshot else min(damping * _LONGER, _DAMPING)
        moved = step * min(damping, _LONGEST / np.abs(Z @ step).max())
        theta[L:] += moved
    return found
