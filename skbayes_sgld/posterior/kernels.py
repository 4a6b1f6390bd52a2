"""Gradients and densities from all rows, bound to a number of chains.

A run takes thousands of gradients of the same few chains. What does not depend on theta is settled
here once: the design is copied in the layout that each of its two products wants, with the column
of ones and the rows' signs in it, what is linear in the predictors is summed over the rows, and the
predictors have a buffer of their own.

In single precision the products take half of the time, and the exponentials a quarter on processors
without AVX-512. Rounding a row's predictor u by ``du``, about 1e-7 times the sum of ``|x_j
theta_j|``, changes the gradient in coordinates whitened by the curvature by less than the norm of
``sqrt(curvature of the row) du`` over the rows: 1e-5 for a thousand rows and predictors of order
10. Sums over rows are in single precision only within a block of rows, whose rounding in the same
coordinates is 1e-8 times the rows of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld._linalg import in_threads
from skbayes_sgld.posterior.likelihoods import Likelihood, RowKernel
from skbayes_sgld.posterior.linear_prior import LinearPrior

Array = NDArray[Any]

_TWO_LAYOUTS = 2**22  # numbers of X up to which the design is held in both layouts
_HELD_NUMBERS = 2**20  # numbers of X up to which the design is copied in double precision


class _LinearModel(Protocol):
    """The members of a generalised linear model that are settled."""

    X: Array
    y: Array
    weight: Array | None
    n_predictors: int
    _width: int
    likelihood: Likelihood
    linear_prior: LinearPrior

    def design(self, rows: slice) -> Array: ...
    def _parts(self) -> list[list[slice]]: ...
    def log_prior(self, theta: Array) -> Array: ...
    def log_density(self, theta: Array) -> Array: ...
    def value_and_grad(self, theta: Array) -> tuple[Array, Array]: ...


class _Block(NamedTuple):
    """Rows of the design, signed, in the layouts of the two products."""

    kernel: RowKernel
    forward: Array
    back: Array


class _Work(NamedTuple):
    """A block with room for its predictors and its gradient.

    The products see groups of rows, the likelihood sees ``u (C, n_products, B)`` and the sum
    ``grad (C, n_products, width)``: two views of one array each.
    """

    kernel: RowKernel
    forward: Array
    back: Array
    grouped: Array
    u: Array
    right: Array
    grad: Array


class SettledRows:
    """The rows of a generalised linear model in one precision, for any number of chains.

    Attributes
    ----------
    dtype : type
        float64 or float32.
    parts : list of list of _Block
        Blocks of rows, in the parts that threads may share.
    pull, level : ndarray of shape (n_linear,)
        Parts of the gradient, and of the log density's slope, that are the same everywhere.
    """

    def __init__(self, posterior: _LinearModel, dtype: type) -> None:
        y, weight = posterior.y, posterior.weight
        # in double precision the second layout gains nothing
        both = dtype is np.float32 and posterior.X.size <= _TWO_LAYOUTS
        sums = np.zeros((2, max(posterior.n_predictors - 1, 1), posterior._width))
        self.dtype = dtype
        self.parts: list[list[_Block]] = []
        for slices in posterior._parts():
            self.parts.append([])
            for rows in slices:
                w = None if weight is None else weight[rows]
                kernel = posterior.likelihood.bind_rows(y[rows], w, dtype)
                assert kernel is not None
                design = posterior.design(rows)
                if kernel.signs is not None:
                    design *= kernel.signs[:, None]
                sums += np.stack([kernel.pull @ design, kernel.level @ design])
                back: Array = np.ascontiguousarray(design, dtype=dtype)
                forward = np.ascontiguousarray(back.T) if both else back.T
                self.parts[-1].append(_Block(kernel, forward, back))
        if posterior.n_predictors > 1:  # the last class's predictor is subtracted from the others
            sums = np.concatenate([sums, -sums.sum(axis=1, keepdims=True)], axis=1)
        self.pull, self.level = sums.reshape(2, -1)


def settle_rows(posterior: _LinearModel, dtype: type) -> SettledRows | None:
    """Rows settled for a precision; None where the gradient is not bound.

    A likelihood may have no kernel, a large design is not copied in double precision, and a sparse
    one not at all.
    """
    if issparse(posterior.X):
        return None
    likelihood, size = posterior.likelihood, posterior.X.size
    known = likelihood.bind_rows(np.empty(0), None, dtype) is not None
    large = dtype is np.float64 and size > _HELD_NUMBERS
    return SettledRows(posterior, dtype) if known and not large else None


class BoundRows:
    """Sums over settled rows for ``n_chains`` chains, for one run in one thread.

    Parameters
    ----------
    rows : SettledRows
    n_chains, n_predictors, width : int
    group : int or None
        Chains of a product, so that the rounding of one does not depend on how many there are;
        None: all of them.
    """

    def __init__(
        self, rows: SettledRows, n_chains: int, n_predictors: int, width: int, group: int | None
    ) -> None:
        n_products = max(n_predictors - 1, 1)
        n_rows = n_chains * n_products
        self._shape = n_chains, n_predictors, width
        # chains that fill the last group stay zero
        size = (group or n_chains) * n_products
        self._left: Array = np.zeros((-(-n_rows // size), size, width), rows.dtype)
        self._linear = self._left.reshape(-1, width)[:n_rows].reshape(n_chains, n_products, width)
        self._works = [self._buffers(part) for part in rows.parts]
        first, *others = self._works[0]
        self._single = None if others or self._works[1:] else first

    def _buffers(self, blocks: list[_Block]) -> list[_Work]:
        """Each block with room for its predictors and its gradient; blocks share the room."""
        n_chains, n_products, width = self._linear.shape
        n_rows, (n_groups, group) = n_chains * n_products, self._left.shape[:2]
        n_slots = n_groups * group
        room = np.empty(n_slots * max(len(block.back) for block in blocks), self._left.dtype)
        right = np.empty_like(self._left)
        grad = right.reshape(n_slots, width)[:n_rows].reshape(self._linear.shape)
        works = []
        for kernel, forward, back in blocks:
            B = len(back)
            grouped = room[: n_slots * B].reshape(n_groups, group, B)
            u = grouped.reshape(n_slots, B)[:n_rows].reshape(n_chains, n_products, B)
            works.append(_Work(kernel, forward, back, grouped, u, right, grad))
        return works

    def _take(self, theta: Array) -> None:
        linear = theta.reshape(self._shape)
        if self._shape[1] == 1:
            self._linear[...] = linear
        else:
            np.subtract(linear[:, :-1], linear[:, -1:], out=self._linear, casting="same_kind")

    def _give(self, grad: Array, out: Array) -> None:
        """Add the gradient in the products ``(C, n_products, width)`` to ``out (C, n_linear)``."""
        if self._shape[1] == 1:
            out += grad[:, 0]
            return
        linear = out.reshape(self._shape)
        linear[:, :-1] += grad
        linear[:, -1] -= np.add.reduce(grad, axis=1, dtype=np.float64)

    def add_grad(self, theta: Array, out: Array) -> None:
        """Add the gradient at ``theta (C, n_linear)``, less the rows' pull, to ``out``."""
        self._take(theta)
        if self._single is not None:
            self._give(self._grad_of_block(self._single), out)
            return
        for part in in_threads(self._grad_of_part, self._works):
            self._give(part, out)

    def _grad_of_block(self, work: _Work) -> Array:
        np.matmul(self._left, work.forward, out=work.grouped)
        work.kernel.score(work.u)
        np.matmul(work.grouped, work.back, out=work.right)
        return work.grad

    def _grad_of_part(self, works: list[_Work]) -> Array:
        total = np.zeros(self._linear.shape)
        for work in works:
            total += self._grad_of_block(work)
        return total

    def add_value_and_grad(self, theta: Array, out: Array) -> Array:
        """Log likelihood ``(C,)`` less the rows' level; its gradient is added to ``out``."""
        self._take(theta)
        if self._single is not None:
            value, grad = self._value_and_grad_of_block(self._single)
            self._give(grad, out)
            return value
        value = np.zeros(len(theta))
        for more, grad in in_threads(self._value_and_grad_of_part, self._works):
            value += more
            self._give(grad, out)
        return value

    def _value_and_grad_of_block(self, work: _Work) -> tuple[Array, Array]:
        np.matmul(self._left, work.forward, out=work.grouped)
        value = work.kernel.value_and_score(work.u)
        np.matmul(work.grouped, work.back, out=work.right)
        return value, work.grad

    def _value_and_grad_of_part(self, works: list[_Work]) -> tuple[Array, Array]:
        value, total = np.zeros(len(self._linear)), np.zeros(self._linear.shape)
        for work in works:
            more, grad = self._value_and_grad_of_block(work)
            value += more
            total += grad
        return value, total


