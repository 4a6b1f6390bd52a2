"""The Hessian of many rows' log likelihood, summed up in single precision.

Gradients stay in double precision. An error of the Hessian, 1e-6 of its diagonal, is one of the
posterior's precision where no combination of the columns nearly vanishes; where one does, the
Hessian is not to be relied on, and None tells it.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations_with_replacement
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import equal_slices, one_blas_thread, row_slices, sum_in_threads
from skbayes_sgld.posterior.expansion import LinearRows, sum_of_slope
from skbayes_sgld.posterior.protocol import Expansion

Array = NDArray[Any]

_FEWEST_NUMBERS = 2**20  # of X for each pair of predictors; of fewer the sums take milliseconds
_BLOCK_NUMBERS = 2**18  # in single precision, that stay in cache
_SMALLEST, _LARGEST = 1e-20, 1e30  # of the diagonal, which single precision holds
_LEAST_EIGENVALUE = 1e-3  # of the Hessian scaled to a unit diagonal


class _Design(Protocol):
    """The members of a generalised linear model whose rows' products are summed up."""

    n_samples: int
    n_params: int

    def design(self, rows: slice) -> Array: ...


class _Rows(_Design, LinearRows, Protocol):
    """The members of a generalised linear model whose Hessian is summed up."""

    X: Array

    def gram_parts(self) -> list[list[slice]]: ...


class _LinearModel(_Rows, Protocol):
    """The members of a generalised linear model and of its posterior."""

    @property
    def light_tailed(self) -> bool: ...
    def _weighted_curvature(self, theta: Array, rows: slice) -> Array: ...
    def add_prior_curvature(self, H: Array, theta: Array) -> None: ...


