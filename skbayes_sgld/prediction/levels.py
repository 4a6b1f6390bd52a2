"""Quantiles of rows at many levels: a few are solved for, and determine those between them.

In the normal score of its level a quantile is nearly linear, so a polynomial through a few of them
has the others: nineteen levels of Student-t noise take half of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebval, chebvander
from scipy.special import ndtr, ndtri

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.mixture import Mixture

_FEW = 12  # levels, all of which are solved for
_MOST = 17  # levels that are solved for of many
_ERROR = 1e-4  # largest estimated error of a level


def quantiles_at(
    mixture: Mixture, solve: Callable[[Mixture, float], Array], q: Array, logs: bool = False
) -> Array:
    """Quantiles ``(n, len(q))`` of the rows of a mixture.

    Parameters
    ----------
    mixture : Mixture
    solve : callable
        Quantiles ``(n,)`` of a mixture at one level.
    q : ndarray of shape (m,)
    logs : bool, default=False
        Whether logarithms of quantiles are interpolated: those of positive observations.
    """
    quantiles, rest = np.empty((len(mixture), len(q))), np.arange(len(mixture))
    score = ndtri(q)
    middle, half = 0.5 * (score.max() + score.min()), 0.5 * (score.max() - score.min())
    if len(q) > _FEW and half > 0.0:
        n = min(5 + len(q) // 4, _MOST)
        degree = np.arange(n)
        angle = np.pi * (degree + 0.5) / n
        at, transform = np.cos(angle), np.cos(np.outer(degree, angle)) * (2.0 / n)
        transform[0] *= 0.5
        levels = ndtr(middle + half * at)
        solved = np.column_stack([solve(mixture, float(p)) for p in levels])
        with np.errstate(divide="ignore", invalid="ignore"):  # these rows are solved below
            coefficients = transform @ (np.log(solved) if logs else solved).T
            slope = chebval(at, chebder(coefficients)) / half  # of a quantile in its normal score
            density = np.exp(-0.5 * np.square(middle + half * at)) / np.sqrt(2.0 * np.pi)
            # Pairs of coefficients fall by a rate; every other one may be 0. The last pair alone
            # may be small by chance: where draws are far apart beside the noise of each.
            sizes = [np.abs(coefficients[-k:][:2]).max(axis=0) for k in (6, 4, 2)]
            rates = [
                np.divide(size, before, where=before > 0.0, out=np.zeros(len(size)))
                for before, size in pairwise(sizes)
            ]
            rate = np.maximum(*rates)
            beyond = np.maximum(sizes[2], rate * sizes[1]) * rate / (1.0 - np.minimum(rate, 0.9))
            error = beyond * (density / slope).max(axis=1)
            sure = (error < _ERROR) & (slope > 0.0).all(axis=1)
            sure &= 2 * np.count_nonzero(sure) >= len(sure)  # few among others are so by chance
        found = (chebvander((score - middle) / half, n - 1) @ coefficients).T
        # rounding may not change the order of neighbours
        order = np.argsort(q)
        found[:, order] = np.maximum.accumulate(found[:, order], axis=1)
        quantiles[sure] = np.exp(found[sure]) if logs else found[sure]
        rest = rest[~sure]
    if len(rest):
        some = mixture if len(rest) == len(mixture) else mixture.some(rest)
        quantiles[rest] = np.column_stack([solve(some, float(p)) for p in q])
        mixture.add_errors(rest, some)
    return quantiles
