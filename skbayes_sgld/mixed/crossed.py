r"""Crossed terms with many labels: all of their effects are eliminated, at few ratios of scales.

The rows of a label of one term have many labels of the others. After the elimination of the term
with the most labels, the effects of the others depend on each other through a dense matrix, whose
factor takes time of the cube of their number P. What it leaves, the matrix N of the remaining
coefficients and log determinants, depends on the few ratios of scales to the noise alone, and
smoothly. So these are found exactly at few *nodes*, and a polynomial goes through them. The means
of the effects given the remaining coefficients are such polynomials too, and so is a root of their
covariance, in units of

.. math:: E_j = (1 + \Lambda^T N_{jj} \Lambda / \sigma^2)_{jj}^{-1/2},

in which it changes little. An evaluation and a draw then factor no matrix of size P.

Conventions
-----------
``ratios`` are the factors ``(C, q, q)`` of the covariances of eliminated terms, divided by the sd
of the noise: those of the main term first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.sparse import csr_array

from skbayes_sgld._linalg import ALIKE, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.collapsed import Marginal
from skbayes_sgld.mixed.gram import LabelGram, label_covariances
from skbayes_sgld.mixed.polynomial import Monomials, Whitening
from skbayes_sgld.mixed.working import WorkingModel

_AT_ONCE = 64  # positions whose effects are drawn together
_FEW_EFFECTS = 700  # of crossed terms, each of which is eliminated alone first
_PRODUCTS = 2**24  # numbers that are kept of the products of labels' rows
_STEADY = 0.5  # change of the log of the information on their effects, for that of coordinates
_FAR = 0.5  # sds beyond the farthest nodes, where polynomials end


class RatioCoordinates:
    """Coordinates of ratios, which do not depend on the signs of scales.

    They are half the logs of ``1 + M_ii / c_i^2``, where M is the product of a term's ratio with
    its transpose and c_i the ratio below which rows cannot tell it from 0, and correlations, which
    go to 0 with the scales. No step divides by a scale.

    Parameters
    ----------
    least : list of ndarray of shape (q,)
        c for each term.
    """

    def __init__(self, least: list[Array]) -> None:
        self._squares = [np.square(each) for each in least]
        self._pairs = [np.tril_indices(len(each), -1) for each in least]
        sizes = [len(c) + len(pairs[0]) for c, pairs in zip(least, self._pairs, strict=True)]
        ends = np.cumsum([0, *sizes])
        self._at = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        self.size = int(ends[-1])

    def of(self, ratios: list[Array]) -> Array:
        """Coordinates ``(C, m)``."""
        parts = []
        for R, c, (i, j) in zip(ratios, self._squares, self._pairs, strict=True):
            M = R @ R.swapaxes(1, 2)
            D = np.einsum("cii->ci", M) + c
            parts += [0.5 * np.log(D / c), M[:, i, j] / np.sqrt(D[:, i] * D[:, j])]
        return np.hstack(parts)

    def pull_back(self, ratios: list[Array], slope: Array) -> list[Array]:
        """Gradient in the lower triangle of each ratio from that in the coordinates."""
        out = []
        terms = zip(ratios, self._squares, self._pairs, self._at, strict=True)
        for R, c, (i, j), at in terms:
            in_log, in_pairs = np.split(slope[:, at], [len(c)], axis=1)
            M = R @ R.swapaxes(1, 2)
            D = np.einsum("cii->ci", M) + c
            G = np.zeros_like(M)
            unit = np.sqrt(D[:, i] * D[:, j])
            G[:, i, j] = G[:, j, i] = in_pairs / unit
            of_pairs = in_pairs * M[:, i, j] / unit
            for k in range(len(c)):
                each = of_pairs[:, (i == k) | (j == k)].sum(axis=1)
                G[:, k, k] = (in_log[:, k] - each) / D[:, k]
            out.append(np.tril(G @ R))
        return out


class Node(NamedTuple):
    """Result of the elimination at one position.

    Attributes
    ----------
    N : ndarray of shape (k + 1, k + 1)
        Matrix of the remaining coefficients and y.
    log_det : float
    means : ndarray of shape (k + 1, P)
        Times the coefficients and -1: the means of the effects of crossed terms, negative.
    blocks : ndarray of shape (n_blocks,)
        Blocks of the matrix of these effects, one for each label.
    sides : ndarray of shape (P, k + 1)
        Its products with the coefficients and y.
    ratios : list of ndarray of shape (1, q, q)
    inverse : ndarray of shape (P, P) or None
        Inverse factor of their precision, in units of E; standardised.
    """

    N: Array
    log_det: float
    means: Array
    blocks: Array
    sides: Array
    ratios: list[Array]
    inverse: Array | None = None

    @property
    def sds(self) -> Array:
        """Standard deviations of the standardised effects in units of E, and of their sum."""
        assert self.inverse is not None
        return sds_by(self.inverse)


class CrossedGram:
    """Sums over rows, from which the effects of crossed terms are eliminated exactly.

    Parameters
    ----------
    working : WorkingModel
        With crossed terms.
    gram : LabelGram
        Sums of the labels of the main term and of the remaining coefficients.
    weight, target : ndarray of shape (n,)
        Weights, and weighted observations.
    """

    def __init__(
        self, working: WorkingModel, gram: LabelGram, weight: Array, target: Array
    ) -> None:
        self._working, self._gram = working, gram
        self.labels, products, self._beside = working.crossed_sums(weight, target)
        self._products = products.toarray()
        self._transposed = [each.T.tocsr() for each in self.labels]
        self.size = len(self._beside)
        terms, first = working.posterior.terms, 0
        self._shapes: list[tuple[slice, int, int]] = []
        for k in working.crossed:
            q = len(terms[k].effects)
            self._shapes.append((slice(first, first + terms[k].size), terms[k].size // q, q))
            first += terms[k].size
        diagonal = np.diagonal(self._products)
        sides = self._beside
        self.information = [np.einsum("iil->il", gram.labels)]
        """Information of rows on each effect of each label ``(q, L)``, term by term."""
        self.sides = [gram.cross]
        """Products with shared columns and y ``(q, L, k + 1)``."""
        for at, L, q in self._shapes:
            self.information.append(diagonal[at].reshape(L, q).T)
            self.sides.append(sides[at].reshape(L, q, -1).swapaxes(0, 1))

    def times(self, X: Array, ratios: list[Array]) -> Array:
        """Rows ``(..., P)`` of effects times their ratios, which may differ from row to row."""
        out = np.empty_like(X)
        for (at, L, q), R in zip(self._shapes, ratios[1:], strict=True):
            part = X[:, at]
            if q == 1:
                out[:, at] = part * R[:, 0]
            else:
                some = part.reshape(-1, L, q) @ R.swapaxes(1, 2)
                out[:, at] = some.reshape(part.shape)
        return out

    def units(self, ratios: list[Array], blocks: Array) -> Array:
        """E at the ratios ``(C, P)``, with the blocks ``(C, n_blocks)`` of the effects' matrix."""
        parts, first = [], 0
        for (_, L, q), R in zip(self._shapes, ratios[1:], strict=True):
            some = blocks[:, first : first + L * q * q].reshape(-1, L, q, q)
            first += L * q * q
            each = np.ones((len(R), L, q))
            for a, b in product(range(q), repeat=2):  # sums whose order does not depend on C
                each += some[:, :, a, b, None] * (R[:, a] * R[:, b])[:, None]
            parts.append(1.0 / np.sqrt(each.reshape(len(R), L * q)))
        return np.hstack(parts)

    def eliminate(self, ratios: list[Array], with_inverse: bool = False) -> Node:
        """Exact result at one position.

        Raises
        ------
        numpy.linalg.LinAlgError
            If it is beyond floating point.
        """
        gram, one = self._gram, np.ones(1)
        N, log_det, _ = gram.eliminate(ratios[0], one)
        U = label_covariances(gram.labels, ratios[0], one)[0][:, :, 0]
        A, B = self._products.copy(), self._beside.copy()
        for i in range(gram.q):
            B -= self._transposed[i] @ sum(U[i, j][:, None] * gram.cross[j] for j in range(gram.q))
            for j in range(gram.q):
                A -= self._summed(i, j, U[i, j])
        each = [np.einsum("lqlr->lqr", A[at, at].reshape(L, q, L, q)) for at, L, q in self._shapes]
        blocks = np.concatenate([some.ravel() for some in each])
        sides = B
        A, B = self._times_both(A, ratios), self._rows(B, ratios)
        A.flat[:: len(A) + 1] += 1.0
        _, failed = dpotrf(A.T, overwrite_a=True)  # in place: the transpose is in Fortran's order
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        half = solve_triangular(A, B, lower=True, check_finite=False)
        N = N[0] - half.T @ half
        whole = float(log_det[0]) + 2.0 * float(np.log(np.diagonal(A)).sum())
        back = solve_triangular(A, half, lower=True, trans="T", check_finite=False)
        means = self.times(np.ascontiguousarray(back.T), ratios)
        if with_inverse:
            dtrtri(A.T, overwrite_c=True)
            A /= self.units(ratios, blocks[None])
        return Node(N, whole, means, blocks, sides, ratios, A if with_inverse else None)

    def variances(self, w: Array, n_total: float) -> tuple[list[Array], float]:
        """Variances of the effects of each term, and of the noise, by moments.

        ``w`` holds shared coefficients, negative, and 1 for y. The expected sums of squares between
        the labels of each effect are linear in all variances (Henderson 1953, method 1). Variances
        are at least those that rows cannot tell from 0.
        """
        information = [A for of_term in self.information for A in of_term]
        sides = [side @ w for of_term in self.sides for side in of_term]
        n, total = len(information), float(w @ self._gram.shared @ w)
        expected, found = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
        for f, (A, side) in enumerate(zip(information, sides, strict=True)):
            share = np.where(A > 0.0, 1.0 / np.maximum(A, 1e-300), 0.0)
            found[f], expected[f, n], expected[n, f] = share @ side**2, (A > 0.0).sum(), A.sum()
            for g in range(n):
                expected[f, g] = share @ csr_array(self._shared_rows(f, g)).power(2).sum(axis=1)
        found[n], expected[n, n] = total, n_total
        solved = np.linalg.lstsq(expected, found, rcond=1e-10)[0]
        variances, first = list[Array](), 0
        for of_term in self.information:
            each = solved[first : first + len(of_term)]
            least = total / n_total * (0.5 * np.square(of_term).sum(axis=1)) ** -0.5
            variances.append(np.clip(each, least, total / of_term.sum(axis=1)))
            first += len(of_term)
        return variances, max(float(solved[n]), 0.05 * total / n_total)

    def _shared_rows(self, f: int, g: int) -> Any:
        """Products ``(L_f, L_g)`` of the columns of two effects, counted over all terms.

        Those of two effects of the main term are ``(L, 1)``, each with its own label.
        """
        q = self._gram.q
        steps = [(at, q, a) for at, _, q in self._shapes for a in range(q)]
        at = [np.arange(each.start + a, each.stop, step) for each, step, a in steps]
        if f < q and g < q:
            return self._gram.labels[f, g][:, None]
        if f < q:
            return self.labels[f][:, at[g - q]]
        if g < q:
            return self.labels[g][:, at[f - q]].T
        return self._products[np.ix_(at[f - q], at[g - q])]

    def _summed(self, i: int, j: int, weight: Array) -> Array:
        """Sum over labels of the products ``(P, P)`` of two rows, with weights ``(L,)``."""
        if self._by_label is not None:
            summed: Array = (self._by_label[i][j] @ weight).reshape(self._products.shape)
            return summed
        F = self.labels[j].copy()
        F.data = F.data * np.repeat(weight, np.diff(F.indptr))
        return (self._transposed[i] @ F).toarray()

    @cached_property
    def _by_label(self) -> list[list[Any]] | None:
        """Products ``(P^2, L)`` of the rows of each label; None if they take too much memory."""
        counts = np.diff(self.labels[0].indptr)
        if len(self.labels) ** 2 * np.square(counts, dtype=float).sum() > _PRODUCTS:
            return None
        return [[_products_of_rows(F, G) for G in self.labels] for F in self.labels]

    def alone(self, node: Node) -> list[LabelGram]:
        """Sums of each crossed term as if its labels shared no row with others of its labels."""
        grams, first, width = [], 0, node.sides.shape[1]
        for at, L, q in self._shapes:
            blocks = node.blocks[first : first + L * q * q].reshape(L, q, q)
            first += L * q * q
            cross = node.sides[at].reshape(L, q, width).swapaxes(0, 1)
            labels = np.ascontiguousarray(blocks.transpose(1, 2, 0))
            grams.append(LabelGram(labels, cross.copy(), np.zeros((width, width))))
        return grams

    def _rows(self, X: Array, ratios: list[Array]) -> Array:
        """Rows ``(P, m)`` of effects times the transposes of one ratio."""
        return self.times(np.ascontiguousarray(X.T), [R.swapaxes(1, 2) for R in ratios]).T

    def _times_both(self, A: Array, ratios: list[Array]) -> Array:
        """A symmetric matrix ``(P, P)`` of effects times the ratios, on both sides."""
        if all(q == 1 for _, _, q in self._shapes):
            d = np.concatenate(
                [
                    np.full(L, R[0, 0, 0])
                    for (_, L, _), R in zip(self._shapes, ratios[1:], strict=True)
                ]
            )
            A *= d[:, None]
            A *= d
            return A
        return np.ascontiguousarray(self._rows(self._rows(A, ratios).T, ratios))


