"""Log density and gradient from all rows together, bound to a number of chains."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import in_threads
from skbayes_sgld.posterior.linear_predictors import BoundRows, BoundWork, SettledRows
from skbayes_sgld.posterior.linear_prior import LinearPrior

Array = NDArray[Any]


class _LinearModel(Protocol):
    """The members of a generalised linear model whose density is bound."""

    n_predictors: int
    _width: int
    linear_prior: LinearPrior

    @property
    def quadratic_prior(self) -> bool: ...
    def log_prior(self, theta: Array) -> Array: ...
    def grad_log_prior(self, theta: Array) -> Array: ...
    def log_density(self, theta: Array) -> Array: ...
    def value_and_grad(self, theta: Array) -> tuple[Array, Array]: ...
    def _rows_value_and_grad(self, theta: Array) -> tuple[Array, Array]: ...


class BoundDensity(BoundRows):
    """Sums of the log likelihood and its gradient over settled rows, for one run in one thread."""

    def add_value_and_grad(self, theta: Array, out: Array) -> Array:
        """Log likelihood ``(C,)`` less the rows' level; its gradient is added to ``out``."""
        values = [self._add_value_and_grad(theta[some], out[some]) for some in self._slices]
        return np.concatenate(values)

    def _add_value_and_grad(self, theta: Array, out: Array) -> Array:
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

    def _value_and_grad_of_block(self, work: BoundWork) -> tuple[Array, Array]:
        np.matmul(self._left, work.forward, out=work.grouped)
        value = work.kernel.value_and_score(work.u)
        np.matmul(work.grouped, work.back, out=work.right)
        return value, work.grad

    def _value_and_grad_of_part(self, works: list[BoundWork]) -> tuple[Array, Array]:
        value, total = np.zeros(len(self._linear)), np.zeros(self._linear.shape)
        for work in works:
            more, grad = self._value_and_grad_of_block(work)
            value += more
            total += grad
        return value, total


def bound_value_and_grad(
    posterior: _LinearModel,
    followed: _LinearModel,
    rows: SettledRows | None,
    n_chains: int,
    group: int | None,
) -> Callable[[Array], tuple[Array, Array]]:
    """Log density of one posterior and gradient of another that differs in its prior alone.

    ``rows`` is None where they are not settled.
    """
    if rows is None:
        return partial(_value_and_grad, posterior, followed)
    shape = n_chains, posterior.n_predictors, posterior._width
    sums = BoundDensity(rows, *shape, group)
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


def _value_and_grad(
    posterior: _LinearModel, followed: _LinearModel, theta: Array
) -> tuple[Array, Array]:
    value, grad = posterior._rows_value_and_grad(theta)
    return value + posterior.log_prior(theta), grad + followed.grad_log_prior(theta)


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
