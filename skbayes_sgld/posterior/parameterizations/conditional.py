r"""Coefficients given their scales, in coordinates that are standard normal.

Where the log likelihood is expanded to :math:`t (g' \beta - \beta' H \beta / 2)`, with t the ratio
of a reference noise variance to the noise variance, and the prior precisions of the coefficients
are :math:`\lambda`, the coefficients are normal with the precision :math:`P = t H + diag(\lambda)`
and the mean :math:`P^{-1} t g`. The maps here are :math:`\beta = P^{-1} t g + R z`, with
:math:`R R' = P^{-1}`, and their derivatives.

Conventions
-----------
``z, beta (C, L)``, ``log_precision (C, L)`` is the log of lambda (minus infinity for a flat
prior), ``log_t (C,)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import inverse_root, matmul_rows

Array = NDArray[Any]


class Solved(NamedTuple):
    """Coefficients, the log determinant of R, and what the derivatives need."""

    beta: Array
    log_det: Array
    parts: tuple[Array, ...]


class Pulled(NamedTuple):
    """Derivatives in z ``(C, L)``, in the log precisions ``(C, L)`` and in log t ``(C,)``."""

    z: Array
    log_precision: Array
    log_t: Array


class CommonScale:
    """The map where all precisions change by one factor: diagonal in one basis.

    Parameters
    ----------
    H : ndarray of shape (L, L)
    g : ndarray of shape (L,)
    log_precision : ndarray of shape (L,)
        Prior precisions at the reference.
    power : float, default=0.0
        The information of the rows is taken to change as this power of the prior precisions: that
        of a classifier falls as its coefficients grow.
    """

    def __init__(self, H: Array, g: Array, log_precision: Array, power: float = 0.0) -> None:
        self._power = power
        prior = np.exp(log_precision)
        root = inverse_root(H + np.diag(prior))
        share, vectors = np.linalg.eigh(root.T @ (prior[:, None] * root))
        self._basis, self._prior = root @ vectors, np.clip(share, 0.0, 1.0)
        self._transposed = np.ascontiguousarray(self._basis.T)
        self._pull, self._rows = g @ self._basis, 1.0 - self._prior
        self._column = int(np.argmax(np.isfinite(log_precision)))
        self._reference = log_precision[self._column]

    def solve(self, z: Array, log_precision: Array, log_t: Array) -> Solved:
        """Coefficients at z."""
        of_prior, of_rows, D, mean = self._parts(log_precision, log_t)
        own = z / np.sqrt(D)
        beta = matmul_rows(mean + own, self._transposed)
        return Solved(beta, -0.5 * np.log(D).sum(axis=1), (of_prior, of_rows, D, mean, own))

    def _parts(self, log_precision: Array, log_t: Array) -> tuple[Array, Array, Array, Array]:
        log_ratio = log_precision[:, self._column] - self._reference
        t = np.exp(log_t + self._power * log_ratio)[:, None]
        of_prior, of_rows = np.exp(log_ratio)[:, None] * self._prior, t * self._rows
        D = of_prior + of_rows
        return of_prior, of_rows, D, t * self._pull / D

    def pull(self, solved: Solved, in_beta: Array, in_log_det: float) -> Pulled:
        """Gradient from that in beta, and a multiple of the log determinant's."""
        of_prior, of_rows, D, mean, own = solved.parts
        in_w = matmul_rows(in_beta, self._basis)
        in_D = -in_w * (mean + 0.5 * own) - 0.5 * in_log_det  # times D
        in_log_t = (in_w * mean + in_D * of_rows / D).sum(axis=1)
        in_log_precision = np.zeros_like(in_beta)
        in_log_precision[:, self._column] = (in_D * of_prior / D).sum(axis=1)
        in_log_precision[:, self._column] += self._power * in_log_t
        return Pulled(in_w / np.sqrt(D), in_log_precision, in_log_t)

    def marginal(
        self, log_precision: Array, log_t: Array, in_log_det: float
    ) -> tuple[Array, Array, Array]:
        """Log of the integral over beta, with its derivatives, where the expansion is exact."""
        of_prior, of_rows, D, mean = self._parts(log_precision, log_t)
        fit = np.square(mean) * D  # (t g)^2 / D
        value = 0.5 * (fit - in_log_det * np.log(D)).sum(axis=1)
        in_D = -0.5 * (np.square(mean) + in_log_det / D)
        in_log_precision = np.zeros(log_precision.shape)
        in_log_precision[:, self._column] = (in_D * of_prior).sum(axis=1)
        return value, in_log_precision, (fit + in_D * of_rows).sum(axis=1)


