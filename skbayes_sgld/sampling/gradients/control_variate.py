"""Control variates: a batch's gradient around its known expansion at the mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, partial
from numbers import Integral
from typing import Any, Self

import numpy as np

from skbayes_sgld._linalg import ROW_BLOCK, matmul_rows
from skbayes_sgld.posterior.base import BasePosterior, BoundBatches
from skbayes_sgld.posterior.protocol import Expansion, Rows
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, Metric
from skbayes_sgld.sampling.gradients.variance_reduction import SnapshotGradient
from skbayes_sgld.sampling.protocol import Gradient


class _ControlVariate(BoundGradient):
    """The gradient's expansion around the centre, exact, plus the batch's estimate of the rest.

    The expansion of a row's score, ``s - W (u - u_0)``, is kept as W and as ``s + W u_0``.
    """

    def __init__(
        self, posterior: BasePosterior, center: Array, expansion: Expansion | None
    ) -> None:
        super().__init__(posterior)
        self._center = center[None]
        self._at = expansion
        if expansion is None:  # order 1
            self._grad, self._curvature = posterior.grad_log_likelihood(self._center), None
        else:
            self._grad, self._curvature = expansion.grad[None], expansion.curvature
        self._bind: Callable[..., BoundBatches] = posterior.bind_batches
        self._n_walkers, self._moves = 1, _Products()
        self._grad_log_prior: Callable[[Array], Array] = posterior.grad_log_prior

    def of_run(self) -> Self:
        """Copy for one run in one thread, whose batches are gathered into the same arrays."""
        self._expansion  # noqa: B018  # known before the copy, so that runs share it
        bound = super().of_run()
        bound._bind = cache(self._bind)
        bound._grad_log_prior = self.posterior.bind_grad_log_prior()
        return bound

    def shared_by(self, n_walkers: int) -> Self:
        """Copy whose batches are each of ``n_walkers`` neighbouring positions."""
        shared = copy(self)
        shared._n_walkers = n_walkers
        shared._bind = partial(self.posterior.bind_batches, n_walkers=n_walkers)
        return shared

    def of_pilot(self) -> Self:
        """Copy for a pilot, whose chains each have a batch of their own."""
        pilot = super().of_pilot()
        return pilot if self._n_walkers == 1 else pilot.shared_by(1)

    @cached_property
    def _expansion(self) -> list[Array]:
        """The expansion of all rows, one or two arrays ``(n, n_local)`` and ``(n, n_local^2)``.

        It is empty where rows have so many local parameters that it would be larger than X.
        """
        if self._at is not None and self._at.by_row:
            return [of_row[:, None] for of_row in self._at.by_row]
        n, parts = self.posterior.n_samples, []
        of_one = self._expand(self.posterior.take(np.zeros((1, 1), int)), self._center)
        if sum(a.size for a in of_one) > max(2, self.posterior.n_params // self._n_local(of_one)):
            return []
        for start in range(0, n, ROW_BLOCK):
            rows = self.posterior.take(np.arange(start, min(start + ROW_BLOCK, n))[None])
            parts.append(self._expand(rows, self._center))
        return [
            np.concatenate([part.reshape(-1, part.shape[-1]).T for part in a])
            for a in zip(*parts, strict=True)
        ]

    @staticmethod
    def _n_local(expansion: list[Array]) -> int:
        """Local parameters of a row."""
        return int(expansion[0].shape[1])

    def _expand(self, rows: Rows, center: Array) -> list[Array]:
        """The expansion of gathered rows: ``s + W u_0 (C, n_local, B)`` and W, or s alone."""
        posterior = self.posterior
        u = posterior.local(center, rows)
        score = posterior.score(u, rows)
        if self._at is None:
            return [score]
        curvature = posterior.local_curvature(u, rows)
        return [score + np.einsum("cabn,cbn->can", curvature, u), curvature]

    def _expansion_of(self, idx: Array) -> list[Array]:
        """The expansion of the rows ``idx (T, C, B)``."""
        if self._expansion:
            L = self._expansion[0].shape[1]
            shapes = (L,), (L, L) if L > 1 else (1,)
            taken = [a.take(idx, axis=0) for a in self._expansion]  # (T, C, B, numbers)
            # each number of all rows together: products along rows that lie apart take up to
            # 50 times as long
            return [
                np.ascontiguousarray(a.swapaxes(3, 2)).reshape(*idx.shape[:2], *shape, idx.shape[2])
                for a, shape in zip(taken, shapes, strict=False)
            ]
        # every step of every chain a product of its own, so that they round alike
        flat = self.posterior.take(idx).flatten()
        center = np.broadcast_to(self._center, (len(flat.y), self._center.size))
        return [a.reshape(*idx.shape[:2], *a.shape[1:]) for a in self._expand(flat, center)]

    def prepare(self, idx: Array) -> Sequence[Any]:
        # the rows' expansion does not depend on theta
        bound = self._bind(*idx.shape[1:])
        expansion = self._expansion_of(idx)
        gathered = bound.gather(idx)
        return [(bound, *step) for step in zip(gathered, *expansion, strict=True)]

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's gradient less its expansion around the centre ``(C, n_local, B)``."""
        bound, rows, at_center, *curvature = batch
        u = bound.local(theta, rows)
        if not curvature:
            return bound.score(u, rows) - np.repeat(at_center, self._n_walkers, axis=0)
        # the walkers of a chain share its batch, and so its expansion
        W, v = curvature[0], u.reshape(len(at_center), self._n_walkers, *u.shape[1:])
        rest = W[:, None] * v if u.shape[1] == 1 else np.einsum("cabn,cwbn->cwan", W, v)
        rest -= at_center[:, None]
        rest = rest.reshape(u.shape)
        rest += bound.score(u, rows)
        return rest

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        bound, rows = batch[0], batch[1]
        grad = bound.pullback(self.row_score(theta, batch), rows)
        grad *= self.posterior.n_samples / bound.size
        grad += self._grad
        if self._curvature is not None:
            grad -= matmul_rows(theta - self._center, self._curvature, self._group)
        grad += self._grad_log_prior(theta)
        return grad

    def bind_move(self, metric: Metric) -> Callable[[Array, Any, np.floating], Array] | None:
        posterior = self.posterior
        if self._curvature is None or not posterior.quadratic_prior:
            return None
        slope = self._grad + posterior.grad_log_prior(self._center)
        return _Move(self, metric, slope, *self._moves.of(self, metric))

    def _posterior_curvature(self) -> Array:
        assert self._curvature is not None
        H = self._curvature.copy()
        self.posterior.add_prior_curvature(H, self._center[0])
        return H


