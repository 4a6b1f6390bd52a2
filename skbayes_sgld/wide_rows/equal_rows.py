"""Rows that are equal have one predictor, and a likelihood of their total or sum.

Texts have copies, and empty documents. The labels of copies are successes among trials; their
counts add up, as do their exposures. A weight counts as so many copies.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Binomial, Likelihood, as_totals
from skbayes_sgld.likelihoods.binomial import split_totals
from skbayes_sgld.posterior.glm import GLMPosterior


class DistinctRows(NamedTuple):
    """Rows of which no two are equal.

    Attributes
    ----------
    X : ndarray or sparse array of shape (n, d)
    y : ndarray of shape (n,)
        Totals of labels, or sums of counts.
    offset : ndarray of shape (n,)
    likelihood : Likelihood
    """

    X: Any
    y: Array
    offset: Array
    likelihood: Likelihood


def distinct_rows(posterior: GLMPosterior, most: int) -> DistinctRows | None:
    """Distinct rows of labels, totals or counts; None if there are more than ``most``."""
    has_rates, n = posterior.likelihood.exponential == "rate", posterior.n_samples
    weight = np.ones(n) if posterior.weight is None else posterior.weight
    offset = np.zeros(n) if posterior.offset is None else posterior.offset
    size = weight if has_rates else weight * split_totals(posterior.y)[1]
    some = np.flatnonzero(size > 0)
    y, weight, offset = posterior.y[some], weight[some], offset[some]
    # odds of copies with different offsets differ
    group = _groups(posterior.X, some, np.zeros(len(y)) if has_rates else offset, most)
    if group is None:
        return None
    first = np.unique(group, return_index=True)[1]
    X = posterior.X[some[first]]

    def sums(values: Array) -> Array:
        return np.bincount(group, weight * values)

    if has_rates:
        level = offset.max()
        offset = level + np.log(sums(np.exp(offset - level)))
        return DistinctRows(X, sums(y), offset, posterior.likelihood)
    successes, trials = split_totals(y)
    successes, failures = sums(successes), sums(trials - successes)
    y = as_totals(successes, successes + failures)
    return DistinctRows(X, y, offset[first], Binomial())


def _groups(X: Any, some: Array, offset: Array, most: int) -> Array | None:
    """Number of the distinct row that each of some rows is; None if there are over ``most``."""
    known: dict[bytes, int] = {}
    group = np.empty(len(some), int)
    for position, (i, known_part) in enumerate(zip(some, offset, strict=True)):
        if issparse(X):
            entries = slice(X.indptr[i], X.indptr[i + 1])
            parts = [known_part, X.indices[entries], X.data[entries]]
        else:
            parts = [known_part, X[i]]
        key = blake2b(digest_size=16)
        for part in parts:
            key.update(part.tobytes())
        group[position] = known.setdefault(key.digest(), len(known))
        if len(known) > most:
            return None
    return group
