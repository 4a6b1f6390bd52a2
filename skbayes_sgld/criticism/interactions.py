"""Score tests of the products of pairs of columns: what the residuals hold of interactions.

All pairs are ranked by a figure that takes two products of matrices, and the test is made for those
that lead. P-values are multiplied by the number of all pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from skbayes_sgld._typing import Array

_TESTED = 100  # pairs whose test is made: a tenth of a second for 2,000 rows and 100 columns
_FAR = 3.0  # sds at which a column is clipped before it is multiplied


class Product(NamedTuple):
    """Score test of adding the product of two columns.

    Attributes
    ----------
    p_value : float
        For all pairs and all residuals together.
    t : float
        Statistic; nearly standard normal if the model is true.
    pair : tuple of int
        The columns.
    about : str
        Name of the residuals.
    """

    p_value: float
    t: float
    pair: tuple[int, int]
    about: str


def product_tests(each: list[tuple[Array, Array, str]], X: Array, normal: bool) -> list[Product]:
    """Tests of the leading pairs of columns, the strongest first.

    Parameters
    ----------
    each : list of tuple
        Standardised residuals ``(m,)``, their derivative in the linear predictor, and a name.
    X : ndarray of shape (m, d)
    normal : bool
        Whether the residuals of a true model are normal. Those of labels are not, and a product
        that differs from 0 in few rows has then heavy tails: Bernstein's inequality bounds them.
    """
    n, d = X.shape
    free = n - d - 2
    spread = X.std(axis=0)
    some = np.flatnonzero(spread > 0)
    n_pairs = len(some) * (len(some) - 1) // 2
    if n_pairs == 0:
        return []
    standard = np.clip((X[:, some] - X[:, some].mean(axis=0)) / spread[some], -_FAR, _FAR)
    scaled = np.column_stack([np.ones(n), X / np.where(spread > 0, spread, 1.0)])
    first, second = np.triu_indices(len(some), 1)
    tests, found = n_pairs * len(each), list[Product]()
    for z, rate, about in each:
        basis = np.linalg.qr(scaled * rate[:, None])[0]
        left = z - basis @ (basis.T @ z)
        weighted = standard * rate[:, None]
        sizes = np.sqrt(np.square(weighted).T @ np.square(standard))
        with np.errstate(invalid="ignore", divide="ignore"):
            ranks = np.abs(weighted.T @ (standard * left[:, None]) / sizes)[first, second]
        lead = np.argsort(-np.nan_to_num(ranks), kind="stable")[:_TESTED]
        whole = weighted[:, first[lead]] * standard[:, second[lead]]
        rest = whole - basis @ (basis.T @ whole)
        size = np.sqrt(np.square(rest).sum(axis=0))
        same = size <= 1e-8 * np.linalg.norm(whole, axis=0)
        # residual variances may differ (White 1980), or look too small if events are rare
        error = np.maximum(np.sqrt(np.square(rest).T @ np.square(z)), size)
        t = np.where(same, 0.0, rest.T @ z / np.where(error > 0, error, 1.0))
        p = 2.0 * stats.t.sf(np.abs(t), free)
        if not normal:
            largest = np.where(same, 1.0, np.abs(rest * _largest(z)[:, None]).max(axis=0))
            bound = np.square(t) / (1.0 + np.abs(t) * largest / (3.0 * np.where(same, 1.0, size)))
            p = np.maximum(p, np.minimum(1.0, 2.0 * np.exp(-0.5 * bound)))
        for k, one in enumerate(lead):
            pair = int(some[first[one]]), int(some[second[one]])
            found.append(Product(min(1.0, tests * float(p[k])), float(t[k]), pair, about))
    return sorted(found, key=lambda one: one.p_value)


def _largest(z: Array) -> Array:
    """Largest size ``(m,)`` of the standardised residual that a label of two values may have."""
    return np.maximum(np.abs(z), 1.0 / np.maximum(np.abs(z), 1e-8))


def connected(pairs: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Sets of columns that pairs connect, in the order of the pairs."""
    sets = list[set[int]]()
    for pair in pairs:
        joined = set(pair).union(*(each for each in sets if each & set(pair)))
        sets = [*(each for each in sets if not each & set(pair)), joined]
    return [tuple(sorted(each)) for each in sets]
