r"""Sums over rows of products of the columns of a mixed model, and the elimination of its labels.

The effects of the L labels of one term depend on each other only through p other coefficients, the
*shared* ones: those of columns of X, the intercept, the effects of other terms. With effects
:math:`u_l = \Lambda v_l`, v standard normal, and the precision :math:`\phi` of the noise, labels
are eliminated one by one:

.. math:: U_l = \Lambda (I + \phi \Lambda^T A_l \Lambda)^{-1} \Lambda^T, \quad
    N = W - \phi \sum_l F_l^T U_l F_l

A, F and W are the sums of products of a label's columns with themselves, with the shared columns
and y, and of these with themselves. No step divides by a scale, and time is linear in L.

Conventions
-----------
Small blocks have their components first: ``A (q, q, L)``, ``U (q, q, C, L)`` for C positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array

_PACKED = 2**22  # most numbers of products that are kept
_POOLED = 0.7  # labels are pooled if their different blocks are fewer than this share


class LabelGram:
    """Sums over the rows of each label, and over all rows.

    Parameters
    ----------
    labels : ndarray of shape (q, q, L)
        Products A of the columns of a label's effects with themselves.
    cross : ndarray of shape (q, L, p + 1)
        Products F with the shared columns and, last, with the observations.
    shared : ndarray of shape (p + 1, p + 1)
        Products W of shared columns and observations.
    """

    def __init__(self, labels: Array, cross: Array, shared: Array) -> None:
        self.labels, self.cross, self.shared = labels, cross, shared
        self.q, self.n_labels, width = cross.shape
        self._pairs = [(i, j) for i in range(self.q) for j in range(i + 1)]
        self.distinct, self._counts = labels, np.ones(1)
        self._of_distinct: Any = slice(None)  # for each label, its place among the distinct ones
        upper = np.triu_indices(width)
        self._products: Any = None
        if len(self._pairs) * len(upper[0]) * self.n_labels <= _PACKED:
            self._upper = upper
            self._twice = np.where(upper[0] == upper[1], 1.0, 2.0)
            self._place = np.empty((width, width), int)
            self._place[upper] = self._place[upper[::-1]] = np.arange(len(upper[0]))
            self._pack()
        of_labels = cross.size
        if self._products is not None:
            of_labels = self._products.size // len(self._pairs)
        self.size = max(of_labels, shared.size)
        """Numbers that an evaluation reads for each position."""

    def _pack(self) -> None:
        """Keep the products ``F_i F_j'`` of each label, and add up those of labels alike."""
        key = np.stack([self.labels[pair] for pair in self._pairs], axis=1)
        distinct, place, counts = np.unique(key, axis=0, return_inverse=True, return_counts=True)
        a, b = self._upper
        F, products = self.cross, []
        for i, j in self._pairs:
            products.append(0.5 * (F[i][:, a] * F[j][:, b] + F[i][:, b] * F[j][:, a]))
        if len(distinct) < _POOLED * self.n_labels:
            self._counts, self._of_distinct = counts.astype(float), place.ravel()
            order = np.argsort(place.ravel(), kind="stable")
            starts = np.cumsum(counts) - counts
            products = [np.add.reduceat(each[order], starts) for each in products]
            self.distinct = np.empty((self.q, self.q, len(distinct)))
            for k, (i, j) in enumerate(self._pairs):
                self.distinct[i, j] = self.distinct[j, i] = distinct[:, k]
        self._products = np.concatenate(products)
        self._transposed = np.ascontiguousarray(self._products.T)

    # ---- elimination ----------------------------------------------------------------------------

    def eliminate(self, root: Array, scale: Array) -> tuple[Array, Array, Array]:
        """Matrix N ``(C, p + 1, p + 1)``, log determinants ``(C,)``, and U of distinct labels.

        ``root (C, q, q)`` is Lambda, and ``scale (C,)`` the precision of the noise.
        """
        U, _, log_det = label_covariances(self.distinct, root, scale)
        weighted = U * scale[:, None]
        if self._products is None:
            reduced: Any = 0.0
            for i in range(self.q):
                row = sum(weighted[i, j][..., None] * self.cross[j] for j in range(self.q))
                reduced = reduced + self.cross[i].T @ row
        else:
            flat = [weighted[i, j] * (1.0 if i == j else 2.0) for i, j in self._pairs]
            reduced = matmul_rows(np.concatenate(flat, axis=1), self._products)[:, self._place]
        return self.shared - reduced, (log_det * self._counts).sum(axis=1), U

    def slope(self, moments: Array, U: Array, root: Array, scale: Array) -> Array:
        """Gradient of the log marginal density in the lower triangle of Lambda ``(C, q, q)``.

        ``moments (C, p + 1, p + 1)`` are those of the shared coefficients and -1.
        """
        A, q, phi = self.distinct[:, :, None], self.q, scale[:, None]
        B = -phi * multiply_blocks(A, U)
        for i in range(q):
            B[i, i] += 1.0
        product = multiply_blocks(B, self._contract(moments)) * np.square(phi)
        alone = multiply_blocks(B, A) * (phi * self._counts)
        gamma = np.empty((len(root), q, q))
        for i in range(q):
            for j in range(q):
                each = sum(product[i, k] * B[j, k] for k in range(q)) - alone[i, j]
                gamma[:, i, j] = each.sum(axis=1)
        slope: Array = gamma @ root
        return slope

    def _contract(self, moments: Array) -> Array:
        """``F_l M F_l'`` of distinct labels ``(q, q, C, L)``."""
        q, C = self.q, len(moments)
        if self._products is None:
            rows = [each @ moments for each in self.cross]
            each = [[np.einsum("cld,ld->cl", row, F) for F in self.cross] for row in rows]
            return np.array(each)
        packed = matmul_rows(moments[:, *self._upper] * self._twice, self._transposed)
        packed = packed.reshape(C, len(self._pairs), -1)
        out = np.empty((q, q, C, packed.shape[2]))
        for k, (i, j) in enumerate(self._pairs):
            out[i, j] = out[j, i] = packed[:, k]
        return out

    def side(self, shared: Array, scale: Array) -> list[Array]:
        """Products of rows with residuals of the shared coefficients, ``(C, L)`` each effect."""
        with_y = np.column_stack([shared, np.full(len(shared), -1.0)])
        return [-scale[:, None] * matmul_rows(with_y, F.T) for F in self.cross]

    def draw(self, side: list[Array], normals: Array, root: Array, scale: Array) -> Array:
        """Effects ``(C, L, q)`` given their side, from standard normals."""
        U, V, _ = label_covariances(self.distinct, root, scale)
        U, V, q = U[..., self._of_distinct], V[..., self._of_distinct], self.q
        effects = [
            sum(U[i, j] * side[j] + V[j, i] * normals[..., j] for j in range(q)) for i in range(q)
        ]
        return np.stack(effects, axis=-1)


