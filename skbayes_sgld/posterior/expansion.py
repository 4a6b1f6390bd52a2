"""Gradient and Hessian of the rows' log likelihood at one point, in one pass over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import sum_in_threads
from skbayes_sgld.posterior.batches import RowSubsets
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.protocol import Expansion, Rows

Array = NDArray[Any]


class LinearRows(Protocol):
    """The members of a generalised linear model whose rows' gradient is summed up at one theta."""

    y: Array
    weight: Array | None
    center: Array | None
    likelihood: Likelihood
    n_features: int
    n_predictors: int
    fit_intercept: bool
    _infers_noise: bool

    def _block(self, rows: slice) -> Array: ...
    def _linear(self, theta: Array) -> Array: ...
    def _append_gamma(self, u: Array, theta: Array) -> Array: ...


def expand_rows(model: RowSubsets, theta: Array, curvature: Array | None = None) -> Expansion:
    """Gradient and Hessian of the log likelihood at one ``theta (P,)``, in one pass.

    Minus the Hessian is that of the rows, or ``curvature (P, P)`` where it is known nearly.
    """
    if curvature is not None:
        work = partial(sum_of_slope, model, theta)
        return Expansion(theta, sum_in_threads(work, model._parts()), curvature)
    # of rows with several local parameters they would have a size like that of X
    by_row = np.empty((2 if model.likelihood.n_local == 1 else 0, model.n_samples))
    sums = sum_in_threads(partial(_sum_of_expansion, model, theta, by_row), model.gram_parts())
    return Expansion(theta, sums[-1], sums[:-1], tuple(by_row))


def sum_of_slope(
    model: LinearRows, theta: Array, blocks: list[slice], each: Callable[..., None] | None = None
) -> Array:
    """Gradient at one theta, whose products are not those of several chains.

    ``each`` is told of every block its rows, X, and the local parameters, scores and
    curvatures of the rows.

    In threads every operation on many numbers gives the interpreter away, and may have to wait for
    it: there are as few of them as can be.
    """
    linear = model._linear(theta[None])[0]
    coef, level = linear[:, : model.n_features], np.zeros(model.n_predictors)
    if model.fit_intercept:
        level = linear[:, -1] - (0.0 if model.center is None else coef @ model.center)
    grad = np.zeros_like(theta)
    of_linear = model._linear(grad[None])[0]
    for rows in blocks:
        X = model._block(rows)
        u = coef @ X.T
        u += level[:, None]
        u, y = model._append_gamma(u[None], theta[None]), model.y[rows]
        if each is None:
            score = model.likelihood.score(u, y)[0]
        else:
            score, bend = (of[0] for of in model.likelihood.score_and_curvature(u, y))
        if model.weight is not None:
            score = score * model.weight[rows]
        if each is not None:
            each(rows, X, u[0], score, bend if model.weight is None else bend * model.weight[rows])
        of_linear[:, : model.n_features] += score[: model.n_predictors] @ X
        if model.fit_intercept:
            of_linear[:, -1] += score[: model.n_predictors].sum(axis=1)
        if model._infers_noise:
            grad[-1] += score[-1].sum()
    if model.center is not None:
        of_linear[:, :-1] -= np.outer(of_linear[:, -1], model.center)
    return grad


def _sum_of_expansion(model: RowSubsets, theta: Array, by_row: Array, blocks: list[slice]) -> Array:
    """Hessian, with the gradient as a last row; the rows' own are written to ``by_row``."""
    sums = np.zeros((model.n_params + 1, model.n_params))
    design = np.empty((blocks[0].stop - blocks[0].start, model._width))
    for at in blocks:
        weight = None if model.weight is None else model.weight[at][None]
        rows = Rows(model.design(at, design)[None], model.y[at][None], weight)
        u = model.local(theta[None], rows)
        score, curvature = model.likelihood.score_and_curvature(u, model.y[at])
        if weight is not None:
            score, curvature = score * weight, curvature * weight
        if len(by_row):
            by_row[0, at] = (score + curvature[:, 0] * u)[0, 0]
            by_row[1, at] = curvature[0, 0, 0]
        sums[-1] += model.pullback(score, rows)[0]
        sums[:-1] += model.gram(rows.design[0], curvature[0], overwrite=True)
    return sums
