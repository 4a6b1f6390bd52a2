"""Distribution functions and quantiles of counts, by summing the probabilities of 0, 1, 2 ...

Each probability is the one before times a ratio, which takes no special function. For distribution
functions at many counts of a row, or quantiles at many levels, this takes a sixth of the time
(continuous ranked probability scores of a negative binomial model).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.mixture import Mixture

_LARGEST = 128  # count up to which probabilities are summed
_ALL, _EACH = 8, 3  # counts up to which all have an estimate of their error; then every third
_TINY = 1e-280  # probability of 0 from which on ratios do not lead to other probabilities


def cdf_of_counts(mixture: Mixture, likelihood: Likelihood, t: Array) -> Array:
    """Probability of at most each of ``t (n, m)`` under a mixture of distributions of counts."""
    table = _table(mixture, likelihood, t.max(axis=1))
    at = np.clip(np.floor(t), -1.0, table.shape[1] - 2.0).astype(np.intp)
    values = np.take_along_axis(table, at + 1, axis=1)
    rest = np.flatnonzero(np.isnan(table[:, 0]))
    if len(rest):
        cdf = mixture.cdf(likelihood.cdf)
        values[rest] = np.column_stack([cdf(each, rest) for each in t[rest].T])
    return values


def quantiles_of_counts(mixture: Mixture, likelihood: Likelihood, q: Array, scale: Array) -> Array:
    """Quantiles ``(n, m)`` under a mixture of distributions of counts.

    The errors of the means are relative to ``scale (m,)``.
    """
    center, highest = mixture.center(), float(q.max())
    mean, sd = likelihood.mean(center)[:, 0], np.sqrt(likelihood.variance(center))[:, 0]
    # one sd beyond the quantile of a normal or, if that is larger, of an exponential distribution
    reach = max(float(ndtri(highest)), -np.log1p(-highest) - 1.0, 0.0) + 1.0
    mixture.scale = 1.0
    table = _table(mixture, likelihood, np.ceil(mean + reach * sd))
    reached = np.where(np.isfinite(table), table, 0.0).max(axis=1)
    rest = np.flatnonzero(reached < q.max())
    every, error = np.arange(len(mixture)), np.zeros(len(mixture)) + mixture.error
    error[rest] = 0.0
    mixture.error = np.zeros(len(mixture))
    quantiles = np.empty((len(mixture), len(q)))
    for number, p in enumerate(q):
        mixture.scale = scale[number]
        at = np.minimum((table < p).sum(axis=1), table.shape[1] - 1)
        above, below = table[every, at] - p, p - table[every, at - 1]
        mixture.settle(error / mixture.scale, np.minimum(above, below))
        quantiles[:, number] = at - 1.0
    if len(rest):
        some = mixture.some(rest)
        for number, p in enumerate(q):
            some.scale = scale[number]
            quantiles[rest, number] = likelihood.averaged_quantile(some, float(p))
        mixture.add_errors(rest, some)
    return quantiles


def _table(mixture: Mixture, likelihood: Likelihood, last: Array) -> Array:
    """Probabilities of at most -1, 0, 1 ... ``(n, K + 2)``; beyond ``last (n,)`` they are inf.

    Rows of large counts, and those whose probability of 0 underflows, are nan.
    """
    last = np.maximum(np.floor(last), 0.0)
    first = likelihood.cdf(mixture.u, np.zeros((len(mixture), 1)))
    usable = (last <= _LARGEST) & (first > _TINY).all(axis=1)
    table = np.full((len(mixture), int(last[usable].max(initial=0.0)) + 2), np.nan)
    table[usable] = np.inf
    table[usable, 0] = 0.0
    # rows that need the most counts come first, so that those left are the first ones
    order = np.argsort(np.where(usable, -last, np.inf))[: usable.sum()]
    some, ends, term = mixture.some(order), -last[order], first[order]
    ratio, total = likelihood.ratios(some.u), term.copy()
    for k in range(table.shape[1] - 1):
        left = int(np.searchsorted(ends, -k, side="right"))
        if k:
            term = term[:left] * ratio(k - 1.0, left)
            total = total[:left] + term
        some.estimates = k < _ALL or k % _EACH == 0  # neighbours have similar errors
        mean = some.average(total, slice(left))
        table[order[:left], k + 1] = np.clip(mean, 0.0, 1.0)
    mixture.add_errors(order, some)
    return table
