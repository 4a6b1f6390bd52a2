r"""Coefficients and few effects in coordinates that are standard normal given the scales.

With few labels the posterior of effects changes much with their scale, which has long tails: at a
small scale the effects are all near 0, and at a large one the intercept and the mean of the effects
are known only together. With the likelihood expanded about the mode, to
:math:`b' \beta - \beta' G \beta / 2`, the coefficients :math:`\beta = T(h) v` are normal given h,

.. math:: A = T' G T + \Lambda, \quad A = K K', \quad v = A^{-1} (T' b + q) + K^{-T} z,

where T has the factors of the learned covariances of effects. :math:`\Lambda` and q are the
precision and the pull of the priors that are not learned; for effects they are 1 and 0. No step
divides by a scale.

**References.** Murray (2016), Differentiation of the Cholesky decomposition, arXiv 1602.07527.
"""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import inverse_factors
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.collapsed import Marginal
from skbayes_sgld.mixed.posterior import log_determinant
from skbayes_sgld.mixed.working import WorkingModel
from skbayes_sgld.posterior.parameterizations.base import Expanded

MOST_EFFECTS = 32  # coefficients and effects, whose matrices are factored at every step


class GivenScales:
    """Coordinates of coefficients and effects that are standard normal given hyperparameters.

    Parameters
    ----------
    working : WorkingModel
    marginal : Marginal
        Expansion of the likelihood about the mode.
    """

    def __init__(self, working: WorkingModel, marginal: Marginal) -> None:
        self._working, self._marginal = working, marginal
        self._covariances, gram = working.posterior.covariances, marginal.gram
        q, L, p = gram.q, gram.n_labels, gram.shared.shape[0] - 1
        self._n_labels = L * q
        n = L * q + p
        G, self._side = np.zeros((n, n)), np.zeros(n)
        for k in range(L):
            at = slice(k * q, (k + 1) * q)
            G[at, at] = gram.labels[:, :, k]
            G[at, L * q :] = gram.cross[:, k, :p]
            self._side[at] = gram.cross[:, k, p]
        G[L * q :, : L * q] = G[: L * q, L * q :].T
        G[L * q :, L * q :] = gram.shared[:p, :p]
        self._side[L * q :] = gram.shared[:p, p]
        self._gram, self._precision, self._pull = G, np.eye(n), np.zeros(n)
        self._precision[L * q :, L * q :] = marginal.precision
        self._pull[L * q :] = marginal.pull
        others = zip(working.other_terms, working.at_others, strict=True)
        firsts = {k: L * q + place.start for k, place in others}
        if working.main is not None:
            firsts[working.main] = 0
        self._blocks = []
        for k, first in firsts.items():
            term = working.posterior.terms[k]
            self._blocks.append((k, first + np.arange(term.size).reshape(-1, len(term.effects))))
        """Terms, and the places ``(L, q)`` of their labels' effects."""

    def _factor(self, roots: list[Array]) -> Array:
        """Matrix T ``(C, n, n)``."""
        T = np.tile(np.eye(len(self._gram)), (len(roots[0]), 1, 1))
        for k, places in self._blocks:
            T[:, places[:, :, None], places[:, None]] = roots[k][:, None]
        return T

    def _given(self, h: Array) -> tuple[list[Array], Array, Array, Array, Array, Array]:
        """Factors of covariances, T, G T, ``K^{-1}``, log det, ``K^{-1} (T' b + q)``."""
        roots = self._marginal.roots(h)
        T = self._factor(roots)
        GT = self._gram @ T
        inverse, log_root = inverse_factors(T.swapaxes(1, 2) @ GT + self._precision)
        side = np.einsum("cji,j->ci", T, self._side) + self._pull
        return roots, T, GT, inverse, log_root, np.einsum("cij,cj->ci", inverse, side)

    def expand(self, z: Array, h: Array) -> Expanded:
        """Linear parameters, the log Jacobian and the chain rule."""
        roots, T, GT, inverse, log_root, half = self._given(h)
        z = self._split(z)
        v = np.einsum("cji,cj->ci", inverse, half + z)
        linear = np.einsum("cij,cj->ci", T, v)
        log_jacobian = log_root + log_determinant(T)

        def pull_back(grad: Array, tau: float) -> Array:
            g = self._split(grad)
            a = np.einsum("cij,cj->ci", inverse, np.einsum("cji,cj->ci", T, g))
            in_side = np.einsum("cji,cj->ci", inverse, a)
            in_K = -(half + z)[:, :, None] * a[:, None] - a[:, :, None] * half[:, None]
            in_K -= tau * np.eye(len(self._gram))
            # the gradient in A is K^{-T} S K^{-1} / 2, where S is symmetric with the lower triangle
            # of K' times the gradient in K (Murray 2016)
            S = np.where(np.tri(len(self._gram), dtype=bool), in_K, in_K.swapaxes(1, 2))
            left = GT @ (inverse.swapaxes(1, 2) @ S)
            in_h = np.zeros_like(h)
            for k, places in self._blocks:
                q = places.shape[1]
                # np.take, since the order of an index's result, and so of sums, depends on C
                in_root = np.take(g, places, 1).swapaxes(1, 2) @ np.take(v, places, 1)
                in_root += self._side[places].T @ np.take(in_side, places, 1)
                of_rows = np.take(left, places, 1).swapaxes(1, 2).reshape(len(g), q, -1)
                of_columns = np.take(inverse, places, 2).swapaxes(1, 2).reshape(len(g), -1, q)
                in_root += of_rows @ of_columns
                i = np.arange(q)
                in_root[:, i, i] += tau * len(places) / roots[k][:, i, i]
                covariance, at = self._covariances.each[k], self._covariances.at[k]
                in_h[:, at] += covariance.pull_back(h[:, at], in_root)
            return np.hstack([self._join(a), in_h])

        return Expanded(self._join(linear), log_jacobian, pull_back)

    def inverse(self, linear: Array, h: Array) -> Array:
        """Coordinates of linear parameters."""
        _, T, _, inverse, _, half = self._given(h)
        v = np.linalg.solve(T, self._split(linear)[..., None])
        return self._join(np.linalg.solve(inverse.swapaxes(1, 2), v)[..., 0] - half)

    def _split(self, linear: Array) -> Array:
        """Values of labels first and shared ones last, from the order of theta."""
        return np.hstack([each.reshape(len(linear), -1) for each in self._working.split(linear)])

    def _join(self, values: Array) -> Array:
        """Linear parameters in the order of theta, from labels first and shared ones last."""
        labels, shared = np.split(values, [self._n_labels], axis=1)
        working = self._working
        return working.join(labels.reshape(len(values), working.n_labels, working.q), shared)
