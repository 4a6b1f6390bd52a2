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
Arrays of labels are ``(..., C, L)`` for C positions, and of rows ``(C, n)``, sorted by label; L and
n are those of a block of labels.
``theta`` holds coefficients, hyperparameters and own parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._random import normals_of
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.gram import multiply_blocks
from skbayes_sgld.mixed.integrated import IntegratedPosterior
from skbayes_sgld.mixed.label_rows import LabelBlock
from skbayes_sgld.mixed.mode import JointMode
from skbayes_sgld.mixed.posterior import MixedPosterior, refusing
from skbayes_sgld.posterior.parameters import Parameters

_NUMBERS = 2**16  # rows of a block times positions
_FARTHEST = 2.0  # step of a label's predictor to its mode
_EFFECTS = 2**15  # effects times positions of draws that are completed at once


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
    def joined(cls, parts: list[Moments], axis: int = -2) -> Moments:
        """Moments at all positions, or along another axis."""
        return cls(*(np.concatenate(each, axis=axis) for each in zip(*parts, strict=True)))

    def draw(self, normals: Array, factor: Array) -> Array:
        """Effects ``(q, C, L)`` with these moments, from standard normals.

        By the expansion of a quantile in cumulants, scaled so that the variance is 1. The factor of
        the learned covariance is ``(C, q, q)``.
        """
        second = np.clip(self.skewness, -1.0, 1.0)
        second /= 6.0
        third = np.clip(self.excess, -1.0, 1.0)
        third /= 24.0
        of_second, square = np.square(second), np.square(normals)
        of_second *= 2.0
        third -= of_second
        # normals times (third (square - 3) + 1), and second times (square - 1)
        z = square - 3.0
        z *= third
        z += 1.0
        z *= normals
        square -= 1.0
        square *= second
        z += square
        np.square(third, out=third)
        third *= 6.0
        third += of_second
        third += 1.0
        z /= np.sqrt(third, out=third)
        q, R = len(z), factor.astype(z.dtype).transpose(1, 2, 0)[..., None]
        for matrix in (self.root, R):
            z = np.stack([sum(matrix[i, j] * z[j] for j in range(q)) for i in range(q)])
        z += self.mean
        return z


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

    def where(self, keep: Array) -> Found:
        """Likelihood, gradient and moments at some of the positions."""
        moments = Moments(*(each[..., keep, :] for each in self.moments))
        return Found(self.value[keep], self.grad[keep], moments)