class OwnScales:
    """The map where every precision changes by itself: a Cholesky factor at each point."""

    def __init__(self, H: Array, g: Array, log_precision: Array, power: float = 0.0) -> None:
        self._H, self._g = H, g

    def solve(self, z: Array, log_precision: Array, log_t: Array) -> Solved:
        """Coefficients at z."""
        t, precision = np.exp(log_t), np.exp(log_precision)
        A, mean, log_det = self._parts(precision, t)
        beta = mean + np.einsum("cij,ci->cj", A, z)
        return Solved(beta, log_det, (A, mean, z, precision, t))

    def _parts(self, precision: Array, t: Array) -> tuple[Array, Array, Array]:
        """Inverse of P's factor, the mean, and the log determinant of R."""
        P = t[:, None, None] * self._H
        at = np.arange(len(self._g))
        P[:, at, at] += precision
        unit = 1.0 / np.sqrt(P[:, at, at])  # columns in units of their own
        lower = _cholesky(P * unit[:, :, None] * unit[:, None, :])
        A = np.linalg.inv(lower) * unit[:, None, :]
        mean = np.einsum("cij,ci->cj", A, np.einsum("cij,j->ci", A, self._g)) * t[:, None]
        log_det = (np.log(unit) - np.log(np.diagonal(lower, axis1=1, axis2=2))).sum(axis=1)
        return A, mean, log_det

    def marginal(
        self, log_precision: Array, log_t: Array, in_log_det: float
    ) -> tuple[Array, Array, Array]:
        """Log of the integral over beta, with its derivatives, where the expansion is exact."""
        t, precision = np.exp(log_t), np.exp(log_precision)
        A, mean, log_det = self._parts(precision, t)
        fit = t * (mean @ self._g)
        variances = np.square(A).sum(axis=1)
        in_log_precision = -0.5 * precision * (np.square(mean) + in_log_det * variances)
        # P's log determinant changes with t and with the precisions together
        of_precision = (precision * variances).sum(axis=1)
        square = (precision * np.square(mean)).sum(axis=1)  # mean' P mean is fit
        in_log_t = fit - 0.5 * (fit - square) - 0.5 * in_log_det * (len(self._g) - of_precision)
        return 0.5 * fit + in_log_det * log_det, in_log_precision, in_log_t

    def pull(self, solved: Solved, in_beta: Array, in_log_det: float) -> Pulled:
        """Gradient from that in beta, and a multiple of the log determinant's."""
        A, mean, z, precision, t = solved.parts
        q = np.einsum("cij,cj->ci", A, in_beta)
        v = np.einsum("cij,ci->cj", A, q)
        weighted = A * q[:, :, None]
        before = np.cumsum(weighted, axis=1) - 0.5 * weighted
        of_factor = np.einsum("cij,ci,cij->cj", A, z, before)
        own = v * mean + of_factor + 0.5 * in_log_det * np.square(A).sum(axis=1)
        M = np.einsum("cij,jk,clk->cil", A, self._H, A, optimize=True)
        half = np.tril(M, -1) + 0.5 * np.einsum("cii->ci", M)[:, :, None] * np.eye(z.shape[1])
        in_t = v @ self._g - np.einsum("cj,jk,ck->c", v, self._H, mean, optimize=True)
        in_t -= np.einsum("ci,cik,ck->c", z, half, q)
        in_t -= 0.5 * in_log_det * np.einsum("cii->c", M)
        return Pulled(q, -precision * own, t * in_t)


def _cholesky(P: Array) -> Array:
    """Cholesky factors ``(C, L, L)``; of a matrix that has none, not a number."""
    try:
        return np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        factors = np.full_like(P, np.nan)
        for c, one in enumerate(P):
            try:
                factors[c] = np.linalg.cholesky(one)
            except np.linalg.LinAlgError:
                continue
        return factors
