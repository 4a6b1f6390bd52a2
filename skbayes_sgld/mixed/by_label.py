r"""Mixed models with one term and any likelihood, whose effects are integrated out label by label.

Given the coefficients, the hyperparameters and the own parameters, labels are independent. With
effects :math:`u_l = \Lambda v_l`, v standard normal, the likelihood of a label is an integral over
the q entries of v, which adaptive Gauss-Hermite quadrature takes about their mode (Pinheiro & Bates
1995). The gradient of its log is the mean of that of the log likelihood over the nodes (Fisher's
identity). No step divides by a scale.

The effects of a draw are drawn given the other parameters, from their first four moments at the
same nodes (Cornish & Fisher 1938).

Conventions
-----------
Arrays of labels are ``(..., C, L)`` for C positions, and of rows ``(C, n)``, sorted by label.
``theta`` holds coefficients, hyperparameters and own parameters.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._random import generator_of
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.coordinates import JointMode
from skbayes_sgld.mixed.gram import multiply_blocks
from skbayes_sgld.mixed.posterior import MixedPosterior, refusing
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.parameters import Parameters
from skbayes_sgld.posterior.protocol import Facts, Reported

_NUMBERS = 2**16  # rows times positions of a pass
_FARTHEST = 2.0  # step of a label's predictor to its mode


class Moments(NamedTuple):
    """Moments of the effects of each label given theta.

    Attributes
    ----------
    mean : ndarray of shape (q, C, L)
    root : ndarray of shape (q, q, C, L)
        Times the factor of the learned covariance: root of the covariance.
    skewness, excess : ndarray of shape (q, C, L)
        Third and fourth cumulants of the effects standardised by the root.
    """

    mean: Array
    root: Array
    skewness: Array
    excess: Array

    @classmethod
    def joined(cls, parts: list[Moments]) -> Moments:
        """Moments at all positions."""
        return cls(*(np.concatenate(each, axis=-2) for each in zip(*parts, strict=True)))

    @classmethod
    def normal(cls, G: Array, side: Array, factor: Array) -> Moments:
        """Moments of a label with the information G ``(q, q, 1, L)`` and the side ``(q, C, L)``.

        The factor of the learned covariance is ``(C, q, q)``.
        """
        mean, _, inverse, _, _ = _normal_effects(G, side, factor.transpose(1, 2, 0)[..., None])
        return cls(mean, inverse, np.zeros_like(mean), np.zeros_like(mean))

    def draw(self, normals: Array, factor: Array) -> Array:
        """Effects ``(q, C, L)`` with these moments, from standard normals.

        By the expansion of a quantile in cumulants, scaled so that the variance is 1. The factor of
        the learned covariance is ``(C, q, q)``.
        """
        second = np.clip(self.skewness, -1.0, 1.0) / 6.0
        third = np.clip(self.excess, -1.0, 1.0) / 24.0 - 2.0 * np.square(second)
        square = np.square(normals)
        z = normals * (third * (square - 3.0) + 1.0) + second * (square - 1.0)
        z /= np.sqrt(1.0 + 2.0 * np.square(second) + 6.0 * np.square(third))
        q, R = len(z), factor.transpose(1, 2, 0)[..., None]
        for matrix in (self.root, R):
            z = np.stack([sum(matrix[i, j] * z[j] for j in range(q)) for i in range(q)])
        drawn: Array = self.mean + z
        return drawn


class Found(NamedTuple):
    """Log likelihood ``(C,)``, its gradient ``(C, P)``, and the moments of effects."""

    value: Array
    grad: Array
    moments: Moments

    @classmethod
    def joined(cls, parts: list[Found]) -> Found:
        """Likelihood, gradient and moments at all positions."""
        value, grad, moments = zip(*parts, strict=True)
        return cls(np.concatenate(value), np.concatenate(grad), Moments.joined(list(moments)))


class _Nodes(NamedTuple):
    """Quadrature at some positions: what rows say at each of K nodes."""

    value: Array  # (C,)
    share: Array  # (K, C, L), of the posterior of the effects
    scores: list[Array]  # (C, n_local, n)
    v: Array  # (K, q, C, L)
    center: Array  # (q, C, L), of the effects
    spread: Array  # (q, q, C, L), times a node; and for v
    inverse: Array


class LabelQuadrature:
    """Log likelihood of all rows with the effects integrated out, and moments of the effects.

    Parameters
    ----------
    posterior : MixedPosterior
        With one term.
    at : JointMode
        Its mode, near which effects are sought.
    n_nodes : int
        Nodes in each effect.
    n_newton : int
        Steps to the mode of a label's effects, from those of the joint mode.
    """

    def __init__(
        self, posterior: MixedPosterior, at: JointMode, n_nodes: int, n_newton: int
    ) -> None:
        working, (covariance,) = at.working, posterior.covariances.each
        self._covariance, self._n_newton = covariance, n_newton
        self.q, self.n_labels = working.q, working.n_labels
        order, starts = working.order, working.starts
        self._starts, self._sizes = starts[:-1], np.diff(starts)
        empty = self._sizes == 0  # labels whose rows have a weight of 0
        self._empty = empty if empty.any() else None
        self._X = np.ascontiguousarray(working.fixed[order])
        self._transposed = np.ascontiguousarray(self._X.T)
        values = working.values[order].T
        self._values = [None if np.all(each == 1.0) else each.copy() for each in values]
        self._kernel = posterior.model.row_sum().kernel[..., order]
        self._start = posterior.effects(at.linear[None])[0][0].T[:, None]  # (q, 1, L)
        self.n_fixed, self.n_hyper = self._X.shape[1], covariance.n_hyper
        self._n_own = posterior.n_own
        self.step = max(1, _NUMBERS // len(order))
        z, w = np.polynomial.hermite_e.hermegauss(n_nodes)
        grid = np.array(list(product(range(n_nodes), repeat=self.q)))
        weight = np.prod(w[grid] / w.sum(), axis=1)
        keep = np.square(z[grid]).sum(axis=1) < 1.001 * z[-1] ** 2  # without the corners
        self._z = z[grid[keep]]
        # with the normal density in place of its weight function
        self._log_weight = np.log(weight[keep]) + 0.5 * np.square(self._z).sum(axis=1)

    # ---- rows and labels ------------------------------------------------------------------------

    def _sum(self, rows: Array) -> Array:
        """Sums over the rows of each label."""
        if self._empty is None:
            return np.add.reduceat(rows, self._starts, axis=-1)
        sums = np.zeros((*rows.shape[:-1], self.n_labels))
        sums[..., ~self._empty] = np.add.reduceat(rows, self._starts[~self._empty], axis=-1)
        return sums

    def _spread(self, labels: Array) -> Array:
        """Values of the label of each row."""
        return np.repeat(labels, self._sizes, axis=-1)

    def _times(self, rows: Array, effect: int) -> Array:
        """Rows times the numbers of an effect."""
        values = self._values[effect]
        return rows if values is None else rows * values

    def _local(self, base: Array, own: Array, effects: Any) -> Array:
        """Local parameters ``(C, n_local, n)`` with these effects."""
        local = np.empty((len(base), 1 + own.shape[1], base.shape[1]))
        local[:, 0] = base
        for k, each in enumerate(effects):
            local[:, 0] += self._times(self._spread(each), k)
        local[:, 1:] = own[:, :, None]
        return local

    def _split(self, theta: Array) -> tuple[Array, Array, Array]:
        """Predictors without effects ``(C, n)``, factor ``(C, q, q)``, own parameters."""
        d, m = self.n_fixed, self.n_hyper
        base = matmul_rows(theta[:, :d], self._transposed)
        return base, self._covariance.root(theta[:, d : d + m]), theta[:, d + m :]

    # ---- quadrature -----------------------------------------------------------------------------

    def _label_modes(self, base: Array, own: Array, root: Array) -> tuple[Array, ...]:
        """Modes of effects u and of v, the inverse root of v's precision, and its log determinant.

        v has the precision ``I + root' G root``, where G is the curvature of a label's rows.
        """
        q, u, R = self.q, self._start, root.transpose(1, 2, 0)[..., None]
        for _ in range(self._n_newton):
            score, curvature = self._kernel.derivatives(self._local(base, own, u), 1, 2)[:2]
            weight, score = np.maximum(curvature[:, 0, 0], 0.0), score[:, 0]
            G: Any = [[None] * q for _ in range(q)]
            for i in range(q):
                for j in range(i + 1):
                    G[i][j] = G[j][i] = self._sum(self._times(self._times(weight, i), j))
            side = [self._sum(self._times(score, i)) for i in range(q)]
            side = [side[i] + sum(G[i][j] * u[j] for j in range(q)) for i in range(q)]
            found = _normal_effects(G, side, R)
            move = found[0] - u
            u = u + move * np.minimum(1.0, _FARTHEST / np.maximum(np.abs(move), 1e-300))
        return found

    def _nodes(self, theta: Array, with_scores: bool) -> _Nodes:
        base, root, own = self._split(theta)
        q = self.q
        center, v0, inverse, spread, log_det = self._label_modes(base, own, root)
        terms, scores, vs = [], list[Array](), []
        for z, log_weight in zip(self._z, self._log_weight, strict=True):
            at = [center[i] + sum(spread[i, j] * z[j] for j in range(q)) for i in range(q)]
            v = np.stack([v0[i] + sum(inverse[i, j] * z[j] for j in range(q)) for i in range(q)])
            local = self._local(base, own, at)
            if with_scores:
                value, score = self._kernel.derivatives(local, 0, 1)
                scores.append(score)
            else:
                (value,) = self._kernel.derivatives(local, 0)
            terms.append(self._sum(value) + (log_weight - 0.5 * np.square(v).sum(axis=0)))
            vs.append(v)
        each = np.stack(terms)
        top = each.max(axis=0)
        each = np.exp(each - top)
        total = each.sum(axis=0)
        value = (top + np.log(total) - 0.5 * log_det).sum(axis=1)
        return _Nodes(value, each / total, scores, np.stack(vs), center, spread, inverse)

    def _chunks(self, theta: Array) -> list[Array]:
        return [theta[k : k + self.step] for k in range(0, len(theta), self.step)]

    def value(self, theta: Array) -> Array:
        """Log likelihood ``(C,)``; minus infinity where it is beyond floating point."""
        with np.errstate(all="ignore"):
            values = [self._nodes(some, False).value for some in self._chunks(theta)]
        return _finite(np.concatenate(values))

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)``."""
        with np.errstate(all="ignore"):
            parts = [self._slope(some, self._nodes(some, True)) for some in self._chunks(theta)]
        value, grad = (np.concatenate(each) for each in zip(*parts, strict=True))
        return refusing(value, grad)

    def _slope(self, theta: Array, nodes: _Nodes) -> tuple[Array, Array]:
        """Value and gradient, from the nodes."""
        C, q, d, m = len(theta), self.q, self.n_fixed, self.n_hyper
        of_rows, in_root = np.zeros((C, len(self._X))), np.zeros((C, q, q))
        in_own = np.zeros((C, self._n_own))
        for share, score, v in zip(nodes.share, nodes.scores, nodes.v, strict=True):
            weight = self._spread(share)
            weighted = score[:, 0] * weight
            of_rows += weighted
            for i in range(q):
                side = self._sum(self._times(weighted, i))
                for j in range(i + 1):
                    in_root[:, i, j] += np.einsum("cl,cl->c", side, v[j])
            if self._n_own:
                in_own += np.einsum("ckn,cn->ck", score[:, 1:], weight)
        in_h = self._covariance.pull_back(theta[:, d : d + m], in_root)
        return nodes.value, np.hstack([matmul_rows(of_rows, self._X), in_h, in_own])

    def moments(self, theta: Array) -> Moments:
        """Moments of the effects given theta."""
        with np.errstate(all="ignore"):
            parts = [self._moments(self._nodes(some, False)) for some in self._chunks(theta)]
        return Moments.joined(parts)

    def everything(self, theta: Array) -> Found:
        """Log likelihood, gradient and moments, in one pass."""
        parts = []
        with np.errstate(all="ignore"):
            for some in self._chunks(theta):
                nodes = self._nodes(some, True)
                parts.append(Found(*self._slope(some, nodes), self._moments(nodes)))
        return Found.joined(parts)

    def _moments(self, nodes: _Nodes) -> Moments:
        q, z = self.q, self._z
        mean = np.einsum("kcl,kq->qcl", nodes.share, z)
        rest = z.T[:, :, None, None] - mean[:, None]  # (q, K, C, L)
        S = [[(nodes.share * a * b).sum(axis=0) for b in rest] for a in rest]
        K = _cholesky(S)
        white = np.empty_like(rest)
        for i in range(q):
            white[i] = (rest[i] - sum(K[i, k] * white[k] for k in range(i))) / K[i, i]
        root = multiply_blocks(nodes.inverse, K)
        center = nodes.center + np.stack(
            [sum(nodes.spread[i, k] * mean[k] for k in range(q)) for i in range(q)]
        )
        skewness, fourth = ((nodes.share * white**p).sum(axis=1) for p in (3, 4))
        return Moments(center, root, skewness, fourth - 3.0)