class _Products:
    """``-H G`` and G of the last metric that was asked for, which all threads of a run share."""

    _known: tuple[Metric, Array, Array] | None = None

    def of(self, gradient: _ControlVariate, metric: Metric) -> tuple[Array, Array]:
        """Both, each ``(P, P)``."""
        if self._known is None or self._known[0] is not metric:
            G = metric.in_groups_of(None).scale(np.eye(metric.n_params))
            self._known = metric, -gradient._posterior_curvature() @ G, G
        return self._known[1:]


class _Move:
    """``theta + eta G g``, where one product makes the linear part and the rest of ``G g``.

    At ``theta = center + z`` that is ``G (slope - H z) + (n / B) G rest``, with H the curvature of
    the log posterior.
    """

    def __init__(
        self, gradient: _ControlVariate, metric: Metric, slope: Array, of_z: Array, of_rest: Array
    ) -> None:
        self._gradient, self._center, self._group = gradient, gradient._center, gradient._group
        self._of_z, self._of_rest = of_z, of_rest
        self._offset = metric.scale(slope)
        self._bind = cache(self._settle)

    def _settle(self, n_chains: int, batch_size: int) -> tuple[Array, Array, Array, Array]:
        """Matrix of the product, its left side, and the parts that z and rest take of that."""
        scale, P = self._gradient.posterior.n_samples / batch_size, len(self._of_rest)
        # chains that fill the last group stay zero
        left = np.zeros((-(-n_chains // self._group), self._group, 2 * P))
        used = left.reshape(-1, 2 * P)[:n_chains]
        return np.vstack([self._of_z, scale * self._of_rest]), left, used[:, :P], used[:, P:]

    def __call__(self, theta: Array, batch: Any, eta: np.floating) -> Array:
        bound, rows = batch[0], batch[1]
        matrix, left, z, rest = self._bind(len(theta), bound.size)
        np.subtract(theta, self._center, out=z)
        bound.pullback(self._gradient.row_score(theta, batch), rows, out=rest)
        drift = np.matmul(left, matrix).reshape(-1, len(self._of_rest))[: len(theta)]
        drift += self._offset
        drift *= eta
        drift += theta
        return drift


@dataclass(eq=False, repr=False)
class ControlVariate(Gradient):
    """The gradient expanded around the mode, exact, plus a batch's estimate of the rest.

    With order 1 (Baker, Fearnhead, Fox & Nemeth 2019, eq. 6) the batch estimates the change of
    the gradient since the mode; with order 2 the exact curvature at the mode is subtracted too,
    and the batch estimates what is left of third order. Neither has any variance at the mode.
    Order 1 takes any rows, order 2 those that see theta through local parameters, as linear
    predictors.

    Parameters
    ----------
    order : {1, 2}, default=2
        Order of the expansion.
    replacement : bool, default=True
        Whether a batch may hold a row twice.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.sampling import ControlVariate
    >>> SGLDLogisticRegression(gradient=ControlVariate(order=1), batch_size=50)
    SGLDLogisticRegression(batch_size=50, gradient=ControlVariate(order=1))
    """

    order: int = 2
    replacement: bool = True
    needs_mode = True

    def check(self) -> None:
        """Raise where the order is neither 1 nor 2, or a flag is none."""
        super().check()
        if not isinstance(self.order, Integral) or self.order not in (1, 2):
            raise ValueError(f"gradient.order={self.order!r} is not accepted; choose 1 or 2.")

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """Rows, and for the second order their curvature in a few local parameters."""
        return ("rows", "local_rows", "row_curvature") if self.order == 2 else ("rows",)

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """Advice for a posterior that lacks them: the first order takes any rows."""
        if self.order == 2:
            return "set gradient=ControlVariate(order=1), which takes any rows, or 'full'"
        return super().remedy

    def make(self, posterior: BasePosterior, center: Array | None) -> BoundGradient:
        """Estimator around ``center``."""
        if center is None:
            raise ValueError(
                f"gradient={self!r} needs the mode of the posterior, and none is known; set "
                "gradient='svrg', which needs none, or 'minibatch'."
            )
        if "local_rows" not in posterior.abilities:
            return SnapshotGradient(posterior, center)
        expansion = posterior.expand_likelihood(center) if self.order == 2 else None
        return _ControlVariate(posterior, center, expansion)

    def make_around(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion
    ) -> BoundGradient:
        """Estimator around the point of the expansion, exact there whether it is the mode."""
        if self.order == 1 or "local_rows" not in posterior.abilities:
            return self.make(posterior, center)
        return _ControlVariate(posterior, expansion.theta, expansion)