class _AtNodes(NamedTuple):
    """Quadrature for the labels of a block: what rows say at each of K nodes."""

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
        Steps to the mode of a label's effects, from that of the normal model at the joint mode.
    """

    def __init__(
        self, posterior: MixedPosterior, at: JointMode, n_nodes: int, n_newton: int
    ) -> None:
        working, (self._covariance,) = at.working, posterior.covariances.each
        self._n_newton = n_newton
        self.q, self.n_labels = working.q, working.n_labels
        self._blocks = working.label_blocks
        self._gram = at.marginal.gram
        self.n_fixed, self.n_hyper = working.fixed.shape[1], self._covariance.n_hyper
        most = max(block.X.shape[1] for block in self._blocks)
        self._step = max(1, _NUMBERS // most)
        self._z, self._log_weight = _grid(n_nodes, self.q)
        self._rest: Any = None

    def changed(self, n_nodes: int, n_newton: int) -> LabelQuadrature:
        """Quadrature of the same rows with another number of nodes and of steps."""
        other = copy(self)
        other._n_newton, (other._z, other._log_weight) = n_newton, _grid(n_nodes, self.q)
        return other

    def corrected(self, above: LabelQuadrature, theta: Array) -> LabelQuadrature:
        """Quadrature whose gradient and moments are those of a better one at ``theta (1, P)``.

        With few nodes their errors are nearly the same at all points of the posterior.
        """
        other, (_, better, of_better) = copy(self), above.everything(theta)
        _, grad, moments = self.everything(theta)
        pairs = zip(of_better, moments, strict=True)
        other._rest = better - grad, Moments(*(a - b for a, b in pairs))
        return other

    def part(self, n_blocks: int) -> tuple[LabelQuadrature, float]:
        """Quadrature of at least so many blocks of labels, and how often it counts for all."""
        other = copy(self)
        other._blocks = self._blocks[:: max(1, len(self._blocks) // n_blocks)]
        n_labels = sum(block.labels.stop - block.labels.start for block in other._blocks)
        return other, self.n_labels / n_labels

    def _split(self, theta: Array, block: LabelBlock) -> tuple[Array, Array, Array]:
        """Predictors without effects ``(C, n)``, factor ``(C, q, q)``, own parameters."""
        d, m = self.n_fixed, self.n_hyper
        base = theta[:, :d] @ block.X
        return base, self._covariance.root(theta[:, d : d + m]), theta[:, d + m :]

    # ---- quadrature -----------------------------------------------------------------------------

    def _label_modes(
        self, block: LabelBlock, theta: Array, base: Array, own: Array, root: Array
    ) -> tuple[Array, ...]:
        """Modes of effects u and of v, the inverse root of v's precision, and its log determinant.

        v has the precision ``I + root' G root``, where G is the curvature of a label's rows.
        """
        q, d, R = self.q, self.n_fixed, root.transpose(1, 2, 0)[..., None]
        labels, cross = (
            self._gram.labels[:, :, None, block.labels],
            self._gram.cross[:, block.labels],
        )
        found = _normal_effects(labels, [F[:, d] - theta[:, :d] @ F[:, :d].T for F in cross], R)
        u = found[0]
        for _ in range(self._n_newton):
            local = block.local(base, own, u)
            score, curvature = block.kernel.derivatives(local, 1, 2)[:2]
            weight, score = np.maximum(curvature[:, 0, 0], 0.0), score[:, 0]
            G: Any = [[None] * q for _ in range(q)]
            for i in range(q):
                for j in range(i + 1):
                    G[i][j] = G[j][i] = block.sum(block.times(block.times(weight, i), j))
            side = [block.sum(block.times(score, i)) for i in range(q)]
            side = [side[i] + sum(G[i][j] * u[j] for j in range(q)) for i in range(q)]
            found = _normal_effects(G, side, R)
            u = u + np.clip(found[0] - u, -_FARTHEST, _FARTHEST)
        return found

    def _nodes(self, block: LabelBlock, theta: Array, with_scores: bool) -> _AtNodes:
        base, root, own = self._split(theta, block)
        q = self.q
        center, v0, inverse, spread, log_det = self._label_modes(block, theta, base, own, root)
        terms, scores, vs = [], list[Array](), []
        for z, log_weight in zip(self._z, self._log_weight, strict=True):
            at = [center[i] + sum(spread[i, j] * z[j] for j in range(q)) for i in range(q)]
            v = np.stack([v0[i] + sum(inverse[i, j] * z[j] for j in range(q)) for i in range(q)])
            local = block.local(base, own, at)
            if with_scores:
                value, score = block.kernel.derivatives(local, 0, 1)
                scores.append(score)
            else:
                (value,) = block.kernel.derivatives(local, 0)
            terms.append(block.sum(value) + (log_weight - 0.5 * np.square(v).sum(axis=0)))
            vs.append(v)
        each = np.stack(terms)
        top = each.max(axis=0)
        each = np.exp(each - top)
        total = each.sum(axis=0)
        value = (top + np.log(total) - 0.5 * log_det).sum(axis=1)
        return _AtNodes(value, each / total, scores, np.stack(vs), center, spread, inverse)

    def _pieces(self, theta: Array) -> Iterator[tuple[LabelBlock, list[Array]]]:
        """Each block of labels, and the positions that stay in cache with it."""
        chunks = [theta[k : k + self._step] for k in range(0, len(theta), self._step)]
        for block in self._blocks:
            yield block, chunks

    def value(self, theta: Array) -> Array:
        """Log likelihood ``(C,)``; minus infinity where it is beyond floating point."""
        total: Any = 0.0
        with np.errstate(all="ignore"):
            for block, chunks in self._pieces(theta):
                values = [self._nodes(block, some, False).value for some in chunks]
                total = total + np.concatenate(values)
        return _finite(total)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)``."""
        total: Any = 0.0
        with np.errstate(all="ignore"):
            for block, chunks in self._pieces(theta):
                nodes = [self._nodes(block, some, True) for some in chunks]
                total = total + np.concatenate([self._slope(block, each) for each in nodes])
            value, grad = self._in_theta(theta, total)
            if self._rest is not None:
                grad = grad + self._rest[0]
            return refusing(value, grad)

    def _in_theta(self, theta: Array, parts: Array) -> tuple[Array, Array]:
        """Value ``(C,)`` and gradient ``(C, P)`` from sums over the labels."""
        d, m, q = self.n_fixed, self.n_hyper, self.q
        in_root = parts[:, 1 + d : 1 + d + q * q].reshape(-1, q, q)
        in_h = self._covariance.pull_back(theta[:, d : d + m], in_root)
        return parts[:, 0], np.hstack([parts[:, 1 : 1 + d], in_h, parts[:, 1 + d + q * q :]])

    def _slope(self, block: LabelBlock, nodes: _AtNodes) -> Array:
        """Value, and gradient in the coefficients, the factor and the own parameters."""
        C, q = len(nodes.value), self.q
        of_rows, in_root = np.zeros((C, block.X.shape[1])), np.zeros((C, q, q))
        in_own: Any = 0.0
        for share, score, v in zip(nodes.share, nodes.scores, nodes.v, strict=True):
            weight = block.spread(share)
            weighted = score[:, 0] * weight
            of_rows += weighted
            for i in range(q):
                side = block.sum(block.times(weighted, i))
                for j in range(i + 1):
                    in_root[:, i, j] += np.einsum("cl,cl->c", side, v[j])
            in_own = in_own + np.einsum("ckn,cn->ck", score[:, 1:], weight)
        in_fixed = of_rows @ block.X.T
        return np.hstack([nodes.value[:, None], in_fixed, in_root.reshape(C, -1), in_own])

    def moments(self, theta: Array) -> Moments:
        """Moments of the effects given theta."""
        return self._everything(theta, with_scores=False)[1]

    def everything(self, theta: Array) -> Found:
        """Log likelihood, gradient and moments, in one pass."""
        total, moments = self._everything(theta, with_scores=True)
        with np.errstate(all="ignore"):
            value, grad = self._in_theta(theta, total)
        if self._rest is not None:
            in_theta, of_moments = self._rest
            pairs = zip(moments, of_moments, strict=True)
            grad, moments = grad + in_theta, Moments(*(a + b for a, b in pairs))
        return Found(value, grad, moments)

    def _everything(self, theta: Array, with_scores: bool) -> tuple[Any, Moments]:
        total: Any = 0.0
        by_block = list[Moments]()
        with np.errstate(all="ignore"):
            for block, chunks in self._pieces(theta):
                nodes = [self._nodes(block, some, with_scores) for some in chunks]
                by_block.append(Moments.joined([self._moments(each) for each in nodes]))
                if with_scores:
                    total = total + np.concatenate([self._slope(block, each) for each in nodes])
        return total, Moments.joined(by_block, axis=-1)

    def _moments(self, nodes: _AtNodes) -> Moments:
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


