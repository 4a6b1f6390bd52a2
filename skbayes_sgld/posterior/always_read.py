"""Posterior that reads some rows in every batch, unscaled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior, Batches
from skbayes_sgld.posterior.protocol import Expansion, Facts, Reported


class AlwaysRead(BasePosterior):
    """Posterior of a generalised linear model whose batches are drawn from some of its rows.

    The other rows are read at every step and count as part of the prior: ``grad_log_prior`` is the
    gradient of the prior and of their log likelihood. Any gradient estimator for this posterior
    thus reads them exactly, and scales the sampled rows by ``n_samples / B``. The density is that
    of the whole posterior.

    Parameters
    ----------
    whole : GLMPosterior
    always : ndarray of int of shape (m,)
        Rows that are always read; at least one row is left.

    Attributes
    ----------
    whole : GLMPosterior
    n_samples : int
        Number of the rows that batches are drawn from.
    n_always : int
        Number of the rows that are always read.
    """

    def __init__(self, whole: Any, always: Array) -> None:
        self.whole, self.always, self.n_always = whole, always, len(always)
        self.n_params, self.param_names = whole.n_params, whole.param_names
        sampled = np.ones(whole.n_samples, bool)
        sampled[always] = False
        self._sampled = np.flatnonzero(sampled)
        self.n_samples = len(self._sampled)
        self._exact = whole.take(np.flatnonzero(~sampled))

    @property
    def facts(self) -> Facts:
        """Facts about the whole posterior; the prior with rows has no constant slope."""
        return replace(self.whole.facts, prior_slope=None)

    # ---- the density is that of the whole posterior ---------------------------------------------

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""
        return self.whole.log_density(theta)

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.whole.grad(theta)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        return self.whole.value_and_grad(theta)

    def bind_grad(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`grad` for one run in one thread."""
        return self.whole.bind_grad(group)

    def with_rounded_kinks(self, spread: Array) -> BasePosterior:
        """Whole posterior with its kinks rounded; this one if there are none."""
        rounded = self.whole.with_rounded_kinks(spread)
        return self if rounded is self.whole else rounded

    @property
    def reported(self) -> Reported:
        """Reported parameters."""
        return self.whole.reported

    # ---- rows: those that are sampled are the likelihood, the others part of the prior ----------

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each sampled row ``(C, B)``."""
        if idx is None:
            return self.whole.log_likelihood(theta)[:, self._sampled]
        return self.whole.log_likelihood(theta, self._sampled[idx])

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the sampled rows ``(C, P)``."""
        if idx is None:
            rest: Array = self.whole.grad_log_likelihood(theta)
            return rest - self._exact.row_sum().grad(theta)
        return self.whole.grad_log_likelihood(theta, self._sampled[idx])

    def log_prior(self, theta: Array) -> Array:
        """Log prior, and log likelihood of the rows that are always read ``(C,)``."""
        return self.whole.log_prior(theta) + self._exact.row_sum().value(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of :meth:`log_prior` ``(C, P)``."""
        grad: Array = self._exact.row_sum().grad(theta)
        grad += self.whole.grad_log_prior(theta)
        return grad

    def bind_batches(self, n_chains: int, batch_size: int, n_walkers: int = 1) -> Batches:
        """Batches of the sampled rows."""
        bound: Any = _SomeRows(
            self.whole.bind_batches(n_chains, batch_size, n_walkers), self._sampled
        )
        return bound

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Log likelihood of the sampled rows and its derivatives at one ``theta (P,)``."""
        return self.expansion(self.whole.expand_likelihood(theta, curvature))

    def expansion(self, of_all: Expansion) -> Expansion:
        """Expansion of the sampled rows' log likelihood, from that of all rows."""
        exact = self._exact.row_sum().expand(of_all.theta)
        return Expansion(
            of_all.theta,
            of_all.grad - exact.grad,
            of_all.curvature - exact.curvature,
            tuple(of_row[self._sampled] for of_row in of_all.of_rows),
            of_all.value - exact.value,
        )


class _SomeRows:
    """Batches whose row numbers refer to a subset of the rows."""

    def __init__(self, batches: Batches, rows: Array) -> None:
        self._batches, self._rows = batches, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def gather(self, idx: Array) -> Sequence[Any]:
        return self._batches.gather(self._rows[idx])

    def gram(self, idx: Array, local: Array) -> Array:
        return self._batches.gram(self._rows[idx], local)