class CrossedMarginal(Marginal):
    """Log density of hyperparameters and noise variance, by polynomials in ratios of scales.

    Beyond the farthest nodes the density falls as a normal one too, so that it has no peaks there;
    far beyond, all but this is as at the center.

    Parameters
    ----------
    working : WorkingModel
        With crossed terms.
    gram : LabelGram
    n_total : float
    origin : ndarray of shape (1, n_linear)
    crossed : CrossedGram
    """

    def __init__(
        self,
        working: WorkingModel,
        gram: LabelGram,
        n_total: float,
        origin: Array,
        crossed: CrossedGram,
    ) -> None:
        super().__init__(working, gram, n_total, origin)
        assert working.main is not None
        self.crossed, self.step_of_draws = crossed, _AT_ONCE
        self.eliminated = [working.main, *working.crossed]
        least = [(0.5 * np.square(G).sum(axis=1)) ** -0.25 for G in crossed.information]
        self.coordinates = RatioCoordinates(least)
        self._middle = np.empty((0, 0)), 0.0
        self.undivided: Marginal | None = None
        """Gram for coefficients that are drawn by a factor for each draw; empty until needed."""
        self._alone: list[LabelGram] = []
        self._polynomial: Any = None
        self._of_root: Any = None
        self._whitening: Any = None
        self._entries = self._means = self._blocks = self._transposed = np.empty((0, 0))
        self._radius, self._roots = np.inf, np.empty((0, 0, 0), np.float32)

    # ---- nodes ----------------------------------------------------------------------------------

    def ratios(self, roots: list[Array], scale: Array) -> list[Array]:
        """Ratios of the eliminated terms, with a positive diagonal but for the main term's."""
        out = [roots[k] * np.sqrt(scale)[:, None, None] for k in self.eliminated]
        positive = [R * np.where(np.einsum("cii->ci", R) < 0, -1.0, 1.0)[:, None] for R in out[1:]]
        return [out[0], *positive]

    def fit(self, degree: int, z: Array, nodes: list[Node], weight: Array, radius: float) -> None:
        """Fit polynomials to nodes at the whitened coordinates ``z (K, m)``."""
        self._polynomial, self._radius = Monomials(z.shape[1], degree), radius
        design = self._polynomial.design(z)[0] * weight[:, None]
        flat = []
        for node in nodes:
            roots, one = dict(zip(self.eliminated, node.ratios, strict=True)), np.ones(1)
            N, log_det, _ = self._separate(roots, one)
            rest = (node.N - N[0]).ravel(), [node.log_det - log_det[0]]
            flat.append(np.concatenate([*rest, node.means.ravel(), node.blocks]))
        values = np.stack(flat)
        found = np.linalg.lstsq(design, values * weight[:, None], rcond=1e-11)[0]
        width = nodes[0].N.size
        self._entries, means, self._blocks = np.split(
            found, [width + 1, width + 1 + nodes[0].means.size], axis=1
        )
        self._transposed = np.ascontiguousarray(self._entries[:, :width].T)
        self._means = means.reshape(-1, self.crossed.size)

    def centre(self, nodes: list[Node], t: Array, mean: Array, root: Array) -> None:
        """Whiten coordinates by a mean and a root of their covariance, about the first node.

        With few labels the posterior of scales is wide, and polynomials are fitted to what the
        elimination of each term alone leaves: the crossed ones with the main term eliminated at
        the first node, unless that changes much at the others. ``t (K, m)`` are their coordinates.
        """
        self._whitening, self._alone = Whitening(mean, root), []
        self._middle = nodes[0].N, nodes[0].log_det
        sums = np.log([node.blocks.sum() for node in nodes])
        steady = np.abs(sums - sums[0]) <= _STEADY * np.linalg.norm(t - t[0], axis=1)
        if self.crossed.size <= _FEW_EFFECTS and steady.all():
            self._alone = [self.gram, *self.crossed.alone(nodes[0])]

    def z(self, t: Array) -> Array:
        """Whitened coordinates ``(C, m)``."""
        return self._whitening.z(t)

    def fit_root(self, degree: int, z: Array, inverses: Iterable[Array]) -> None:
        """Fit a polynomial to inverse factors at ``z (K, m)``, which are made one by one."""
        self._of_root, P = Monomials(z.shape[1], degree), self.crossed.size
        shares = np.linalg.pinv(self._of_root.design(z)[0]).astype(np.float32)
        self._roots = np.zeros((len(shares), P, P), np.float32)
        for share, inverse in zip(shares.T, inverses, strict=True):
            single = inverse.astype(np.float32)
            for root, part in zip(self._roots, share, strict=True):
                root += part * single

    def exact(self, h: Array, variance: Array, with_inverse: bool = False) -> Iterator[Node]:
        """Nodes at positions, made one by one."""
        ratios = self.ratios(self.roots(h), 1.0 / variance)
        for k in range(len(h)):
            yield self.crossed.eliminate([R[k : k + 1] for R in ratios], with_inverse)

    def errors(self, h: Array, variance: Array, nodes: list[Node]) -> tuple[Array, Array]:
        """Errors of log densities ``(C,)``, and of means ``(C, P)`` in sds of the effects."""
        roots, scale = self.roots(h), 1.0 / variance
        N, log_det, found = self._eliminate(roots, scale)
        exact_N, exact_det = np.stack([n.N for n in nodes]), np.array([n.log_det for n in nodes])
        value = self._integrated(variance, roots, N, log_det)[0]
        value -= self._integrated(variance, roots, exact_N, exact_det)[0]
        w = np.column_stack(
            [
                self._draw_shared(exact_N, np.zeros((len(h), N.shape[1] - 1)), roots, scale),
                np.full(len(h), -1.0),
            ]
        )
        mean = self._mean(found.terms, w)
        exact = -np.stack([each @ n.means for each, n in zip(w, nodes, strict=True)])
        unit = self._units(found)
        return value, (mean - exact) / self._scaled(unit, found.ratios, variance)

    def _scaled(self, v: Array, ratios: list[Array], variance: Array) -> Array:
        """Effects ``(C, P)`` of standardised ones."""
        return self.crossed.times(v, ratios) * np.sqrt(variance)[:, None]

    # ---- the density ----------------------------------------------------------------------------

    def _separate(self, roots: Any, scale: Array) -> tuple[Array, Array, list[Array]]:
        """Elimination of each term alone, and U of each; zeros with many labels."""
        width, Us = self.gram.shared.shape[0], []
        N, log_det = np.zeros((len(scale), width, width)), np.zeros(len(scale))
        for k, gram in zip(self.eliminated, self._alone, strict=False):
            part, of_term, U = gram.eliminate(roots[k], scale)
            N, log_det = N + part, log_det + of_term
            Us.append(U)
        return N, log_det, Us

    def _eliminate(self, roots: list[Array], scale: Array) -> tuple[Array, Array, _Position]:
        ratios = self.ratios(roots, scale)
        z = self.z(self.coordinates.of(ratios))
        distance = np.sqrt(np.square(z).sum(axis=1))
        beyond = np.maximum(distance - self._radius, 0.0)
        far = beyond > _FAR
        terms, slopes = self._polynomial.design(np.where(far[:, None], 0.0, z))
        terms = np.ascontiguousarray(terms)
        flat = matmul_rows(terms, self._entries)
        N, log_det, Us = self._separate(roots, scale)
        N = N + flat[:, :-1].reshape(N.shape)
        log_det = log_det + flat[:, -1] + beyond * (beyond + 2.0 * np.minimum(self._radius, 1e300))
        if far.any():
            N[far], log_det[far] = self._middle[0], self._middle[1] + np.square(distance[far])
        return N, log_det, _Position(ratios, z, terms, slopes, beyond, far, Us)

    def _slopes(
        self, moments: Array, found: _Position, roots: list[Array], scale: Array
    ) -> dict[int, Array]:
        square = (moments * scale[:, None, None]).reshape(len(moments), -1)
        of_terms = -0.5 * (matmul_rows(square, self._transposed) + self._entries[:, -1])
        slope = np.einsum("cmk,ck->cm", found.slopes, of_terms)
        if found.beyond.any():
            slope = slope - (found.beyond > 0.0)[:, None] * found.z
            slope = np.where(found.far[:, None], -found.z, slope)
        in_t = matmul_rows(slope, self._whitening.inverse)
        unit = np.sqrt(scale)[:, None, None]
        whole = [roots[k] * unit for k in self.eliminated]
        each = self.coordinates.pull_back(whole, in_t)
        out = {k: G * unit for k, G in zip(self.eliminated, each, strict=True)}
        for k, gram, U in zip(self.eliminated, self._alone, found.Us, strict=False):
            of_alone = gram.slope(moments, U, roots[k], scale)
            out[k] += np.where(found.far[:, None, None], 0.0, of_alone)
        return out

    # ---- draws ----------------------------------------------------------------------------------

    def _units(self, found: _Position) -> Array:
        """E at the positions ``(C, P)``."""
        return self.crossed.units(found.ratios, matmul_rows(found.terms, self._blocks))

    def _mean(self, terms: Array, w: Array) -> Array:
        """Means of the effects ``(C, P)`` given coefficients and -1."""
        each = (terms[:, :, None] * w[:, None]).reshape(len(w), -1)
        return -matmul_rows(each, self._means, ALIKE)

    def root_at(self, z: Array, v: Array) -> Array:
        """Rows ``(C, P)`` of standard normals times the inverse factor at z, in units of E."""
        features, v = self._of_root.design(z)[0].astype(np.float32), v.astype(np.float32)
        out: Any = 0.0
        for feature, root in zip(features.T, self._roots, strict=True):
            out = out + matmul_rows(v * feature[:, None], root, ALIKE)
        return np.asarray(out, dtype=float)

    def sds_at(self, z: Array) -> Array:
        """Standard deviations of standardised effects at ``z (m,)``, and of their sum."""
        features = self._of_root.design(z[None])[0][0].astype(np.float32)
        inverse = np.tensordot(features, self._roots, 1)
        return sds_by(inverse)

    def draw(self, h: Array, variance: Array, normals: Array) -> Array:
        """Linear parameters ``(C, n)`` given h, from standard normals ``(C, n)``."""
        if self.undivided is not None:
            return self.undivided.draw(h, variance, normals)
        roots, scale, working = self.roots(h), 1.0 / variance, self.working
        N, _, found = self._eliminate(roots, scale)
        labels, shared = working.split(normals)
        w = self._draw_shared(N, shared, roots, scale)
        # np.take, since the memory order of an index's result depends on C
        v = self.root_at(found.z, np.take(normals, working.at_crossed, 1)) * self._units(found)
        effects = self._mean(found.terms, np.column_stack([w, np.full(len(w), -1.0)]))
        effects += self._scaled(v, found.ratios, variance)
        side, columns = self.gram.side(w, scale), np.ascontiguousarray(effects.T)
        for each, F in zip(side, self.crossed.labels, strict=True):
            each -= scale[:, None] * (F @ columns).T
        drawn = self.gram.draw(side, labels, working.main_root(roots), scale)
        linear = working.join(drawn, w)
        linear[:, working.at_crossed] = effects
        return linear + self.origin


