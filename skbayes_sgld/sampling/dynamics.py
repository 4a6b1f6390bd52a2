"""What drives a step: gradient and metric, bound to a posterior, and the dynamics that join them.

The metric is the matrix G of the preconditioned recursion, with drift G g and noise G^{1/2} xi
(Karagiannis, Handout 6, eq. 3.9). One object gives both, so drift and noise cannot disagree. A
metric is known through a root of it, ``G = R R^T``; none but the dense one forms a matrix of
parameters by parameters.

A bound gradient gathers the rows of many steps at once (``prepare``) and is then called once a
step. All gradient estimators are unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import lcm
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import GROUP, matmul_rows, matmul_symmetric
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.clipping import Clip
from skbayes_sgld.sampling.rounded_root import RoundedRoot

Array = NDArray[Any]

State = dict[str, Array]
"""State of the chains: ``theta (C, P)`` and an algorithm's own arrays, chains first."""

_WIDE = 256  # parameters from which a root in float32 is cheaper
_ROWS = 16  # rows of noise in a product: fixed, so that draws do not depend on the block size
_GATHERED_NUMBERS = 2**16  # of a few steps' rows, which then stay in cache


class Metric:
    """The identity: the recursion of eq. (3.4). Base of the others."""

    _group: int | None = GROUP
    dtype: type = np.float64  # of what drives a trajectory in it

    def __init__(self, n_params: int) -> None:
        self.n_params = n_params

    @property
    def diagonal(self) -> Array | None:
        """Diagonal of G ``(P,)`` where it is known to be a diagonal matrix; None otherwise."""
        return None

    def scale(self, v: Array) -> Array:
        """``G v`` for each row of ``v (C, P)``."""
        return v

    def sqrt(self, z: Array) -> Array:
        """``R z`` for each ``z (..., P)``."""
        return z

    @property
    def root(self) -> Array:
        """R as a matrix ``(P, P)``."""
        return self.sqrt(np.eye(self.n_params)).T

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``, a gradient in the preconditioned coordinates ``(C, P)``."""
        return v

    def of_chains(self, some: slice) -> Metric:
        """Metric of some of the chains."""
        return self

    def in_groups_of(self, size: int | None) -> Self:
        """Metric whose :meth:`sqrt` and :meth:`sqrt_t` take so many positions in a product.

        None takes all, for a pilot, whose number of chains is fixed.
        """
        other = copy(self)
        other._group = size
        return other

    def rounded(self) -> Metric | RoundedRoot:
        """Metric whose :meth:`sqrt` and :meth:`sqrt_t` of a few rows may be in float32."""
        return self

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x`` for each row of ``x (C, P)``."""
        return x

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v`` for each row of ``v (C, P)``."""
        return v

    @property
    def marginal_sd(self) -> Array:
        """The roots of G's diagonal ``(P,)``: the sds under ``N(0, G)``."""
        return np.ones(self.n_params)

    def stretched(self, sds: Array) -> Metric:
        """Metric in which directions whose whitened sds were ``sds (P,)`` have the sd 1."""
        return Diagonal(np.square(sds))


