"""Control variates: the gradient expanded at the mode, plus a batch's estimate of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from skbayes_sgld._linalg import ROW_BLOCK, matmul_rows
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.base import Gradient
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, State
from skbayes_sgld.sampling.gradients.minibatch import MinibatchGradient
from skbayes_sgld.sampling.gradients.svrg import SnapshotGradient

_MOST_ROWS = 100_000  # of two local parameters


def expand_rows(posterior: BasePosterior, expansion: Expansion, idx: Array) -> tuple[Array, Array]:
    """Expansion ``s - W (u - u_0)`` of the scores of the rows ``idx (C, B)`` around the centre.

    Returns ``s + W u_0 (C, n_local, B)`` and ``W (C, n_local, n_local, B)``.
    """
    batches = posterior.bind_batches(*idx.shape)
    rows = batches.gather(idx[None])[0]
    u = batches.local(np.tile(expansion.theta, (len(idx), 1)), rows)
    score, curvature = batches.score_and_curvature(u.copy(), rows)
    return score + np.einsum("cabn,cbn->can", curvature, u), curvature


def expand_all_rows(posterior: BasePosterior, expansion: Expansion) -> list[Array]:
    """Expansions of all rows, ``(n_local, n)`` and ``(n_local, n_local, n)``.

    Empty if rows have more than two local parameters: to compute expansions in each step then takes
    half as long as to gather them. Also if rows with two are so many that a run reads a part: with
    100,000 rows or fewer, default fits under gamma or negative binomial noise take .6 to .75 of the
    time, with a million 1.2 to 1.5 times as long.
    """
    if expansion.of_rows:
        at_center, W = expansion.of_rows
        return [at_center[None], W[None, None]]
    n, parts = posterior.n_samples, []
    for start in range(0, n, ROW_BLOCK):
        idx = np.arange(start, min(start + ROW_BLOCK, n))[None]
        parts.append(expand_rows(posterior, expansion, idx))
        n_local = parts[0][0].shape[1]
        if n_local > 2 or n_local > 1 and n > _MOST_ROWS:
            return []
    return [np.concatenate([part[0] for part in a], axis=-1) for a in zip(*parts, strict=True)]


@dataclass(eq=False)
class ExpandedGradient(MinibatchGradient):
    """The gradient's expansion around the centre, exact, plus the batch's estimate of the rest.

    Attributes
    ----------
    expansion : Expansion
        Expansion of the log likelihood.
    rows : list of ndarray
        Expansion of each row, from :func:`expand_all_rows`.
    """

    expansion: Expansion | None = None
    rows: Sequence[Array] = ()

    def prepare(self, idx: Array) -> Sequence[Any]:
        """Batches and the expansions of their rows; the walkers of a chain share both."""
        assert self.expansion is not None
        T, C, B = idx.shape
        if self.rows:
            at_center, W = (of_row.take(idx, axis=-1) for of_row in self.rows)
            at_center, W = at_center.transpose(1, 2, 0, 3), W.transpose(2, 3, 0, 1, 4)
        else:  # one product for each step of each chain: its rounding depends on no other
            values = expand_rows(self.posterior, self.expansion, idx.reshape(-1, B))
            at_center, W = (a.reshape(T, C, *a.shape[1:]) for a in values)
        at_center = at_center[:, :, None]
        gathered = super().prepare(idx)
        return [(*step, *of_rows) for step, *of_rows in zip(gathered, at_center, W, strict=True)]

    def row_score(self, theta: Array, batch: Any) -> Array:
        """Score of each row minus its expansion around the centre ``(C, n_local, B)``."""
        bound, rows, at_center, W = batch
        u = bound.local(theta, rows)
        v = u.reshape(len(at_center), self.n_sharing, *u.shape[1:])
        # with one local parameter a product is four times as fast as einsum
        rest = W * v if u.shape[1] == 1 else np.einsum("cabn,cwbn->cwan", W, v)
        rest -= at_center
        rest = rest.reshape(u.shape)
        rest += bound.score(u, rows)
        return rest

    def rest(self, theta: Array, batch: Any) -> Array:
        """Estimate of what the expansion leaves of the log likelihood's gradient ``(C, P)``."""
        bound, rows = batch[:2]
        rest: Array = bound.pullback(self.row_score(theta, batch), rows)
        rest *= self.posterior.n_samples / bound.size
        return rest

    def __call__(self, theta: Array, batch: Any, memory: State | None = None) -> Array:
        """Estimate of the gradient."""
        assert self.expansion is not None
        grad = self.rest(theta, batch)
        grad += self.posterior.grad_log_prior(theta)
        grad += self.expansion.grad
        away = theta - self.expansion.theta
        grad -= matmul_rows(away, self.expansion.curvature, self.group or len(theta))
        return grad


@dataclass(eq=False, repr=False)
class ControlVariate(Gradient):
    r"""The gradient expanded around the mode, exact, plus a batch's estimate of the rest.

    With order 1 (Baker, Fearnhead, Fox & Nemeth 2019, eq. 6) the batch estimates the change of
    the gradient since the mode. With order 2 the exact curvature at the mode is subtracted too,
    and the batch estimates the rest. Neither has any variance at the mode.
    Order 1 takes any rows. Order 2 takes rows that depend on theta through a few local
    parameters, such as linear predictors.

    A row that alone determines a parameter, such as the only row of a category, still has a large
    variance. A fit therefore draws a batch ``S`` from the ``n`` rows of low leverage, and reads
    all rows ``A`` of high leverage:

    .. math:: \hat g(\theta) = \nabla \log p(\theta)
        + \sum_{i \in A} \nabla \ell_i(\theta) + \sum_{i \notin A} e_i(\theta)
        + \frac{n}{B} \sum_{i \in S} \{\nabla \ell_i(\theta) - e_i(\theta)\},

    with :math:`e_i` the expansion of a row's gradient about the mode. The leverage of a row is
    :math:`w_i x_i^T H^{-1} x_i`, with :math:`w_i` its curvature in its linear predictor and H that
    of the log posterior. It is high beyond 0.03. A user's own model has no leverages.

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
    reads_always = True

    def check(self) -> None:
        """Raise unless the order is 1 or 2."""
        super().check()
        if not isinstance(self.order, Integral) or self.order not in (1, 2):
            raise ValueError(f"gradient.order={self.order!r} is not accepted; choose 1 or 2.")

    @property
    def requires(self) -> tuple[str, ...]:  # type: ignore[override]
        """Abilities: rows, and for the second order their curvature in a few local parameters."""
        return ("rows", "local_rows", "row_curvature") if self.order == 2 else ("rows",)

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """Advice for a posterior that lacks them."""
        if self.order == 2:
            return "set gradient=ControlVariate(order=1), which takes any rows, or 'full'"
        return super().remedy

    def make(
        self, posterior: BasePosterior, center: Array | None, expansion: Expansion | None
    ) -> BoundGradient:
        """Estimator around the centre; for order 2 around the point of the expansion, if given."""
        if center is None and (expansion is None or self.order == 1):
            raise ValueError(
                f"gradient={self!r} needs the mode of the posterior, and none is known; set "
                "gradient='svrg', which needs none, or 'minibatch'."
            )
        if self.order == 1:
            return SnapshotGradient(posterior, center=center)
        if expansion is None:
            assert center is not None
            expansion = posterior.expand_likelihood(center)
        rows = expand_all_rows(posterior, expansion)
        return ExpandedGradient(posterior, expansion=expansion, rows=rows)