def _grid(n_nodes: int, q: int) -> tuple[Array, Array]:
    """Nodes ``(K, q)`` of a quadrature, and the logs of their weights times a normal density.

    Without the corners of the grid values have another constant, which no posterior depends on.
    """
    z, w = np.polynomial.hermite_e.hermegauss(n_nodes)
    grid = np.array(list(product(range(n_nodes), repeat=q)))
    weight = np.prod(w[grid] / w.sum(), axis=1)
    keep = np.square(z[grid]).sum(axis=1) < 1.001 * z[-1] ** 2
    nodes = z[grid[keep]]
    # with the normal density in place of its weight function
    return nodes, np.log(weight[keep]) + 0.5 * np.square(nodes).sum(axis=1)


def _finite(value: Array) -> Array:
    return np.where(np.isfinite(value), value, -np.inf)


def _cholesky(A: Any) -> Array:
    """Cholesky factors ``(q, q, C, L)`` of matrices by their entries.

    A pivot is 1e-60 at least, so that fourth powers of its inverse root are finite: far from the
    mode all but one node of a label have the share 0.
    """
    q = len(A)
    K = np.zeros((q, q, *A[0][0].shape), A[0][0].dtype)
    for i in range(q):
        for j in range(i + 1):
            entry = A[i][j] - sum(K[i, k] * K[j, k] for k in range(j))
            K[i, j] = np.sqrt(np.maximum(entry, 1e-60)) if i == j else entry / K[j, j]
    return K


