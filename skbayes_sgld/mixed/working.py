"""The normal model about a point: weighted sums over rows of the columns of all coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.gram import LabelGram
from skbayes_sgld.mixed.label_rows import LabelBlock, label_blocks
from skbayes_sgld.mixed.posterior import MixedPosterior

_LEAST_WEIGHT = 1e-150  # curvature of a row, below any that units of y may give it


class WorkingModel:
    """Coefficients and effects of a mixed model, arranged for elimination.

    The term of groups with the most effects is eliminated label by label; the coefficients, the
    intercept and the effects of other terms are shared by all of its labels, in this order. All are
    shared if there are no groups.

    Parameters
    ----------
    posterior : MixedPosterior
    crossed : sequence of int
        Other terms whose effects are eliminated together after those of the labels, and are not
        among the shared coefficients.
    """

    def __init__(self, posterior: MixedPosterior, crossed: Sequence[int] = ()) -> None:
        self.posterior, model = posterior, posterior.model
        sizes = [term.size * term.by_label for term in posterior.terms]
        self.main = int(np.argmax(sizes)) if any(sizes) else None
        self.n_labels, self.q, self._at_labels = 0, 1, slice(0, 0)
        if self.main is not None:
            term, self._at_labels = posterior.terms[self.main], posterior.at[self.main]
            self.n_labels, self.q = len(term.labels), len(term.effects)
        places = np.arange(posterior.n_linear)
        empty = np.arange(0)
        self.crossed = list(crossed)
        self.at_crossed = np.concatenate([empty, *(places[posterior.at[k]] for k in crossed)])
        """Places of the effects of crossed terms among the linear parameters."""
        self.at_shared = np.delete(places, np.append(places[self._at_labels], self.at_crossed))
        """Places of the shared coefficients among the linear parameters."""
        fixed = model.X
        fixed = fixed.toarray() if issparse(fixed) else fixed.astype(float)
        if model.x_mean is not None:
            fixed = fixed - model.x_mean
        # the intercept stands after the coefficients
        ones = np.ones((len(fixed), int(model.fit_intercept)))
        self._columns: list[Any] = [np.hstack([fixed, ones])]
        eliminated = {self.main, *crossed}
        self._columns += [each for k, each in enumerate(model.effects) if k not in eliminated]
        self.fixed: Array = self._columns[0]
        """Columns of the coefficients and the intercept ``(n, d)``, and of effects ``(n, q)``."""
        self.values, codes = np.zeros((len(fixed), 1)), np.arange(0)
        if self.main is not None:
            effects = model.effects[self.main]
            self.values = effects.data.reshape(-1, self.q)
            codes = effects.indices.reshape(-1, self.q)[:, 0] // self.q
        self.order = np.argsort(codes, kind="stable")
        self.starts = np.searchsorted(codes[self.order], np.arange(self.n_labels + 1))
        """Rows of label l are ``order[starts[l] : starts[l + 1]]``."""
        ends = np.cumsum([each.shape[1] for each in self._columns])
        self.at_others = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        """Places of the effects of the other terms among the shared coefficients."""
        self.is_effect = np.zeros(len(self.at_shared), bool)
        for each in self.at_others:
            self.is_effect[each] = True
        self.other_terms = [k for k in range(len(sizes)) if k not in eliminated]

    @cached_property
    def label_blocks(self) -> list[LabelBlock]:
        """Rows in blocks of labels, of a model with one term of groups and no others."""
        return list(label_blocks(self, self.posterior.model.row_sum().kernel))

    # ---- coefficients in two parts --------------------------------------------------------------

    def split(self, linear: Array) -> tuple[Array, Array]:
        """Effects ``(C, L, q)`` of the labels and shared coefficients, of ``linear (C, n)``."""
        labels = linear[:, self._at_labels].reshape(len(linear), self.n_labels, self.q)
        return labels, linear[:, self.at_shared]

    def join(self, labels: Array, shared: Array) -> Array:
        """Linear parameters ``(C, n)``."""
        linear = np.empty((len(labels), self.posterior.n_linear))
        linear[:, self._at_labels] = labels.reshape(len(labels), -1)
        linear[:, self.at_shared] = shared
        return linear

    # ---- sums over rows -------------------------------------------------------------------------

    def gram(self, weight: Array, target: Array, square: float = 0.0) -> LabelGram:
        """Products of the columns with weights ``(n,)``, and with ``target (n,)``.

        ``square`` is the weighted sum of squared observations.
        """
        columns = self._columns
        L, q, p = self.n_labels, self.q, len(self.at_shared)
        labels, cross = np.empty((q, q, L)), np.empty((q, L, p + 1))
        for i in range(q):
            members = self._members(weight * self.values[:, i])
            cross[i, :, :p] = np.hstack([_dense(members @ each) for each in columns])
            labels[i] = (members @ self.values).T
            cross[i, :, p] = self._members(self.values[:, i]) @ target
        weighted, shared = [_times(each, weight) for each in columns], np.empty((p + 1, p + 1))
        shared[:p, :p] = np.block([[_dense(a.T @ b) for b in weighted] for a in columns])
        shared[:p, p] = shared[p, :p] = np.concatenate([each.T @ target for each in columns])
        shared[p, p] = square
        return LabelGram(labels, cross, shared)

    def expansion(self, linear: Array, own: Array) -> tuple[float, LabelGram]:
        """Log likelihood at coefficients and own parameters, and the gram of its expansion."""
        if self.main is not None and not self.other_terms:
            return self._by_blocks(linear, own)
        rows = self.posterior.model.row_sum()
        coefficients = rows.coefficient_map.coefficients(np.append(linear, own)[None])
        u = rows.design.apply(coefficients, rows.design.block(slice(0, rows.design.shape[0])))
        predictor = u[0, 0].copy()
        with np.errstate(over="ignore"):
            value, score, curvature = rows.kernel.derivatives(u, 0, 1, 2)
        weight = np.maximum(curvature[0, 0, 0], _LEAST_WEIGHT)
        return float(value.sum()), self.gram(weight, score[0, 0] + weight * predictor)

    def _by_blocks(self, linear: Array, own: Array) -> tuple[float, LabelGram]:
        """Expansion of a model with one term of groups and no others."""
        L, q, p = self.n_labels, self.q, len(self.at_shared)
        (effects,), (shared,) = self.split(linear[None])
        value, labels, cross = 0.0, np.empty((q, q, L)), np.empty((q, L, p + 1))
        sums = np.zeros((p + 1, p + 1))
        for block in self.label_blocks:
            at = block.labels
            local = block.local((shared @ block.X)[None], own[None], effects[at].T[:, None])
            predictor = local[0, 0].copy()
            with np.errstate(over="ignore"):
                of_rows, score, curvature = block.kernel.derivatives(local, 0, 1, 2)
            value += float(of_rows.sum())
            weight = np.maximum(curvature[0, 0, 0], _LEAST_WEIGHT)
            weighted = np.empty((p + 1, len(predictor)))  # weighted columns, and the target
            np.multiply(block.X, weight, out=weighted[:p])
            weighted[p] = score[0, 0] + weight * predictor
            products = weighted @ block.X.T
            sums[:p, :p] += products[:p]
            sums[p, :p] += products[p]
            for i in range(q):
                cross[i, at] = block.sum(block.times(weighted, i)).T
                for j in range(i + 1):
                    squares = block.sum(block.times(block.times(weight, i), j))
                    labels[i, j, at] = labels[j, i, at] = squares
        sums[:p, p] = sums[p, :p]
        return value, LabelGram(labels, cross, sums)

    def crossed_sums(
        self, weight: Array, target: Array
    ) -> tuple[list[csr_array], csr_array, Array]:
        """Products of the columns of crossed terms, P in all, with weights ``(n,)``.

        They are those with the columns of each effect of the labels ``(L, P)``, with themselves,
        and with the shared columns and ``target`` ``(P, p + 1)``.
        """
        effects = self.posterior.model.effects
        columns = hstack([effects[k] for k in self.crossed], format="csr")
        labels = [self._members(weight * values) @ columns for values in self.values.T]
        weighted = _times(columns, weight)
        beside = [_dense(weighted.T @ each) for each in self._columns]
        beside.append((columns.T @ target)[:, None])
        return labels, csr_array(weighted.T @ columns), np.hstack(beside)

    def _members(self, values: Array) -> csr_array:
        """Matrix ``(L, n)`` of the rows of each label, with a value for each row."""
        n = len(values)
        return csr_array((values[self.order], self.order, self.starts), shape=(self.n_labels, n))

    # ---- the prior ------------------------------------------------------------------------------

    def fixed_prior(self, linear: Array) -> tuple[Array, Array, int]:
        """Curvature ``(p, p)`` and gradient ``(p,)`` of the log prior that is not learned.

        They are those of the shared coefficients at ``linear (1, n)``, without effects. Last comes
        the number of coefficients and intercepts.
        """
        prior, p = self.posterior.linear_prior, len(self.at_shared)
        d = prior.width
        precision, pull = np.zeros((p, p)), np.zeros(p)
        if d:
            prior.add_curvature(precision[:d, :d], linear[:, :d], None)
            pull[:d] = prior.grad(linear[None, :, :d], None)[0][0, 0]
        return precision, pull, d

    def main_root(self, roots: list[Array]) -> Array:
        """Factor ``(C, q, q)`` of the covariance of the main term; ones if there is none."""
        return np.ones((len(roots[0]), 1, 1)) if self.main is None else roots[self.main]

    def shared_root(self, roots: list[Array]) -> Array:
        """Matrix T ``(C, p, p)`` from standardised shared coefficients to themselves.

        ``roots`` are the factors of the covariances of all terms; coefficients are not changed.
        """
        p = len(self.at_shared)
        T = np.tile(np.eye(p), (len(roots[0]), 1, 1))
        for k, at in zip(self.other_terms, self.at_others, strict=True):
            q = roots[k].shape[1]
            for first in range(at.start, at.stop, q):
                T[:, first : first + q, first : first + q] = roots[k]
        return T

    def information(self, gram: LabelGram, term: int) -> Array:
        """Information of the rows on the effects of each label of a term ``(L, q, q)``."""
        if term == self.main:
            return gram.labels.transpose(2, 0, 1)
        at = self.at_others[self.other_terms.index(term)]
        q = len(self.posterior.terms[term].effects)
        L = (at.stop - at.start) // q
        return np.einsum("lqlr->lqr", gram.shared[at, at].reshape(L, q, L, q))


def _dense(x: Any) -> Array:
    return x if isinstance(x, np.ndarray) else x.toarray()


def _times(columns: Any, weight: Array) -> Any:
    """Rows times their weights."""
    if isinstance(columns, np.ndarray):
        return columns * weight[:, None]
    scaled = columns.copy()
    scaled.data = scaled.data * np.repeat(weight, np.diff(columns.indptr))
    return scaled
