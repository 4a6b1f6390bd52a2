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
# Columns of zeros behind a design, by its width modulo eight: BLAS takes those that are left over
# one at a time. Without zeros a gradient of 600 rows takes 14 % longer where seven are left over,
# and 4 to 7 % where five or six are
_ZEROS = 0, 0, 0, 1, 0, 3, 2, 1
# Chains of a product from which it takes one predictor of them: 16 chains of three classes take 7 %
# less time so, four of ten classes 26 % more
_MANY = 16


class _LinearModel(Protocol):
    """The members of a generalised linear model that are settled."""

    X: Array
    y: Array
    weight: Array | None
    n_predictors: int
    _width: int
    likelihood: Likelihood
    linear_prior: LinearPrior

    @property
    def quadratic_prior(self) -> bool: ...
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
                zeros = _ZEROS[posterior._width % 8] if both else 0
                back: Array = np.zeros((len(design), posterior._width + zeros), dtype)
                back[:, : posterior._width] = design
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
        self._shape = n_chains, n_predictors, width
        self._n_products, self._dtype = max(n_predictors - 1, 1), rows.dtype
        self._group = group or n_chains
        self._left, linear = self._room(rows.parts[0][0].back.shape[1])
        self._left[...] = 0.0  # which chains that fill the last group stay
        self._linear = linear[..., :width]
        self._works = [self._buffers(part) for part in rows.parts]
        first, *others = self._works[0]
        self._single = None if others or self._works[1:] else first

    def _room(self, n: int, slots: Array | None = None) -> tuple[Array, Array]:
        """Array of ``n`` numbers of each chain and product, as products see it, and by chain.

        Where a product takes ``_MANY`` chains or more, the array holds one predictor of all chains
        after the other, and a product is of one predictor. Where it takes fewer, the array holds
        all predictors of one chain after the other, and a product is of all predictors.
        """
        n_chains, n_products = self._shape[0], self._n_products
        n_slots = -(-n_chains // self._group) * self._group
        numbers = n_slots * n_products * n
        slots = np.empty(numbers, self._dtype) if slots is None else slots[:numbers]
        if self._group >= _MANY:
            by_chain = slots.reshape(n_products, n_slots, n).swapaxes(0, 1)
            return slots.reshape(-1, self._group, n), by_chain[:n_chains]
        by_chain = slots.reshape(n_slots, n_products, n)
        return slots.reshape(-1, self._group * n_products, n), by_chain[:n_chains]

    def _buffers(self, blocks: list[_Block]) -> list[_Work]:
        """Each block with room for its predictors and its gradient; blocks share the room."""
        right, grad = self._room(self._left.shape[2])
        grad = grad[..., : self._shape[2]]
        room = self._room(max(len(block.back) for block in blocks))[0].reshape(-1)
        views = [self._room(len(block.back), room) for block in blocks]
        return [
            _Work(*block, *view, right, grad) for block, view in zip(blocks, views, strict=True)
        ]

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
        last = linear[:, -1]
        for k in range(self._n_products):
            last -= grad[:, k]

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
    known = _linear_and_prior(posterior, followed, rows, of_prior)

    def value_and_grad(theta: Array) -> tuple[Array, Array]:
        grad = of_prior(theta.reshape(shape)).reshape(theta.shape)
        before = known(theta, grad)
        value = sums.add_value_and_grad(theta, grad)
        value += before
        flat = grad.ravel()
        if not isfinite(float(value.sum()) + flat.dot(flat)):
            bad = ~(np.isfinite(value) & np.isfinite(grad).all(axis=1))
            value[bad] = posterior.log_density(theta[bad])
            grad[bad] = followed.value_and_grad(theta[bad])[1]
        return value, grad

    return value_and_grad


def _linear_and_prior(
    posterior: _LinearModel,
    followed: _LinearModel,
    rows: SettledRows,
    of_prior: Callable[[Array], Array],
) -> Callable[[Array, Array], Array]:
    """Rows' level times theta, and the log prior ``(C,)``, from theta and the prior's gradient.

    The gradient has the rows' pull in it. It tells a log prior of second order.
    """
    # einsum, unlike matmul, rounds a chain alike whatever the number of chains
    if followed.linear_prior is not posterior.linear_prior or not posterior.quadratic_prior:
        return lambda theta, grad: (
            np.einsum("cp,p->c", theta, rows.level) + posterior.log_prior(theta)
        )
    origin = np.zeros((1, rows.level.size))
    at_origin = of_prior(origin.reshape(1, posterior.n_predictors, posterior._width))
    constant = float(posterior.log_prior(origin)[0])
    linear = at_origin.ravel() - 2.0 * (rows.pull - rows.level)

    def from_gradient(theta: Array, grad: Array) -> Array:
        value = np.einsum("cp,cp->c", theta, grad + linear)
        value *= 0.5
        value += constant
        return value

    return from_gradient
