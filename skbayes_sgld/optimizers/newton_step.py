"""Newton's step from a point: how far the mode is, and the normal approximation at the point."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from skbayes_sgld.optimizers.projections import BoundProjection
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.dynamics import Array
from skbayes_sgld.sampling.metric import Dense, Metric
from skbayes_sgld.sampling.tuning.mode import has_matrix, structured_metric


@dataclass(frozen=True)
class NewtonStep:
    """Newton's step from a point.

    Attributes
    ----------
    theta : ndarray of shape (P,)
        The point.
    metric : Metric
        Inverse curvature at the point. A log noise variance has its expected curvature, and no
        cross terms with the coefficients, as at the mode.
    distance : float
        Largest move of a coordinate, in its marginal posterior standard deviations.
    step : ndarray of shape (P,)
        The step, whitened.
    coordinates : ndarray of shape (n_coordinates, P) or None
        Matrix that maps whitened moves to moves of the coordinates in their marginal sds; its
        rows have length 1. None if the curvature is no matrix (:func:`has_matrix`).
    diagonal : ndarray of shape (P,) or None
        Diagonal of the curvature; None at the end of a search by Newton's method.
    """

    theta: Array
    metric: Metric
    distance: float
    step: Array
    coordinates: Array | None = None
    diagonal: Array | None = None


def newton_step(
    posterior: BasePosterior,
    theta: Array,
    temperature: float = 1.0,
    projection: BoundProjection | None = None,
) -> NewtonStep:
    """Newton's step from ``theta (P,)``, by one pass of gradient and curvature over all rows.

    If the noise is inferred, the coefficients step first, and the distance is measured with the
    noise variance that fits their new values. Far from the mode the current noise variance is too
    large, and would make every point look near.
    """
    noise = posterior.facts.noise_index
    with np.errstate(all="ignore"):
        grad = posterior.grad(theta[None])[0]
        metric, diagonal = _metric_at(posterior, theta, grad, noise)
        move = metric.scale(grad[None])[0]
        if noise is not None:
            expected = metric.marginal_sd[noise] ** -2.0  # it has no cross terms
            move[noise] = 0.0
        end = theta + move
        if projection is not None:
            end = projection(end[None], metric.root)[0]
        step = metric.whiten((end - theta)[None])[0]
        if noise is not None:
            slope = posterior.grad(end[None])[0, noise]
            ratio = max(1.0 + slope / expected, 1e-300)
            step = step / np.sqrt(ratio)
            step[noise] = np.sqrt(expected) * np.log(ratio)
        step = step / np.sqrt(temperature)
        coordinates = None
        if not has_matrix(posterior):
            away = metric.sqrt(step[None])[0] / metric.marginal_sd
        else:
            coordinates = posterior.reported.moves(metric.root.T).T
            length = np.linalg.norm(coordinates, axis=1, keepdims=True)
            coordinates = coordinates / np.where(length == 0.0, 1.0, length)
            away = coordinates @ step
        distance = float(np.abs(away).max())
    if not np.isfinite(distance):
        distance = np.inf
    return NewtonStep(theta, metric, distance, step, coordinates, diagonal)


def _metric_at(
    posterior: BasePosterior, theta: Array, grad: Array, noise: int | None
) -> tuple[Metric, Array]:
    """Metric of the inverse curvature, and the curvature's diagonal."""
    if not has_matrix(posterior):
        return structured_metric(posterior, theta)
    H = posterior.curvature(theta)
    if noise is not None:
        # for a normal likelihood E[-d2/dgamma2] = -d2/dgamma2 - d/dgamma, without cross terms
        expected = H[noise, noise] - grad[noise]
        H[noise], H[:, noise] = 0.0, 0.0
        H[noise, noise] = expected
    diagonal = np.diagonal(H)
    with suppress(np.linalg.LinAlgError):
        return Dense.from_curvature(H), diagonal
    if not np.isfinite(H).all():
        return Dense(np.full_like(H, np.nan)), diagonal
    # a root of |H|^-1, by absolute eigenvalues (Dauphin et al. 2014, Section 4). Steps without a
    # line search need it: of 108 fits under a prior with several modes 48 end far from one; with H
    # damped as in Newton's method, 71 do
    values, vectors = np.linalg.eigh(H)
    size = np.abs(values)
    size = np.maximum(size, max(1e-12 * size.max(), np.finfo(float).tiny))
    return Dense(vectors / np.sqrt(size)), diagonal
