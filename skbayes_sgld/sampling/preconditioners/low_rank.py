"""A metric of a diagonal and a term for each row of the data, for more parameters than rows."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.sampling.dynamics import Array, Metric


class LowRank(Metric):
    """Inverse of ``diag(d) + F^T F``, F having fewer rows than there are parameters.

    With the thin singular value decomposition ``F d^{-1/2} = U S V^T`` a root is
    ``d^{-1/2} (I + V ((1 + S^2)^{-1/2} - 1) V^T)`` (by the Woodbury identity): O(m P) a product.

    Parameters
    ----------
    diagonal : ndarray of shape (P,)
        d, positive.
    factor : ndarray of shape (m, P)
        F.
    """

    def __init__(self, diagonal: Array, factor: Array) -> None:
        super().__init__(len(diagonal))
        self._sds = 1.0 / np.sqrt(diagonal)
        _, values, self._vectors = linalg.svd(
            factor * self._sds, full_matrices=False, overwrite_a=True
        )
        self._stretch = np.sqrt(1.0 + np.square(values))

    def _apply(self, x: Array, gain: Array) -> Array:
        """``(I + V (gain - 1) V^T) x``."""
        seen = matmul_rows(x, self._vectors.T) * (gain - 1.0)
        return x + matmul_rows(seen, self._vectors)

    def scale(self, v: Array) -> Array:
        """``G v``."""
        return self._sds * self._apply(v * self._sds, self._stretch**-2.0)

    def sqrt(self, z: Array) -> Array:
        """``R z``."""
        rows = z.reshape(-1, z.shape[-1])
        return (self._sds * self._apply(rows, 1.0 / self._stretch)).reshape(z.shape)

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        return self._apply(v * self._sds, 1.0 / self._stretch)

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return self._apply(x / self._sds, self._stretch)

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v``."""
        return self._apply(v, self._stretch) / self._sds

    @property
    def marginal_sd(self) -> Array:
        """The roots of the diagonal."""
        seen = (self._stretch**-2.0 - 1.0) @ np.square(self._vectors)
        return self._sds * np.sqrt(1.0 + seen)

    def stretched(self, sds: Array) -> Metric:
        """The metric times the mean variance: its form has no room for one a direction."""
        other = object.__new__(LowRank)
        vars(other).update(vars(self), _sds=self._sds * np.sqrt(np.mean(np.square(sds))))
        return other
