"""Predictions over all classes, when some have no rows in the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.prediction.predictive import Predictive

Array = NDArray[Any]


@dataclass(frozen=True)
class WithAbsentClasses:
    """Predictive distribution over all classes; classes without rows have probability 0.

    Attributes
    ----------
    seen : Predictive
        Distribution over the classes that have rows.
    codes : ndarray of int
        Positions of these classes among all classes.
    n_classes : int
    """

    seen: Predictive
    codes: Array
    n_classes: int

    @property
    def share(self) -> Array:
        """Probabilities of the draws ``(S,)``."""
        return self.seen.share

    def at_mean(self) -> WithAbsentClasses | None:
        """The distribution at the posterior mean of the parameters."""
        seen = self.seen.at_mean()
        return None if seen is None else replace(self, seen=seen)

    def _among_all(self, values: Array, absent: Any) -> Array:
        """Values ``(n, n_seen, ...)`` extended by ``absent`` for the classes without rows."""
        shape = len(values), self.n_classes, *values.shape[2:]
        extended = np.broadcast_to(np.asarray(absent, dtype=float), shape).copy()
        extended[:, self.codes] = values
        return extended

    def probability(self, X: Array) -> Array:
        """Posterior mean of the probability of each class ``(n, n_classes)``."""
        return self._among_all(self.seen.probability(X), 0.0)

    def log_probability(self, X: Array) -> Array:
        """Logs ``(n, n_classes, 2)`` of the mean probability of each class, and of the others."""
        return self._among_all(self.seen.log_probability(X), [-np.inf, 0.0])

    def probability_draws(self, X: Array) -> Array:
        """Probability of each class under every draw ``(n, n_classes, S)``."""
        return self._among_all(self.seen.probability_draws(X), 0.0)

    def probability_quantiles(self, X: Array, q: Array) -> Array:
        """Posterior quantiles of the probability of each class ``(n, n_classes, len(q))``."""
        return self._among_all(self.seen.probability_quantiles(X, q), 0.0)

    def log_likelihood(self, X: Array, y: Array) -> Array:
        """Log probability of each row's label under every draw ``(n, S)``."""
        return self._log_label(self.seen.log_likelihood, X, y)

    def log_density(self, X: Array, y: Array) -> Array:
        """Log of the mean probability of each row's label ``(n,)``."""
        return self._log_label(self.seen.log_density, X, y)

    def _log_label(self, method: Callable[[Array, Array], Array], X: Array, y: Array) -> Array:
        """Log probabilities of labels; -inf for classes without rows."""
        position = np.searchsorted(self.codes, y).clip(max=len(self.codes) - 1)
        log_probability = method(X, position.astype(float))
        log_probability[~np.isin(y, self.codes)] = -np.inf
        return log_probability

    def sample(self, X: Array, rng: np.random.RandomState) -> Array:
        """One label of every row under every draw, as positions ``(n, S)``."""
        return self.codes[self.seen.sample(X, rng)]
