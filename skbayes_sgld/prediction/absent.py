"""Predictions of labels some classes of which the data never saw."""

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
    """Predictive distribution of labels over classes of which some have probability 0.

    Attributes
    ----------
    seen : Predictive
        That of the classes the model knows.
    codes : ndarray of int
        Their positions among all classes.
    n_classes : int
    """

    seen: Predictive
    codes: Array
    n_classes: int

    def at_mean(self) -> WithAbsentClasses | None:
        """The distribution at the posterior mean of the parameters."""
        seen = self.seen.at_mean()
        return None if seen is None else replace(self, seen=seen)

    def _among_all(self, values: Array, of_absent: Any) -> Array:
        """Values ``(n, n_seen, ...)`` with ``of_absent`` for the classes that are absent."""
        shape = len(values), self.n_classes, *values.shape[2:]
        found = np.broadcast_to(np.asarray(of_absent, dtype=float), shape).copy()
        found[:, self.codes] = values
        return found

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
        return self._of_labels(self.seen.log_likelihood, X, y)

    def log_density(self, X: Array, y: Array) -> Array:
        """Log of the mean probability of each row's label ``(n,)``."""
        return self._of_labels(self.seen.log_density, X, y)

    def _of_labels(self, method: Callable[[Array, Array], Array], X: Array, y: Array) -> Array:
        """Log probabilities of labels, of which absent classes have none."""
        of_seen = np.searchsorted(self.codes, y).clip(max=len(self.codes) - 1)
        found = method(X, of_seen.astype(float))
        found[~np.isin(y, self.codes)] = -np.inf
        return found

    def sample(self, X: Array, rng: np.random.RandomState) -> Array:
        """One label's position of every row under every draw ``(n, S)``."""
        return self.codes[self.seen.sample(X, rng)]
