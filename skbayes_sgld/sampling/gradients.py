"""Estimators of the gradient of the log posterior from all rows or a minibatch.

A component is bound to a posterior first; the bound estimator gathers the rows of many steps at
once (``prepare``) and is then called once a step. All are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import Component, Registry
from skbayes_sgld._linalg import matmul_rows

Array = NDArray[Any]


class Gradient(Component):
    """A rule that estimates the gradient of the log posterior."""

    minibatch = True

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator for this posterior; ``center (P,)`` is its mode, if known."""
        raise NotImplementedError


class BoundGradient:
    """The full gradient; base of the estimators from minibatches."""

    def __init__(self, posterior: Any) -> None:
        self.posterior = posterior

    def prepare(self, idx: Array | None) -> Any:
        """Return what the steps need of the rows ``idx (T, C, B)``; see :meth:`at`."""
        return None

    def at(self, prepared: Any, t: int) -> Any:
        """Return the part of the prepared rows that step ``t`` needs."""
        return None

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Return what each row of a batch leaves to it, in its local parameters."""
        raise NotImplementedError

    def begin(self, theta: Array) -> dict[str, Array]:
        """Return what is remembered of each chain from step to step, chains first."""
        return {}

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Return the estimate of the gradient at ``theta (C, P)``.

        ``memory`` holds what :meth:`begin` returned, among other things; it is brought up to
        date. Without it the estimate is that of a chain that begins at the centre.
        """
        if hasattr(self.posterior, "grad"):  # both parts at once, where that costs less
            return self.posterior.grad(theta)
        likelihood = self.posterior.grad_log_likelihood(theta)
        return likelihood + self.posterior.grad_log_prior(theta)


class MinibatchGradient(BoundGradient):
    """The batch's gradient, rescaled by n / B."""

    def __init__(self, posterior: Any) -> None:
        super().__init__(posterior)
        self._gathers = hasattr(posterior, "take")

    def prepare(self, idx: Array | None) -> Any:
        """Gather the rows, where the posterior lets them be gathered."""
        assert idx is not None
        return self.posterior.take(idx) if self._gathers else idx

    def at(self, prepared: Any, t: int) -> Any:
        """Return the rows of step ``t``."""
        return prepared.step(t) if self._gathers else prepared[t]

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Return each row's gradient in its local parameters ``(C, n_local, B)``."""
        return self.posterior.score(self.posterior.local(theta, batch), batch)

    def __call__(self, theta: Array, batch: Any, memory: dict[str, Array] | None = None) -> Array:
        """Return the batch's gradient, rescaled, and the prior's."""
        posterior = self.posterior
        if self._gathers:
            size = batch.y.shape[-1]
            grad = posterior.pullback(self.row_score(theta, batch), batch)
        else:
            size = batch.shape[-1]
            grad = posterior.grad_log_likelihood(theta, batch)
        grad *= posterior.n_samples / size
        grad += posterior.grad_log_prior(theta)
        return grad


class _ControlVariate(BoundGradient):
    """The gradient's expansion around the centre, exact, plus the batch's estimate of the rest."""

    def __init__(self, posterior: Any, center: Array, order: int) -> None:
        super().__init__(posterior)
        self._center = center[None]
        self._order = order
        self._grad = posterior.grad_log_likelihood(self._center)
        self._curvature = posterior.likelihood_curvature(center) if order == 2 else None

    def prepare(self, idx: Array | None) -> Any:
        # what the rows contribute at the centre does not depend on theta: once for all steps
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
        """Return what each row leaves to the batch ``(C, n_local, B)``."""
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
class Full(Gradient):
    """The gradient from all rows; for a normal likelihood from its sufficient statistics."""

    minibatch = False

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the exact gradient."""
        return BoundGradient(posterior)


@dataclass(eq=False, repr=False)
class Minibatch(Gradient):
    """The gradient of a random batch, rescaled by n / B (Karagiannis, Handout 6, eq. 2.3).

    Parameters
    ----------
    replacement : bool, default=True
        Whether a batch may hold a row twice. Without, the noise is smaller by
        ``(n - B) / (n - 1)`` and the indices cost more to draw.
    """

    replacement: bool = True

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator."""
        return MinibatchGradient(posterior)


@dataclass(eq=False, repr=False)
class ControlVariate(Gradient):
    """A batch's gradient with what is known at the mode taken out.

    Order 1 (Baker, Fearnhead, Fox & Nemeth 2019, eq. 6) leaves the batch the change of each
    row's gradient since the mode; order 2 takes the exact curvature at the mode out as well and
    leaves it the third-order rest. Neither has any variance at the mode.

    Parameters
    ----------
    order : {1, 2}, default=2
    replacement : bool, default=True
        Whether a batch may hold a row twice.
    """

    order: int = 2
    replacement: bool = True

    def check(self) -> None:
        """Raise where the order is neither 1 nor 2."""
        if self.order not in (1, 2):
            raise ValueError(f"gradient.order={self.order!r} is not accepted; choose 1 or 2.")

    def bind(self, posterior: Any, center: Array | None) -> BoundGradient:
        """Return the estimator around ``center``."""
        needs = ("take", "local", "score", "pullback", "likelihood_curvature")
        missing = [name for name in needs if not hasattr(posterior, name)]
        if missing or center is None:
            raise TypeError(
                f"gradient='control_variate' needs a mode and a posterior with {', '.join(needs)}; "
                f"{type(posterior).__name__} has no {', '.join(missing) or 'mode'}. "
                "Use gradient='minibatch' or 'full'."
            )
        return _ControlVariate(posterior, center, self.order)


GRADIENTS: Registry[Gradient] = Registry(
    Gradient,
    full=Full,
    minibatch=Minibatch,
    control_variate=ControlVariate,
)