class _Position(NamedTuple):
    """Ratios and their whitened coordinates z, and the terms of the polynomials there.

    ``beyond`` is the distance of z beyond the nodes, and ``far`` whether it is large.
    """

    ratios: list[Array]
    z: Array
    terms: Array
    slopes: Array
    beyond: Array
    far: Array
    Us: list[Array]


def _products_of_rows(F: Any, G: Any) -> Any:
    """Matrix ``(P^2, L)`` of the products of the rows of sparse ``F (L, P)`` and ``G (L, P)``."""
    L, P = F.shape
    counts = np.diff(G.indptr)
    row = np.repeat(np.arange(L), np.diff(F.indptr))
    repeats = counts[row]  # each entry of F with all those of G in its row
    ends = np.cumsum(repeats)
    in_row = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - repeats, repeats)
    partner = np.repeat(G.indptr[row], repeats) + in_row
    value = np.repeat(F.data, repeats) * G.data[partner]
    cell = np.repeat(F.indices.astype(np.int64) * P, repeats) + G.indices[partner]
    return csr_array((value, (cell, np.repeat(row, repeats))), shape=(P * P, L))


def sds_by(inverse: Array) -> Array:
    """Standard deviations of standard normals times a matrix, and of their sum."""
    columns = np.column_stack([inverse, inverse.sum(axis=1)])
    return np.sqrt(np.einsum("ij,ij->j", columns, columns, dtype=float))
