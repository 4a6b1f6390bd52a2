"""Means over the draws of smooth functions of several predictors, from nodes of each row.

The predictors of a row and the likelihood's own parameters are taken to be normal, with their means
and covariance over the draws. The rule of McNamee and Stenger (1967) is exact for polynomials of
degree five and takes ``2 m^2 + 1`` nodes for m coordinates: 73 for seven classes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.linalg import solve_triangular

from skbayes_sgld._typing import Array

_DRAWS_EACH = 3  # moved draws for each coordinate: with fewer they become normal
_FARTHEST = 8  # moved draws for each of those that are the farthest
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
    reach : float
        Largest distance of a draw from the mean, in sds: no skewness is larger.
    """

    def __init__(self, directions: Array, own: Array, share: Array) -> None:
        (self._K, self._m, _), q = directions.shape, own.shape[1]
        self._nodes, self.weights = rule(self._K + q)
        self._mean, self._share, flat = share @ own, share, self._K * self._m
        every = np.concatenate([directions.reshape(flat, -1), (own - self._mean).T])
        covariance = (every * share) @ every.T
        root = np.linalg.cholesky(_with_jitter(covariance[flat:, flat:]))
        self.own = self._mean + self._nodes[:, :q] @ root.T
        self._slopes = np.linalg.solve(root, covariance[flat:, :flat]).T
        self._forms = covariance[:flat, :flat]
        self._root = np.linalg.cholesky(_with_jitter(covariance))
        self._white = solve_triangular(self._root, every, lower=True)
        self._distance = np.einsum("ij,ij->j", self._white, self._white)
        self.reach = float(np.sqrt(self._distance.max()))

    def moved_draws(self, n: int) -> tuple[Array, Array, Array] | None:
        """Some of the draws, moved so that their means and covariances are those of all draws.

        A mean over them differs from that over the nodes by what the nodes leave out: skewness and
        tails. The draws farthest from the mean are among them. Returns directions ``(K, m, r)``,
        own coordinates ``(r, q)`` and weights ``(r,)``, of n draws or more; None if these are most
        of the draws.
        """
        D, S = self._white.shape
        n = max(n, _DRAWS_EACH * D)
        if 2 * n > S:
            return None
        near, far = np.split(np.argsort(self._distance), [S - n // _FARTHEST])
        upto = np.cumsum(self._share[near])
        at = (np.arange(n - len(far)) + 0.5) * (upto[-1] / (n - len(far)))
        weight = np.append(np.full(len(at), upto[-1] / len(at)), self._share[far])
        some = self._white[:, np.append(near[np.searchsorted(upto, at)], far)]
        some = some - (some @ weight)[:, None]
        given = np.linalg.cholesky(_with_jitter((some * weight) @ some.T))
        some = self._root @ solve_triangular(given, some, lower=True)
        flat = self._K * self._m
        return some[:flat].reshape(self._K, self._m, n), self._mean + some[flat:].T, weight

    def __call__(self, coordinates: Array) -> Array:
        """Predictors ``(n, K, J)`` at the nodes, from the coordinates ``(K, n, m + 1)``.

        They are in single precision, as those under the draws.
        """
        K, m = self._K, self._m
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


def _with_jitter(covariance: Array) -> Array:
    """Covariances ``(..., m, m)`` with variances that are larger by a little."""
    covariance = covariance.copy()
    variance = np.einsum("...ii->...i", covariance)
    variance *= 1.0 + _JITTER
    variance += np.finfo(float).tiny
    return covariance