def rounded_expansion(model: _Rows, theta: Array) -> Expansion | None:
    """Expansion of the log likelihood at one ``theta (P,)``, its Hessian in single precision.

    None where that saves nothing, or loses digits that matter.
    """
    likelihood, K = model.likelihood, model.n_predictors
    if issparse(model.X) or likelihood.infers_noise or K * K * model.X.size < _FEWEST_NUMBERS:
        return None
    if K > 1 and not likelihood.shift_invariant:
        return None
    by_row = np.empty((2 if K == 1 else 0, model.n_samples))
    work = partial(_sums, model, theta, by_row)
    with np.errstate(all="ignore"):  # what single precision does not hold is found out
        sums = sum_in_threads(work, model.gram_parts())
    grad, H = sums[-1], sums[:-1]
    known = len(H) if K == 1 else len(H) // K * (K - 1)
    if not _is_determined(H[:known, :known]):
        return None
    if K > 1:
        _complete(H.reshape(K, -1, K, len(H) // K))
    return Expansion(theta, grad, H, tuple(by_row))


def rough_curvature(posterior: _LinearModel, theta: Array) -> Array | None:
    """Minus the Hessian at one ``theta (P,)``, its products of rows in single precision.

    None for sparse rows and heavy tails; of several linear predictors, for few rows.
    """
    if posterior.n_predictors > 1:
        found = rounded_expansion(posterior, theta)
        if found is not None:
            posterior.add_prior_curvature(found.curvature, theta)
        return None if found is None else found.curvature
    if not posterior.light_tailed or issparse(posterior.X):
        return None
    blocks = row_slices(posterior.n_samples, posterior.n_params)
    weights = [posterior._weighted_curvature(theta, rows)[0, 0] for rows in blocks]
    H = rounded_gram(posterior, np.concatenate(weights))
    posterior.add_prior_curvature(H, theta)
    return H


def _sums(model: _Rows, theta: Array, by_row: Array, blocks: list[slice]) -> Array:
    """Hessian, with the gradient as a last row; the rows' own are written to ``by_row``."""
    sums = np.zeros((theta.size + 1, theta.size))
    add_products = _add_weighted if model.n_predictors == 1 else _add_by_pairs
    room = np.empty(
        (blocks[0].stop - blocks[0].start, model.n_features + model.fit_intercept), np.float32
    )

    def add(rows: slice, X: Array, u: Array, score: Array, curvature: Array) -> None:
        if len(by_row):
            np.multiply(curvature[0, 0], u[0], out=by_row[0, rows])
            by_row[0, rows] += score[0]
            by_row[1, rows] = curvature[0, 0]
        add_products(_design(model, X, room), curvature, sums[:-1])

    sums[-1] = sum_of_slope(model, theta, blocks, add)
    return sums


def _design(model: _Rows, X: Array, room: Array) -> Array:
    """Rows of the design ``(B, d + 1)``, in single precision."""
    design = room[: len(X)]
    center: Any = 0.0 if model.center is None else model.center
    np.subtract(X, center, out=design[:, : X.shape[1]], casting="unsafe")
    design[:, X.shape[1] :] = 1.0
    return design


def _add_weighted(design: Array, curvature: Array, H: Array) -> None:
    """Add the sum of the rows' weighted products; a negative weight makes it NaN."""
    design *= np.sqrt(curvature[0, 0]).astype(np.float32)[:, None]
    H += design.T @ design


def _add_by_pairs(design: Array, curvature: Array, H: Array) -> None:
    """Add the sums for the pairs of all classes but the last."""
    width, K = design.shape[1], len(curvature)
    pairs = list(combinations_with_replacement(range(K - 1), 2))
    size = max(1, _BLOCK_NUMBERS // (len(pairs) * width))
    total = np.zeros((len(pairs), width, width))
    for first in range(0, len(design), size):
        rows = design[first : first + size]
        weight = np.array([curvature[a, b, first : first + size] for a, b in pairs], np.float32)
        scaled = np.ascontiguousarray(rows.T) * weight[:, None]
        total += (scaled.reshape(-1, len(rows)) @ rows).reshape(total.shape)
    blocks = H.reshape(K, width, K, width)
    for (a, b), products in zip(pairs, total, strict=True):
        blocks[a, :, b] += products
        if a < b:
            blocks[b, :, a] += products.T


def _complete(blocks: Array) -> None:
    """Fill in the last class's blocks of ``(K, width, K, width)``: over classes all sum to 0."""
    blocks[:-1, :, -1] = -blocks[:-1, :, :-1].sum(axis=2)
    blocks[-1] = -blocks[:-1].sum(axis=0)


def _is_determined(H: Array) -> bool:
    """Whether single precision holds the Hessian, and no combination of columns nearly vanishes."""
    diagonal = np.diagonal(H)
    if not np.all((diagonal > _SMALLEST) & (diagonal < _LARGEST)):
        return False
    scale = 1.0 / np.sqrt(diagonal)
    scaled = H * scale[:, None] * scale
    with one_blas_thread():
        return bool(linalg.eigvalsh(scaled, subset_by_index=[0, 0])[0] > _LEAST_EIGENVALUE)


def rounded_gram(posterior: _Design, weights: Array) -> Array:
    """Weighted sum of the rows' products, in single precision within a part."""
    parts = equal_parts(posterior.n_samples, posterior.n_params)
    return sum_in_threads(partial(_gram, posterior, np.sqrt(weights)), parts)


def equal_parts(n_rows: int, n_params: int) -> list[slice]:
    """Slices of rows for two threads to share, about as many rows in each as parameters."""
    return equal_slices(n_rows, 2 * max(1, round(n_rows / (2 * n_params))))


def _gram(posterior: _Design, roots: Array, part: slice) -> Array:
    scaled = np.empty((part.stop - part.start, posterior.n_params), np.float32)
    for rows in row_slices(*scaled.shape):
        here = slice(part.start + rows.start, part.start + rows.stop)
        scale = roots[here, None]
        np.multiply(posterior.design(here), scale, out=scaled[rows], casting="same_kind")
    return (scaled.T @ scaled).astype(float)  # single precision holds no sum of many parts