class Diagonal(Metric):
    """A diagonal metric, by its diagonal ``(P,)``."""

    def __init__(self, variances: Array) -> None:
        super().__init__(len(variances))
        self._variances, self._sds = variances, np.sqrt(variances)

    @property
    def diagonal(self) -> Array:
        """Diagonal."""
        return self._variances

    def scale(self, v: Array) -> Array:
        """``G v``."""
        return v * self._variances

    def sqrt(self, z: Array) -> Array:
        """``R z``."""
        return z * self._sds

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        return v * self._sds

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return x / self._sds

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v``."""
        return v / self._sds

    @property
    def marginal_sd(self) -> Array:
        """The roots of the diagonal."""
        return self._sds

    def stretched(self, sds: Array) -> Metric:
        """The diagonal times the variances."""
        return Diagonal(self._variances * np.square(sds))


class Dense(Metric):
    """Any metric, by a root of it.

    Parameters
    ----------
    root : ndarray of shape (P, P)
        R.
    curvature : ndarray of shape (P, P), default=None
        ``G^{-1}``, where it is known.
    inverse_t : ndarray of shape (P, P), default=None
        ``R^{-T}``, where it is known.
    """

    def __init__(
        self, root: Array, curvature: Array | None = None, inverse_t: Array | None = None
    ) -> None:
        super().__init__(len(root))
        self._root, self._curvature = root, curvature
        if inverse_t is not None:
            self._inverse_t = inverse_t

    def scaled(self, variance: float) -> Dense:
        """The metric times a number."""
        curvature = None if self._curvature is None else self._curvature / variance
        return Dense(self._root * np.sqrt(variance), curvature)

    @property
    def root(self) -> Array:
        """R."""
        return self._root

    @cached_property
    def _matrix(self) -> Array:
        return self._root @ self._root.T

    @cached_property
    def _root_t(self) -> Array:
        return np.ascontiguousarray(self._root.T)

    @cached_property
    def _rounded(self) -> RoundedRoot:
        return RoundedRoot(self._root)

    def rounded(self) -> Metric | RoundedRoot:
        """Metric with a root in float32, where that is the cheaper one."""
        return self._rounded.in_groups_of(self._group) if self.n_params >= _WIDE else self

    @cached_property
    def _inverse_t(self) -> Array:
        """``R^{-T}``."""
        if self._curvature is None:
            return np.linalg.inv(self._root).T
        return self._curvature @ self._root

    def scale(self, v: Array) -> Array:
        """``G v``."""
        return matmul_symmetric(v, self._matrix, self._group or len(v))

    def sqrt(self, z: Array) -> Array:
        """``R z``."""
        if z.ndim == 2:
            return matmul_rows(z, self._root_t, self._group or len(z))
        return matmul_rows(z.reshape(-1, z.shape[-1]), self._root_t, _ROWS).reshape(z.shape)

    def sqrt_t(self, v: Array) -> Array:
        """``R^T v``."""
        return matmul_rows(v, self._root, self._group or len(v))

    def whiten(self, x: Array) -> Array:
        """``R^{-1} x``."""
        return matmul_rows(x, self._inverse_t, _ROWS)

    def whiten_t(self, v: Array) -> Array:
        """``R^{-T} v``."""
        return matmul_rows(v, self._inverse_t.T, _ROWS)

    @property
    def marginal_sd(self) -> Array:
        """The roots of the diagonal."""
        return np.sqrt(np.einsum("pq,pq->p", self._root, self._root))


class BoundGradient:
    """The full gradient; base of the estimators from minibatches."""

    _grad_of: Callable[[int], Callable[[Array], Array]] | None = None
    _value_and_grad_of: (
        Callable[[int, BasePosterior], Callable[[Array], tuple[Array, Array]]] | None
    ) = None

    _group: int = GROUP

    def __init__(self, posterior: BasePosterior) -> None:
        self.posterior = posterior

    def in_groups_of(self, size: int) -> Self:
        """Copy whose products take so many positions at a time."""
        grouped = copy(self)
        grouped.posterior, grouped._group = self.posterior.in_groups_of(size), size
        return grouped

    def shared_by(self, n_walkers: int) -> Self:
        """Copy whose batches are each of ``n_walkers`` neighbouring positions."""
        raise NotImplementedError

    def of_run(self) -> Self:
        """Copy for one run in one thread, whose full gradients are bound to the run's chains."""
        bound = copy(self)
        # by the number of chains, since a sampler may hold several replicas of each
        bound._grad_of = cache(self.posterior.bind_grad)
        bound._value_and_grad_of = cache(
            lambda n_chains, target: target.bind_value_and_grad(n_chains, self.posterior)
        )
        return bound

    def of_pilot(self) -> Self:
        """Copy for a pilot, whose number of chains nobody chooses."""
        bound, posterior = self.of_run(), self.posterior.in_groups_of(None)
        bound._grad_of = cache(posterior.bind_grad)
        bound._value_and_grad_of = cache(
            lambda n_chains, target: target.in_groups_of(None).bind_value_and_grad(
                n_chains, posterior
            )
        )
        return bound

    def bind_move(self, metric: Metric) -> Callable[[Array, Any, np.floating], Array] | None:
        """``theta + eta G g`` of ``theta (C, P)``, a batch and eta; None: nothing is gained."""
        return None

    def full(self, theta: Array) -> Array:
        """Gradient from all rows at ``theta (C, P)``."""
        if self._grad_of is None:
            return self.posterior.grad(theta)
        return self._grad_of(len(theta))(theta)

    def value_and_full(
        self, theta: Array, target: BasePosterior | None = None
    ) -> tuple[Array, Array]:
        """Log density of the target ``(C,)``, and the gradient from all rows."""
        target = target or self.posterior
        if self._value_and_grad_of is None:
            return target.bind_value_and_grad(len(theta), self.posterior)(theta)
        return self._value_and_grad_of(len(theta), target)(theta)

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Batches of the rows ``idx (T, C, B)``, one a step, valid until it is called again."""
        return [None] * len(idx)

    def batches(self, idx: Array) -> Iterator[Any]:
        """What each step needs of the rows ``idx (T, C, B)``, gathered a cache full at a time."""
        most = max(1, _GATHERED_NUMBERS // (idx[0].size * self.posterior.n_params))
        for first in range(0, len(idx), most):
            yield from self.prepare(idx[first : first + most])

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's contribution to a batch's estimate ``(C, n_local, B)``."""
        raise NotImplementedError

    def begin(self, theta: Array) -> dict[str, Array]:
        """Arrays that the estimator keeps of each chain from step to step, chains first."""
        return {}

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Estimate of the gradient at ``theta (C, P)``.

        ``memory`` holds what :meth:`begin` returned, among other things; it is brought up to
        date. Without it the estimate is that of a chain that begins at the centre.
        """
        return self.full(theta)


@dataclass
class Dynamics:
    """Gradient, its bound, metric and temperature: all that a step needs beside the state.

    ``target``, if given, is the posterior whose density accepts or rejects; trajectories may
    follow the gradient of another. ``center`` is that of the normal distribution whose
    covariance the metric is, where it is meant to be one; ``rounded`` says that single precision
    is enough for what drives a trajectory; ``bound_move``, in a run, is where a step leads by
    :meth:`drift`, see :meth:`BoundGradient.bind_move`. ``whitened``, if given, is the target in the
    coordinates of the metric about the centre, which trajectories follow in place of the gradient.
    ``group`` is the number of neighbouring positions that are walkers of one chain, and ``shared``
    the number of those that share the rows of a batch.
    """

    gradient: BoundGradient
    preconditioner: Metric
    clip: Clip | None = None
    temperature: float | Array = 1.0  # one a step in `prepare`, one a chain in `step`
    clipped: Array | int = 0
    target: BasePosterior | None = None
    center: Array | None = None
    rounded: bool = False
    bound_move: Callable[[Array, Any, np.floating], Array] | None = None
    whitened: WhitenedPosterior | None = None
    group: int = 1
    shared: int = 1

    @property
    def whole(self) -> int:
        """Neighbouring positions that processes share as a whole, or bits would differ."""
        return self.group if self.whitened is None else lcm(self.group, self.whitened.group)

    def of_walkers(self, n_walkers: int, share: bool = False) -> Dynamics:
        """Dynamics of chains of ``n_walkers`` neighbouring positions each.

        Products with all rows take the positions of a chain together, as do those with a batch that
        they ``share``.
        """
        if n_walkers == 1:
            return self
        target = None if self.target is None else self.target.in_groups_of(n_walkers)
        gradient = self.gradient.in_groups_of(n_walkers)
        metric = self.preconditioner.in_groups_of(n_walkers)
        shared = 1
        if share:
            gradient, shared = gradient.shared_by(n_walkers), n_walkers
        return replace(
            self,
            gradient=gradient,
            preconditioner=metric,
            target=target,
            group=n_walkers,
            shared=shared,
        )

    def of_chains(self, some: slice) -> Dynamics:
        """Dynamics of some of the chains: each may have a metric and a bound of its own."""
        clip = None if self.clip is None else self.clip.of_chains(some)
        return replace(self, preconditioner=self.preconditioner.of_chains(some), clip=clip)

    def gradient_at(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """``clip(g)`` at ``theta (C, P)``; the chains whose gradient was clipped are counted.

        ``memory`` is the chains' state, where the gradient keeps what it remembers.
        """
        grad = self.gradient(theta, batch, memory)
        if self.clip is not None:
            grad, fired = self.clip(grad)
            self.clipped = self.clipped + fired
        return grad

    def value_and_gradient_at(self, theta: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and ``clip(g)``, both from all rows."""
        value, grad = self.gradient.value_and_full(theta, self.target)
        if self.clip is not None:
            grad, fired = self.clip(grad)
            self.clipped = self.clipped + fired
        return value, grad

    @property
    def posterior(self) -> BasePosterior:
        """Posterior whose density accepts or rejects."""
        return self.target or self.gradient.posterior

    def value_at(self, theta: Array) -> Array:
        """Log density ``(C,)``."""
        return self.posterior.log_density(theta)

    def slope_of_last(self) -> tuple[float, float, float] | None:
        """Slope of the last coordinate, where each moves on its own and the others are normal."""
        if self.clip is not None or self.preconditioner.diagonal is None:
            return None
        return self.gradient.posterior.slope_of_last()

    def of_run(self) -> Dynamics:
        """Copy for one run in one thread, with what does not depend on theta settled."""
        gradient = self.gradient.of_run()
        move = gradient.bind_move(self.preconditioner) if self.clip is None else None
        return replace(self, clipped=0, gradient=gradient, bound_move=move)

    def drift(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """``G clip(g)`` at ``theta (C, P)``."""
        return self.preconditioner.scale(self.gradient_at(theta, batch, memory))
