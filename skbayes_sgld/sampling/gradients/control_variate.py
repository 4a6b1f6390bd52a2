"""Control variates: a batch's gradient around its known expansion at the mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.gradients.base import Array, BoundGradient, Gradient
from skbayes_sgld.sampling.gradients.variance_reduction import SnapshotGradient


class _ControlVariate(BoundGradient):
    """The gradient's expansion around the centre, exact, plus the batch's estimate of the rest."""

    def __init__(self, posterior: BasePosterior, center: Array, order: int) -> None:
        super().__init__(posterior)
        self._center = center[None]
        self._order = order
        self._grad = posterior.grad_log_likelihood(self._center)
        self._curvature = posterior.likelihood_curvature(center) if order == 2 else None

    def prepare(self, idx: Array | None) -> Any:
        # the rows' contributions at the centre do not depend on theta: computed once for all steps
        assert idx is not None
        posterior, steps = self.posterior, idx.shape[:2]
        rows = posterior.take(idx)
        # every step of every chain a product of its own, so that they round alike
        flat = rows.flatten()
        u = posterior.local(np.broadcast_to(self._center, (len(flat.y), self._center.size)), flat)
        at_center = [u, posterior.score(u, flat)]
        if self._order == 2:
            at_center.append(posterior.local_curvature(u, flat))
        return rows, [a.reshape(*steps, *a.shape[1:]) for a in at_center]

    def at(self, prepared: Any, t: int) -> Any:
        rows, at_center = prepared
        return rows.step(t), [a[t] for a in at_center]

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Each row's gradient less its expansion around the centre ``(C, n_local, B)``."""
        rows, (u_center, score_center, *curvature) = batch
        u = self.posterior.local(theta, rows)
        rest = self.posterior.score(u, rows) - score_center
        if curvature:
            rest += np.einsum("cabn,cbn->can", curvature[0], u - u_center)
        return rest

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        posterior, rows = self.posterior, batch[0]
        grad = posterior.pullback(self.row_score(theta, batch), rows)
        grad *= posterior.n_samples / rows.y.shape[-1]
        grad += self._grad
        if self._curvature is not None:
            grad -= matmul_rows(theta - self._center, self._curvature)
        grad += posterior.grad_log_prior(theta)
        return grad


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
        """Raise where the order is neither 1 nor 2."""
        if self.order not in (1, 2):
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
        return _ControlVariate(posterior, center, self.order)