def _normal_effects(G: Any, side: Any, R: Array) -> tuple[Array, ...]:
    """Means of effects u and of v, the inverse root of v's precision, R times it, log determinant.

    ``G (q, q)`` and ``side (q,)`` hold the information and the side of each label.
    """
    q, inverse = len(G), _inverse_root(G, R)
    spread = multiply_blocks(R, inverse)
    center, half = _mean(side, spread)
    v = np.stack([sum(inverse[i, k] * half[k] for k in range(q)) for i in range(q)])
    log_det = -2.0 * sum(np.log(inverse[i, i]) for i in range(q))
    return center, v, inverse, spread, np.asarray(log_det)


def normal_mean_and_root(G: Array, side: Array, factor: Array) -> tuple[Array, Array]:
    """Mean and root of labels with the information G ``(q, q, 1, L)`` and side ``(q, C, L)``.

    The factor of the learned covariance is ``(C, q, q)``.
    """
    R = factor.transpose(1, 2, 0)[..., None]
    inverse = _inverse_root(G, R)
    return _mean(side, multiply_blocks(R, inverse))[0], inverse


def _mean(side: Any, spread: Array) -> tuple[Array, list[Array]]:
    """Means of effects with the covariance ``spread spread'``, and ``spread' side``."""
    q = len(spread)
    half = [sum(spread[i, k] * side[i] for i in range(q)) for k in range(q)]
    return np.stack([sum(spread[i, k] * half[k] for k in range(q)) for i in range(q)]), half


def _inverse_root(G: Any, R: Array) -> Array:
    """Root ``(q, q, C, L)`` of the inverse of ``I + R' G R``."""
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
    return inverse


class ByLabelPosterior(IntegratedPosterior):
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
        name = posterior.parameters.names[effects.start]
        self._first_reported = posterior.parameters.reported_names.index(name)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        value, grad = self._likelihood.value_and_grad(theta)
        value = value + self.parameters.log_prior(theta)
        return refusing(value, grad + self.parameters.grad_log_prior(theta))

    def log_density(self, theta: Array) -> Array:
        """Log posterior density of theta up to a constant ``(C,)``."""
        return _finite(self._likelihood.value(theta) + self.parameters.log_prior(theta))

    def start(self) -> Array:
        """A point near the mode."""
        return self._start

    # ---- reported parameters --------------------------------------------------------------------

    def complete(self, theta: Array) -> Array:
        """Reported parameters ``(S, n_reported)``: the draw of effects belongs to theta."""
        q, L = self._likelihood.q, self._likelihood.n_labels
        others, first = self.parameters.to_reported(theta), self._first_reported
        end = first + self._n_effects
        out = np.empty((len(theta), self.model.n_params))
        out[:, :first], out[:, end:] = others[:, :first], others[:, first:]
        # few positions at a time, so that arrays stay in cache: whole groups of a product
        step = GROUP * max(1, _EFFECTS // (GROUP * self._n_effects))
        for k in range(0, len(theta), step):
            some = theta[k : k + step]
            moments = self._likelihood.moments(some)
            normals = np.empty((len(some), q, L), moments.mean.dtype)
            normals_of(some, normals)
            factor = self.model.covariances.each[0].root(some[:, self._scales])
            effects = moments.draw(normals.swapaxes(0, 1), factor)
            out[k : k + step, first:end].reshape(len(some), L, q)[...] = effects.transpose(1, 2, 0)
        return out

    def shortened(self, values: Array) -> Array:
        """Theta ``(S, P)`` of reported parameters."""
        theta = self.model.reported.theta(values)
        first = self._first
        return np.hstack([theta[:, :first], theta[:, first + self._n_effects :]])


def parameters_without_effects(posterior: MixedPosterior) -> Parameters:
    """Blocks of theta but the effects."""
    blocks = posterior.parameters.blocks
    return Parameters(*(block for block in blocks if block.name != "effects"))
