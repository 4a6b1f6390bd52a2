"""Quantiles of rows at many levels: a few are solved for, and determine those between them.

In the normal score of its level a quantile is nearly linear, so a polynomial through a few of them
has the others. Three of the few are solved for, and tell how far the others are from those at the
mean parameters. The levels that are found there move them to the levels that are asked for.
Nineteen levels of log-linear noise take half of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebval, chebvander
from scipy.special import ndtr, ndtri

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.mixture import Mixture

_FEW = 8  # levels, all of which are solved for
_MOST = 17  # levels that are solved for of many
_ERROR = 1e-4  # largest estimated error of a level
_STEPS = 3  # of a polynomial to its values at the levels that are found; each gains two digits


def quantiles_at(
    mixture: Mixture,
    solve: Callable[[Mixture, float], Array],
    start: Callable[[Mixture, float], Array],
    level: Callable[[Mixture, Array, float], Array],
    q: Array,
    logs: bool = False,
) -> Array:
    """Quantiles ``(n, len(q))`` of the rows of a mixture.

    Parameters
    ----------
    mixture : Mixture
    solve : callable
        Quantiles ``(n,)`` of a mixture at one level.
    start : callable
        Quantiles ``(n,)`` at the mean parameters at one level, or their logarithms.
    level : callable
        Levels ``(n,)`` of a mixture at points ``(n,)``, given a level that is near them.
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
        levels, ends = ndtr(middle + half * at), np.array([0, n // 2, n - 1])
        parabola = np.linalg.solve(np.vander(at[ends]).T, np.vander(at, 3).T)
        with np.errstate(all="ignore"):  # rows that are not finite are solved below
            x = np.column_stack([start(mixture, float(p)) for p in levels])
            three = np.column_stack([solve(mixture, float(p)) for p in levels[ends]])
            x += ((np.log(three) if logs else three) - x[:, ends]) @ parabola
            found_at = np.tile(at, (len(x), 1))  # normal scores of the levels there, as the nodes
            for k in np.setdiff1d(np.arange(n), ends):
                t = np.exp(x[:, k]) if logs else x[:, k]
                found_at[:, k] = (ndtri(level(mixture, t, float(levels[k]))) - middle) / half
            coefficients = transform @ x.T
            for _ in range(_STEPS):
                moved = x.T - chebval(found_at.T, coefficients[:, None], tensor=False)
                coefficients += transform @ moved
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
            beyond += np.abs(moved).max(axis=0)
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