def _finite(value: Array) -> Array:
    return np.where(np.isfinite(value), value, -np.inf)


def _cholesky(A: Any) -> Array:
    """Cholesky factors ``(q, q, C, L)`` of matrices by their entries.

    A pivot is 1e-60 at least, so that fourth powers of its inverse root are finite: far from the
    mode all but one node of a label have the share 0.
    """
    q = len(A)
    K = np.zeros((q, q, *np.shape(A[0][0])))
    for i in range(q):
        for j in range(i + 1):
            entry = A[i][j] - sum(K[i, k] * K[j, k] for k in range(j))
            K[i, j] = np.sqrt(np.maximum(entry, 1e-60)) if i == j else entry / K[j, j]
    return K


def _normal_effects(G: Any, side: Any, R: Array) -> tuple[Array, ...]:
    """Means of effects u and of v, the inverse root of v's precision, R times it, log determinant.

    ``G (q, q)`` and ``side (q,)`` hold the information and the side of each label.
    """
    q, (inverse, log_det) = len(G), _inverse_root(G, R)
    spread = multiply_blocks(R, inverse)
    half = [sum(spread[i, k] * side[i] for i in range(q)) for k in range(q)]
    center = np.stack([sum(spread[i, k] * half[k] for k in range(q)) for i in range(q)])
    v = np.stack([sum(inverse[i, k] * half[k] for k in range(q)) for i in range(q)])
    return center, v, inverse, spread, log_det


