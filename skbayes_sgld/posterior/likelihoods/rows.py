"""Row kernels: a likelihood's score and log density, settled for thousands of gradients."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Numbers to which as many ones are added: 0.45 us for 256, where a single one, which is broadcast,
# takes 0.9 us. Beside the exponentials of more numbers that is little, and their ones take memory
_FEW = 256


class RowKernel:
    """The rows' log likelihood and score, as functions of their predictors alone.

    The log likelihood of the rows is ``sum(level * v) + value`` and its gradient in v is
    ``pull + score``, where v are the rows' predictors times ``signs``; with K classes, the
    predictors of the first K - 1 minus the last one's. A score that overflows is not a number:
    that chain's gradient is then taken by :meth:`Likelihood.score`.

    Attributes
    ----------
    signs : ndarray of shape (B,) or None
    pull, level : ndarray of shape (n_products, B)
    """

    signs: Array | None = None
    pull: Array
    level: Array

    def score(self, v: Array) -> None:
        """Replace ``v (C, n_products, B)`` by the score."""
        raise NotImplementedError

    def value_and_score(self, v: Array) -> Array:
        """Return the value ``(C,)``, and replace v by the score."""
        raise NotImplementedError


def sum_log(x: Array, weight: Array | None) -> Array:
    """Weighted sum of the logs of ``x (C, B)``, each at least 1, to the precision of x.

    One logarithm is taken for eight rows. Where the product of eight is infinite it is taken in
    double precision, and is infinite where that is.
    """
    if weight is not None:
        return np.einsum("cb,b->c", np.log(x), weight)
    with np.errstate(over="ignore"):
        value = _sum_of_logs(x)
        if not isfinite(float(np.add.reduce(value))):
            far = ~np.isfinite(value)
            value[far] = _sum_of_logs(x[far].astype(float))
    return value


def _sum_of_logs(x: Array) -> Array:
    product = _halved(_halved(_halved(x)))
    return np.add.reduce(np.log(product, out=product), axis=1, dtype=np.float64)


def _halved(x: Array) -> Array:
    """Products of the first and the second half of the columns."""
    width = x.shape[1]
    half = (width + 1) // 2
    product = x[:, :half] * x[:, width - half :]
    if width % 2:  # the one in the middle is in both halves
        product[:, -1] = x[:, -1]
    return product


@lru_cache
def ones(shape: tuple[int, ...]) -> Array:
    """Ones to add to numbers of a shape: as many, or a single one where that is faster."""
    return np.ones(shape if prod(shape) <= _FEW else 1)
