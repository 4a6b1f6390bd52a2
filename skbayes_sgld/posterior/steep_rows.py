"""A few rows whose log likelihood bends within the posterior, in coordinates of a metric."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import RowKernel
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.sparse_design import as_array


class SteepRows:
    """Rows of a posterior without own parameters, whose force in whitened coordinates is cheap.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior of all rows.
    rows : ndarray of int of shape (m,)
    """

    def __init__(self, posterior: GLMPosterior, rows: Array) -> None:
        part = posterior.take(rows)
        self.n_rows, self._map = len(rows), part.row_sum().coefficient_map
        self._design = as_array(part.design_rows(slice(0, len(rows))))
        self._kernel = part.row_sum(np.float32).kernel

    def bound(self, root: Array, center: Array, group: int | None) -> SteepForce:
        """Force of the rows in whitened coordinates z, ``theta = center + root z``.

        Products take ``group`` positions at once; None takes all.
        """
        both = (root.T, center[None])
        of_root, at = (self._map.coefficients(each) @ self._design.T for each in both)
        products = of_root.reshape(len(center), -1).astype(np.float32)
        return SteepForce(products, at[0].astype(np.float32), self._kernel, group)


class SteepForce:
    """Force of a few rows ``(C, P)`` at ``z (C, P)``, and steps along it.

    Parameters
    ----------
    products : ndarray of shape (P, K * m)
        Derivatives of the K predictors of the m rows in z.
    at : ndarray of shape (K, m)
        Predictors at z = 0.
    kernel : RowKernel
    group : int or None
        Positions in a product; None takes all.
    """

    def __init__(self, products: Array, at: Array, kernel: RowKernel, group: int | None) -> None:
        self._products, self._at, self._kernel, self._group = products, at, kernel, group
        self._transposed = np.ascontiguousarray(products.T)
        self._gram = self._transposed @ products

    def __call__(self, z: Array) -> Array:
        """Force at ``z (C, P)``."""
        score = self._score(self._times(z, self._products))
        return self._times(score, self._transposed)

    def follow(self, z: Array, momentum: Array, short: Array, n_short: int) -> tuple[Array, Array]:
        """Position and momentum after short steps of sizes ``short (C, 1)``.

        Each is half a rotation, which follows the force ``-z`` exactly, a kick by the rows, and the
        other half. All kicks are sums of the rows' own directions: only the predictors and these
        sums, far fewer numbers than z, are followed from kick to kick.
        """
        short = short.astype(np.float32, copy=False)
        u, v = self._times(z, self._products), self._times(momentum, self._products)
        # the predictors, and what kicks have added to z in the rows' directions; likewise for the
        # momentum
        moved, pushed = np.stack([u, np.zeros_like(u)]), np.stack([v, np.zeros_like(v)])
        half, whole = ((np.cos(angle), np.sin(angle)) for angle in (0.5 * short, short))
        cos, sin = half
        for left in range(n_short, 0, -1):
            moved, pushed = cos * moved + sin * pushed, cos * pushed - sin * moved
            kick = short * self._score(moved[0])
            pushed[0] += self._times(kick, self._gram)
            pushed[1] += kick
            cos, sin = whole if left > 1 else half
        moved, pushed = cos * moved + sin * pushed, cos * pushed - sin * moved
        cos, sin = np.cos(n_short * short), np.sin(n_short * short)
        z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
        z += self._times(moved[1], self._transposed)
        momentum += self._times(pushed[1], self._transposed)
        return z, momentum

    def _times(self, z: Array, products: Array) -> Array:
        return matmul_rows(z.astype(np.float32, copy=False), products, self._group or len(z))

    def _score(self, u: Array) -> Array:
        """Derivative of the rows' log likelihood ``(C, K * m)`` in predictors less those at 0."""
        with np.errstate(over="ignore"):
            (score,) = self._kernel.derivatives(u.reshape(-1, *self._at.shape) + self._at, 1)
        flat: Array = score.reshape(len(u), -1)
        return flat
