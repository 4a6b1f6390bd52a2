r"""Log densities of whole groups of rows, with the effects of their labels integrated out.

Given coefficients, scales and the effects of other terms, the density of a group's rows is that of
a mixed model with one block of effects: in closed form for normal noise,

.. math:: \log p(y) = \sum_i w_i \log N(y_i; \eta_i, \sigma^2)
    - \tfrac12 \log |M| + \tfrac12 b^\top M^{-1} b, \quad
    M = I + \Lambda^\top Z^\top P Z \Lambda, \; b = \Lambda^\top Z^\top P (y - \eta),

where P holds the precisions of the rows, and by a Gauss-Hermite quadrature about the mode, scaled
by the curvature there, for other likelihoods. It is what leaving a group out takes: the posterior
of coefficients and scales without the group is that of all rows over this density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from skbayes_sgld._linalg import inverse_factors
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.mixed.labels import POPULATION

_NODES = {1: 15, 2: 9, 3: 5, 4: 3, 5: 3}  # for each effect of a block; 1 beyond: Laplace's formula
_NEWTON = 30
_CLOSE = 1e-4  # of standardised effects, at the mode


def labels_of_one_group(terms: Sequence[Any], X: Any, groups: Array) -> list[Array]:
    """Mask of the labels of each term that are in one group alone, of all rows of a fit."""
    masks = []
    for term in terms:
        masks.append(np.zeros(len(term.labels), bool))
        if term.by_label:
            pairs = np.unique(np.column_stack([term.codes(X), groups]), axis=0)[:, 0].astype(int)
            masks[-1] = np.bincount(pairs, minlength=len(term.labels)) == 1
    return masks


def marginal_log_likelihood(
    predictive: Any,
    data: tuple[Array, Array, RowValues],
    weight: Array,
    groups: Array,
    labels: list[Array],
) -> Array:
    """Log density of each group under every draw ``(G, S)``.

    The effects of labels that the fit did not see are integrated out, too.

    Parameters
    ----------
    predictive : PredictiveDistribution
        Of a mixed model.
    data : tuple of X, y and row values
        Rows of whole groups, encoded.
    weight : ndarray of shape (n,)
    groups : ndarray of shape (n,)
        Position of the group of each row, all of 0, ..., G - 1.
    labels : list of ndarray of shape (L,)
        Mask of the labels of each term whose effects are integrated out; others keep theirs.
    """
    X, y, row_values = data
    predictor, blocks = predictive.predictor, []
    for term, mask, root in zip(predictor.terms, labels, predictor.roots, strict=True):
        if not term.by_label:  # a curve
            continue
        codes = term.codes(X)
        known, integrated = codes >= 0, codes < POPULATION
        integrated[known] = mask[codes[known].astype(int)]
        if integrated.any():
            blocks.append((codes, term.values(X) * integrated[:, None], root))
    base = replace(predictive, predictor=predictor.without_labels(labels))
    if predictive.present is not None:
        y = np.searchsorted(predictive.present, y).astype(float)
    values = np.empty((int(groups.max()) + 1, predictor.n_draws))
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(len(values) + 1))
    integrate = _normal if predictive.likelihood.quadratic else _by_quadrature
    for g in range(len(values)):
        rows = order[ends[g] : ends[g + 1]]
        units = [np.zeros(len(rows), int)]
        if len(blocks) == 1:  # the labels of one term are independent
            units = [np.unique(blocks[0][0][rows], return_inverse=True)[1].ravel()]
        total: Any = 0.0
        for unit in range(int(units[0].max()) + 1):
            some = rows[units[0] == unit]
            Z, root = _block([(c[some], v[some], r) for c, v, r in blocks])
            part = X[some], y[some], row_values[some]
            with np.errstate(all="ignore"):
                total = total + integrate(base, part, weight[some], Z, root)
        values[g] = total
    return values


def _block(terms: list[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """Columns Z ``(n, m)`` of the effects of some rows, and the factor ``(S, m, m)`` of these."""
    columns, roots = [], []
    for codes, values, root in terms:
        for code in np.unique(codes):
            mine = values * (codes == code)[:, None]
            if mine.any():
                columns.append(mine)
                roots.append(root)
    if not columns:
        n_draws = len(terms[0][2]) if terms else 1
        return np.zeros((len(terms[0][0]) if terms else 0, 0)), np.zeros((n_draws, 0, 0))
    Z = np.hstack(columns)
    S, m = len(roots[0]), Z.shape[1]
    whole, first = np.zeros((S, m, m)), 0
    for root in roots:
        q = root.shape[1]
        whole[:, first : first + q, first : first + q] = root
        first += q
    return Z, whole


def _normal(base: Any, data: Any, weight: Array, Z: Array, root: Array) -> Array:
    """Log density of rows with normal noise ``(S,)``."""
    X, y, row_values = data
    eta = base.predictors(X, row_values)[0]
    values = base.likelihood.log_density(base.at_predictors(eta[None], row_values), y[:, None])
    alone: Array = weight @ values
    m = Z.shape[1]
    if m == 0:
        return alone
    share = np.broadcast_to(base._noise_share(row_values), len(y))
    weighed = Z * (weight / share)[:, None]
    phi = 1.0 / base._noise_variance
    swapped = root.swapaxes(1, 2)
    M = np.eye(m) + swapped @ (weighed.T @ Z) @ root * phi[:, None, None]
    b = np.einsum("sji,js->si", root, weighed.T @ (y[:, None] - eta)) * phi[:, None]
    factor = np.linalg.cholesky(M)
    half = np.linalg.solve(factor, b[..., None])[..., 0]
    log_det = np.log(np.einsum("sii->si", factor)).sum(axis=1)
    return alone - log_det + 0.5 * np.square(half).sum(axis=1)


def _by_quadrature(base: Any, data: Any, weight: Array, Z: Array, root: Array) -> Array:
    """Log density of rows of any likelihood ``(S,)``."""
    X, y, row_values = data
    eta, at, law = base.predictors(X, row_values), y[:, None], base.likelihood

    def local(v: Array) -> Array:
        moved = eta if v.shape[1] == 0 else eta + (Z @ np.einsum("sij,sj->is", root, v))[None]
        local: Array = base.at_predictors(moved, row_values)
        return local

    def value(v: Array) -> Array:
        found: Array = weight @ law.log_density(local(v), at) - 0.5 * np.square(v).sum(axis=1)
        return found

    S, m = len(root) if Z.shape[1] else eta.shape[2], Z.shape[1]
    v = np.zeros((S, m))
    if m == 0:
        return value(v)
    B = np.einsum("ni,sij->snj", Z, root)
    now = value(v)
    for _ in range(_NEWTON):
        H = _curvature(law, local(v), at, weight, B)
        score = (weight[:, None] * law.score(local(v), at)[:, 0]).T
        step = np.linalg.solve(H, (np.einsum("snj,sn->sj", B, score) - v)[..., None])[..., 0]
        then = value(v + step)
        for _ in range(12):  # halved where the density does not rise
            worse = ~(then >= now - 1e-9)
            if not worse.any():
                break
            step[worse] *= 0.5
            then = value(v + step)
        v, now = v + step, then
        if np.abs(step).max() < _CLOSE:
            break
    inverse, log_det = inverse_factors(_curvature(law, local(v), at, weight, B))
    C = inverse.swapaxes(1, 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES.get(m, 1))
    log_weights = np.log(weights) + 0.5 * np.square(nodes)
    total = np.full(S, -np.inf)
    for each in product(range(len(nodes)), repeat=m):
        node = nodes[list(each)]
        total = np.logaddexp(total, value(v + C @ node) + log_weights[list(each)].sum())
    return total + log_det - 0.5 * m * np.log(2.0 * np.pi)


def _curvature(law: Any, u: Array, y: Array, weight: Array, B: Array) -> Array:
    """Curvature ``(S, m, m)`` of the log density in standardised effects."""
    each = weight[:, None] * np.maximum(law.curvature(u, y)[:, 0, 0], 0.0)
    whole: Array = np.einsum("snj,ns,snk->sjk", B, each, B) + np.eye(B.shape[2])
    return whole