def _inverse_root(G: Any, R: Array) -> tuple[Array, Array]:
    """Root ``(q, q, C, L)`` of the inverse of ``I + R' G R``, and the log of its determinant."""
    q = len(G)
    GR = [[sum(G[i][k] * R[k, j] for k in range(j, q)) for j in range(q)] for i in range(q)]
    A = [
        [sum(R[k, i] * GR[k][j] for k in range(i, q)) + float(i == j) for j in range(q)]
        for i in range(q)
    ]
    K = _cholesky(A)
    inverse = np.zeros_like(K)  # of K', upper triangular
    for j in range(q):
        inverse[j, j] = 1.0 / K[j, j]
        for i in reversed(range(j)):
            inverse[i, j] = -sum(inverse[i, k] * K[j, k] for k in range(i, j)) / K[j, j]
    log_det = 2.0 * sum(np.log(K[i, i]) for i in range(q))
    return inverse, np.asarray(log_det)


class ByLabelPosterior(BasePosterior):
    """Posterior of coefficients, hyperparameters and own parameters, without the effects.

    Parameters
    ----------
    posterior : MixedPosterior
        With one term.
    likelihood : LabelQuadrature or object with the same methods
        Log likelihood of theta, and moments of the effects.
    """

    def __init__(self, posterior: MixedPosterior, likelihood: Any, start: Array) -> None:
        self.model, self._likelihood, self._start = posterior, likelihood, start
        self.parameters = parameters_without_effects(posterior)
        self.n_params, self.param_names = self.parameters.size, self.parameters.names
        effects, self._scales = posterior.parameters.at("effects"), self.parameters.at("scales")
        self._first, self._n_effects = effects.start, effects.stop - effects.start

    @property
    def own_parameters(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Own parameters of the likelihood."""
        return self.model.likelihood.own

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        return Facts(
            has_mode=True,
            one_mode=True,
            hierarchical=True,
            thread_safe=True,
            total_weight=self.model.model.total_weight,
        )

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        value, grad = self._likelihood.value_and_grad(theta)
        value = value + self.parameters.log_prior(theta)
        return refusing(value, grad + self.parameters.grad_log_prior(theta))

    def log_density(self, theta: Array) -> Array:
        """Log posterior density of theta up to a constant ``(C,)``."""
        return _finite(self._likelihood.value(theta) + self.parameters.log_prior(theta))

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.value_and_grad(theta)[1]

    def start(self) -> Array:
        """A point near the mode."""
        return self._start

    # ---- reported parameters --------------------------------------------------------------------

    @property
    def reported(self) -> Reported:
        """Reported parameters of the mixed model; the effects are drawn given theta."""
        return Reported(self.model.reported.names, self._complete, self._sampled)

    def _complete(self, theta: Array) -> Array:
        """Reported parameters ``(S, n_reported)``: the draw of effects belongs to theta."""
        q, L = self._likelihood.q, self._likelihood.n_labels
        whole = np.empty((len(theta), self.model.n_params))
        first, end = self._first, self._first + self._n_effects
        whole[:, :first], whole[:, end:] = theta[:, :first], theta[:, first:]
        for k in range(0, len(theta), step := max(1, 2**18 // self._n_effects)):
            some = theta[k : k + step]
            normals = np.array([generator_of(row).standard_normal((q, L)) for row in some])
            factor = self.model.covariances.each[0].root(some[:, self._scales])
            effects = self._likelihood.moments(some).draw(normals.swapaxes(0, 1), factor)
            whole[k : k + step, first:end] = effects.transpose(1, 2, 0).reshape(len(some), -1)
        return self.model.reported.values(whole)

    def _sampled(self, values: Array) -> Array:
        """Theta ``(S, P)`` of reported parameters."""
        theta = self.model.reported.theta(values)
        first = self._first
        return np.hstack([theta[:, :first], theta[:, first + self._n_effects :]])


def parameters_without_effects(posterior: MixedPosterior) -> Parameters:
    """Blocks of theta but the effects."""
    blocks = posterior.parameters.blocks
    return Parameters(*(block for block in blocks if block.name != "effects"))
