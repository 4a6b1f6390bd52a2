"""Rows with their predictive distributions as one object, for one output or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from sklearn.utils import Bunch

from skbayes_sgld._checks import check_lengths
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.row_values import NO_VALUES, RowValues
from skbayes_sgld.prediction.distribution import PredictiveDistribution


@dataclass(frozen=True)
class PredictedRows:
    """Rows with the predictive distributions of new observations, and of their means.

    The first axis of every array is that of the rows, the last that of levels, points or draws.

    Attributes
    ----------
    of_draws : callable
        Function that makes the :class:`PredictiveDistribution` under the draws.
    of_point : callable
        Function that makes the distribution whose mean and probabilities are reported: the same,
        or that at a point estimate.
    X : ndarray or csr_array of shape (n, d)
    row_values : RowValues
        Known offset or numbers of trials of the rows.
    y : ndarray of shape (n,) or None
        Observations as the likelihood takes them, for densities.
    classes : ndarray of shape (n_classes,) or None
        Labels of a classifier.
    """

    of_draws: Callable[[], PredictiveDistribution]
    of_point: Callable[[], PredictiveDistribution]
    X: Array
    row_values: RowValues = NO_VALUES
    y: Array | None = None
    classes: Array | None = None

    @cached_property
    def predictive(self) -> PredictiveDistribution:
        """Distribution under the draws, made when it is asked for."""
        return self.of_draws()

    @cached_property
    def point(self) -> PredictiveDistribution:
        """Distribution whose mean and probabilities are reported."""
        return self.of_point()

    def mean(self) -> Array:
        """Mean of an observation ``(n,)``."""
        return self.point.mean(self.X, self.row_values)

    def sd(self) -> Array:
        """Standard deviation of an observation ``(n,)``."""
        return self.mean_and_sd()[1]

    def mean_and_sd(self) -> tuple[Array, Array]:
        """Mean of an observation under the draws, to 1e-4 of its sd, and the sd, each ``(n,)``."""
        mean, variance = self.predictive.moments(self.X, self.row_values).T
        return mean, np.sqrt(variance)

    def quantiles(self, q: Array) -> Array:
        """Quantiles of an observation ``(n, len(q))``."""
        return self.predictive.quantiles(self.X, q, self.row_values)

    def cdf(self, t: Array) -> Array:
        """Probability of an observation of at most ``t (n,)`` or ``(n, m)``, in its shape."""
        check_lengths(X=self.X, y=t)
        points = t.reshape(len(t), -1)
        return self.predictive.cdf(self.X, points, self.row_values).reshape(t.shape)

    def sample(self, rng: np.random.RandomState) -> Array:
        """An observation under each draw ``(n, S)``; a label, unless trials are given."""
        sample = self.predictive.sample(self.X, rng, self.row_values)
        if self.classes is None or self.row_values.trials is not None:
            return sample
        return cast(Array, self.classes[sample])

    def log_density(self) -> Array:
        """Log density of the observations ``(n,)``; for labels the log of their probability."""
        assert self.y is not None
        if self.classes is None or self.row_values.trials is not None:
            law = self.predictive if self.classes is None else self.point
            return law.log_density(self.X, self.y, self.row_values)
        codes = self.y.astype(np.intp)[:, None]
        return np.take_along_axis(self.log_probability()[..., 0], codes, axis=1)[:, 0]

    def log_likelihood(self) -> Array:
        """Log density of the observations under each draw ``(n, S)``."""
        assert self.y is not None
        return self.predictive.log_likelihood(self.X, self.y, self.row_values)

    # ---- the mean of an observation, or the probabilities of its labels, under the draws ---------

    def mean_quantiles(self, q: Array) -> Array:
        """Posterior quantiles of the mean ``(n, len(q))``."""
        return self.predictive.mean_quantiles(self.X, q, self.row_values)

    def mean_draws(self) -> Array:
        """Mean under each draw ``(n, S)``."""
        return self.predictive.mean_draws(self.X, self.row_values)

    def predictors(self, single: bool = False) -> Array:
        """Predictors under each draw ``(K, n, S)``, perhaps in single precision."""
        return self.predictive.predictors(self.X, self.row_values, single)

    def totals(self, eta: Array, weight: Array, of_mean: Callable[[Array], Array]) -> Array:
        """Weighted sums over the rows of a function of the mean, under each draw ``(M, S)``.

        For labels they are sums of the probability of each class ``(M, n_classes, S)``. ``weight
        (n, M)`` has a column for each sum, and ``eta`` are the predictors. Sums of means that
        overflow are infinite.
        """
        law = self.predictive
        if self.classes is not None:
            return law.total_probabilities(eta, weight)
        u = law.at_predictors(eta, self.row_values)
        return cast(Array, weight.T @ of_mean(law.likelihood.mean(u)))

    def probability(self) -> Array:
        """Probability of each class ``(n, n_classes)``."""
        return self.point.probability(self.X, self.row_values)

    def labels(self) -> Array:
        """Most probable class ``(n,)``."""
        assert self.classes is not None
        return cast(Array, self.classes[self.point.labels(self.X, self.row_values)])

    def log_probability(self) -> Array:
        """Logs ``(n, n_classes, 2)`` of the probabilities of each class and of all others."""
        return self.point.log_probability(self.X, self.row_values)

    def probability_quantiles(self, q: Array) -> Array:
        """Posterior quantiles of the probability of each class ``(n, n_classes, len(q))``."""
        return self.predictive.probability_quantiles(self.X, q, self.row_values)

    def probability_draws(self) -> Array:
        """Probability of each class under each draw ``(n, n_classes, S)``."""
        return self.predictive.probability_draws(self.X, self.row_values)


class PredictedOutputs:
    """Predictions of several outputs: each method's arrays have the outputs as their second axis.

    The methods are those of :class:`PredictedRows`, the objects in ``each``. Random numbers come
    from one stream, which makes the draws of the outputs independent.
    """

    def __init__(self, each: Sequence[PredictedRows]) -> None:
        self.each = each

    def __getattr__(self, name: str) -> Callable[..., Array]:
        """A method that calls those of all outputs."""
        methods = [getattr(predictions, name) for predictions in self.each]
        return lambda *given: stacked(method(*given) for method in methods)

    def cdf(self, t: Array) -> Array:
        """Probability of an observation of at most ``t (n, n_outputs)``."""
        points = split_columns(t, len(self.each))
        return cast(Array, stacked(one.cdf(p) for one, p in zip(self.each, points, strict=True)))


def of_outputs(each: Iterable[PredictedRows]) -> PredictedRows:
    """Predictions of several outputs as one object."""
    return cast(PredictedRows, PredictedOutputs(list(each)))


def split_columns(y: Any, n_outputs: int) -> list[Any]:
    """Columns of y, one for each output; None for each if y is None."""
    if y is None:
        return [None] * n_outputs
    values = np.asarray(y)
    if values.ndim < 2 or values.shape[1] != n_outputs:
        raise ValueError(
            f"y has shape {values.shape}; the fit was of {n_outputs} outputs, so give "
            f"(n_samples, {n_outputs})."
        )
    return [values[:, k] for k in range(n_outputs)]


def stacked(results: Iterable[Any]) -> Any:
    """Arrays of several outputs, or a Bunch of them by name, with the outputs as second axis."""
    each = list(results)
    if isinstance(each[0], Bunch):
        return Bunch(**{name: stacked(part[name] for part in each) for name in each[0]})
    return np.stack(each, axis=1)