def bound_grad(
    posterior: _LinearModel, rows: SettledRows, n_chains: int, group: int | None
) -> Callable[[Array], Array]:
    """Gradient of the log posterior at ``theta (n_chains, P)``."""
    shape = n_chains, posterior.n_predictors, posterior._width
    sums = BoundRows(rows, *shape, group)
    of_prior = posterior.linear_prior.bind_grad(rows.pull.reshape(shape[1:]))

    def grad(theta: Array) -> Array:
        out = of_prior(theta.reshape(shape)).reshape(theta.shape)
        sums.add_grad(theta, out)
        flat = out.ravel()
        if not isfinite(flat.dot(flat)):
            bad = ~np.isfinite(out).all(axis=1)
            out[bad] = posterior.value_and_grad(theta[bad])[1]
        return out

    return grad


def bound_value_and_grad(
    posterior: _LinearModel,
    followed: _LinearModel,
    rows: SettledRows,
    n_chains: int,
    group: int | None,
) -> Callable[[Array], tuple[Array, Array]]:
    """Log density of one posterior and gradient of another that differs in its prior alone."""
    shape = n_chains, posterior.n_predictors, posterior._width
    sums = BoundRows(rows, *shape, group)
    of_prior = followed.linear_prior.bind_grad(rows.pull.reshape(shape[1:]))

    def value_and_grad(theta: Array) -> tuple[Array, Array]:
        grad = of_prior(theta.reshape(shape)).reshape(theta.shape)
        value = sums.add_value_and_grad(theta, grad)
        # einsum, unlike matmul, rounds a chain alike whatever the number of chains
        value += np.einsum("cp,p->c", theta, rows.level)
        value += posterior.log_prior(theta)
        flat = grad.ravel()
        if not isfinite(float(value.sum()) + flat.dot(flat)):
            bad = ~(np.isfinite(value) & np.isfinite(grad).all(axis=1))
            value[bad] = posterior.log_density(theta[bad])
            grad[bad] = followed.value_and_grad(theta[bad])[1]
        return value, grad

    return value_and_grad