def label_covariances(A: Array, root: Array, scale: Array) -> tuple[Array, Array, Array]:
    """U ``(q, q, C, L)``, V with ``V' V = U``, and log determinants ``(C, L)``."""
    q, shape = len(A), (len(root), A.shape[2])
    R, phi = root.transpose(1, 2, 0)[..., None], scale[:, None]
    # Cholesky factor K of I + phi R' A R, by its entries
    AR = [[sum(A[i, k] * R[k, j] for k in range(j, q)) for j in range(q)] for i in range(q)]
    K: dict[tuple[int, int], Any] = {}
    log_det: Any = 0.0
    for i in range(q):
        for j in range(i + 1):
            entry: Any = sum(R[k, i] * AR[k][j] for k in range(i, q)) * phi
            if i == j:
                entry += 1.0
            for k in range(j):
                entry -= K[i, k] * K[j, k]
            if i == j:
                log_det = log_det + np.log(entry)
            K[i, j] = np.sqrt(entry) if i == j else entry / K[j, j]
    V = np.zeros((q, q, *shape))
    for i in range(q):  # K V = R'
        for j in range(q):
            V[i, j] = (R[j, i] - sum(K[i, k] * V[k, j] for k in range(i))) / K[i, i]
    U = np.square(V) if q == 1 else multiply_blocks(V.swapaxes(0, 1), V)
    return U, V, log_det


def multiply_blocks(A: Array, B: Array) -> Array:
    """Products of small blocks with their components first."""
    q = len(A)
    out = np.empty((q, q, *np.broadcast_shapes(A.shape[2:], B.shape[2:])), B.dtype)
    for i in range(q):
        for j in range(q):
            np.multiply(A[i, 0], B[0, j], out=out[i, j])
            for k in range(1, q):
                out[i, j] += A[i, k] * B[k, j]
    return out
