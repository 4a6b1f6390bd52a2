"""A few rows whose log likelihood bends within the posterior, in coordinates of a metric."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array
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

    def bound(self, root: Array, center: Array, group: int | None) -> Callable[[Array], Array]:
        """Force of the rows ``(C, P)`` at ``z (C, P)``, ``theta = center + root z``.

        Products take ``group`` positions at once; None takes all.
        """
        K, m = self._map.n_products, self.n_rows
        both = (root.T, center[None])
        of_root, at = (self._map.coefficients(each) @ self._design.T for each in both)
        products = of_root.reshape(len(center), K * m).astype(np.float32)
        products_t, at = np.ascontiguousarray(products.T), at.astype(np.float32)

        def force(z: Array) -> Array:
            size = group or len(z)
            u = matmul_rows(z.astype(np.float32, copy=False), products, size).reshape(-1, K, m)
            u += at
            with np.errstate(over="ignore"):
                (score,) = self._kernel.derivatives(u, 1)
            return matmul_rows(score.reshape(len(z), -1), products_t, size)

        return force
