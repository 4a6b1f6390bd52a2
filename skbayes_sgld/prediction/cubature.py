"""Means over the draws of smooth functions of several predictors, from nodes of each row.

The predictors of a row and the likelihood's own parameters are taken to be normal, with their means
and covariance over the draws. The rule of McNamee and Stenger (1967) is exact for polynomials of
degree five and takes ``2 m^2 + 1`` nodes for m coordinates: 73 for seven classes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skbayes_sgld._typing import Array

_RARE = 20.0  # rows beside each row of a rare category
_DEPENDENT = 1e-10  # relative variance of a combination that no row has
_JITTER = 1e-7  # of a variance, so that predictors that depend on each other have a factor


class Cubature:
    """Nodes of rows, from the coordinates of their predictors along some directions.

    Parameters
    ----------
    directions : ndarray of shape (K, m, S)
        As those of a ``Spread``.
    own : ndarray of shape (S, q)
        Own coordinates under every draw.
    share : ndarray of shape (S,)

    Attributes
    ----------
    weights : ndarray of shape (J,)
        Those of the nodes, of which the first is the mean. They add up to 1; some may be negative.
    own : ndarray of shape (J, q)
        Own coordinates at the nodes.
    """

    def __init__(self, directions: Array, own: Array, share: Array) -> None:
        (self._K, self._m, _), q = directions.shape, own.shape[1]
        self._nodes, self.weights = rule(self._K + q)
        mean = share @ own
        away = own - mean
        root = np.linalg.cholesky(_with_jitter((away.T * share) @ away))
        white = np.linalg.solve(root, away.T)
        self.own = mean + self._nodes[:, :q] @ root.T
        each = directions.reshape(-1, len(share))
        weighted = each * share
        self._forms, self._slopes = weighted @ each.T, weighted @ white.T

    def __call__(self, coordinates: Array) -> Array:
        """Predictors ``(n, K, J)`` at the nodes, from the coordinates ``(K, n, m + 1)``.

        They are in single precision, as those under the draws.
        """
        K, m, _q = self._K, self._m, self.own.shape[1]
        center, a = coordinates[..., -1].T, coordinates[..., :-1]
        slopes = np.stack([a[k] @ self._slopes[k * m : (k + 1) * m] for k in range(K)], axis=1)
        covariance = np.empty((len(center), K, K))
        for k in range(K):
            of_k = (a[k] @ self._forms[k * m : (k + 1) * m]).reshape(-1, K, m)
            covariance[:, k] = np.einsum("njm,jnm->nj", of_k, a)
        covariance -= slopes @ slopes.swapaxes(1, 2)
        roots = np.concatenate([slopes, np.linalg.cholesky(_with_jitter(covariance))], axis=2)
        at: Array = roots.astype(np.float32) @ self._nodes.T.astype(np.float32)
        at += center[..., None].astype(np.float32)
        return at


def rule(m: int) -> tuple[Array, Array]:
    """Nodes ``(J, m)`` and weights ``(J,)`` of degree five of m standard normal variables."""
    axes, reach = np.eye(m), np.sqrt(3.0)
    corners = [
        axes[i] + sign * axes[j] for i, j in combinations(range(m), 2) for sign in (1.0, -1.0)
    ]
    half = np.concatenate([axes, np.array(corners).reshape(-1, m)]) * reach
    nodes = np.concatenate([np.zeros((1, m)), half, -half])
    each = np.concatenate([np.full(m, (4.0 - m) / 18.0), np.full(len(corners), 1.0 / 36.0)])
    weights = np.concatenate([[1.0 + m * (m - 7.0) / 18.0], each, each])
    return nodes, weights


def combined(coordinates: Array) -> Array:
    """Numbers ``(n, m)`` that tell rows apart as their coordinates ``(K, n, m + 1)`` do.

    These are K linear functions of the same m numbers of a row, so that m random combinations of
    all tell as much.
    """
    K, _, m = coordinates[..., :-1].shape
    mixed: Array = np.einsum(
        "knm,kmj->nj", coordinates[..., :-1], np.random.default_rng(0).standard_normal((K, m, m))
    )
    return mixed


def are_unlike_others(numbers: Array) -> Array:
    """Mask ``(n,)`` of rows ``(n, m)`` that have a direction nearly to themselves.

    Their leverage is twice the mean leverage, and that of a row whose category has a twentieth of
    the rows.
    """
    value, vector = np.linalg.eigh(numbers.T @ numbers)
    some = value > _DEPENDENT * value.max(initial=0.0)
    white = numbers @ (vector[:, some] / np.sqrt(value[some]))
    unlike: Array = np.square(white).sum(axis=1) * len(numbers) > 2.0 * some.sum() + _RARE
    return unlike


def _with_jitter(covariance: Array) -> Array:
    """Covariances ``(..., m, m)`` with variances that are larger by a little."""
    variance = np.einsum("...ii->...i", covariance)
    variance *= 1.0 + _JITTER
    variance += np.finfo(float).tiny
    return covariance
