"""Predictive distributions of rows under the posterior without each, from the draws of one fit.

Row i is left out by weighting the draws by ``1 / p(y_i | theta)``. The largest weights are replaced
by quantiles of a Pareto distribution (PSIS; Vehtari, Gelman & Gabry 2017) or bounded (Ionides
2008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_weights, check_number, check_size
from skbayes_sgld._memory import check_memory
from skbayes_sgld._random import as_random_state
from skbayes_sgld._typing import Array
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.prediction.far_rows import far_rows
from skbayes_sgld.prediction.wrappers import (
    Unwrapped,
    changes_columns,
    unwrap_for,
)
from skbayes_sgld.rows.arguments import check_by_row_given
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.reading import live_elsewhere

Data = tuple[Array, Array, RowValues]  # X, y and the values of some rows
_SAMPLES = 200  # observations of each row that the checks simulate
_IN_CACHE = 2**17  # numbers of an array: averages take .6 of the time that they take with more


class Numbers(NamedTuple):
    """Predictive distributions of numbers, one for each row.

    Attributes
    ----------
    below, most : ndarray of shape (m,)
        Probabilities of an observation below each row's own, and of one at most as large: the ends
        of the probability integral transform. They are equal if y is continuous.
    mean, variance : ndarray of shape (m,)
    """

    below: Array
    most: Array
    mean: Array
    variance: Array


@dataclass(frozen=True)
class LeftOut:
    """Predictive distributions of some rows, each under the posterior without that row.

    Attributes
    ----------
    predictive : PredictiveDistribution
        Distribution under the draws of all rows.
    data : tuple of X, y and row values
        Rows ``X (m, d)``, observations ``y (m,)``, and the :class:`RowValues` of the rows.
    weight : ndarray of shape (m, S)
        Weights of the draws with each row left out; each row sums to 1.
    pareto_k : ndarray of shape (m,)
        Shape of the tail of each row's weights; -inf if all are nearly equal. Above
        :func:`good_k`, leaving the row out changes the posterior too much to reuse the draws.
    log_density : ndarray of shape (m,)
        Log density of each observation under the posterior without it.
    log_density_with : ndarray of shape (m,)
        Log density of each observation under the posterior of all rows.
    held_out : bool
        Whether the rows are new: none was left out.
    """

    predictive: Any
    data: Data
    weight: Array
    pareto_k: Array
    log_density: Array
    log_density_with: Array
    held_out: bool = False

    @property
    def likelihood(self) -> Any:
        """Distribution of an observation; for labels, of the classes that have weight."""
        return self.predictive.likelihood

    @property
    def y(self) -> Array:
        """Observations ``(m,)``, as the likelihood takes them."""
        return self.data[1]

    @property
    def family(self) -> str:
        """Kind of the observations: "totals", "labels", "counts" or "numbers"."""
        return family_of(self.likelihood)

    def fitted(self) -> Array:
        """Means ``(m,)``, or probabilities ``(m, n_classes)``, under the posterior of all rows.

        Rows are sorted into thirds by these, since a mean without the row moves away from the
        row's observation.
        """
        if self.family == "labels":
            return np.asarray(self.predictive.probability(self.data[0], self.data[2]))
        return np.asarray(self.predictive.mean(self.data[0], self.data[2]))

    def _average(self, function: Callable[[Array, Array], tuple[Array, ...]]) -> Array:
        """Averages ``(k, m)`` of the k values of a function of local parameters and of ``y``."""
        X, y, row_values = self.data[0], self.y[:, None], self.data[2]
        averages = []
        for rows in _blocks(len(self.y), self.weight.shape[1], _IN_CACHE):
            u = self.predictive.local(X[rows], row_values[rows])
            weight = self.weight[rows]
            averages.append([np.einsum("ij,ij->i", v, weight) for v in function(u, y[rows])])
        return np.concatenate(averages, axis=1)

    @cached_property
    def numbers(self) -> Numbers:
        """Transform of each observation, and mean and variance of its distribution."""
        law = self.likelihood

        def of(u: Array, y: Array) -> tuple[Array, ...]:
            mean = law.mean(u)
            apart = mean - mean[:, :1]  # squares of means far from 0 would lose precision
            variance = np.broadcast_to(law.variance(u), mean.shape)
            return law.cdf(u, y), mean, apart, np.square(apart), variance

        most, mean, apart, square, variance = self._average(of)
        variance += np.maximum(square - np.square(apart), 0.0)
        below = most
        if law.whole:
            below = np.clip(most - np.exp(self.log_density), 0.0, 1.0)
        return Numbers(below, most, mean, variance)

    def slope(self) -> Array:
        """Derivative ``(m,)`` of the mean in the linear predictor."""
        law = self.likelihood

        def of(u: Array, _: Array) -> tuple[Array, ...]:
            beside, step = u.copy(), 1e-4
            beside[:, 0] += step
            return ((law.mean(beside) - law.mean(u)) / step,)

        return self._average(of)[0]

    def zero(self) -> Array:
        """Probability of an observation of at most 0 ``(m,)``."""
        law = self.likelihood
        if law.whole:  # log likelihoods are quick
            log_p = self.predictive.log_likelihood(
                self.data[0], np.zeros(len(self.y)), self.data[2]
            )
            return np.einsum("ij,ij->i", np.exp(log_p, out=log_p), self.weight)
        return self._average(lambda u, y: (law.cdf(u, np.zeros_like(y)),))[0]

    def probability(self) -> Array:
        """Probability of each class ``(m, n_classes)``."""
        X, row_values, parts = self.data[0], self.data[2], []
        for rows in _blocks(*self.weight.shape):
            draws = self.predictive.probability_draws(X[rows], row_values[rows])
            parts.append(np.einsum("ikj,ij->ik", draws, self.weight[rows]))
        return np.concatenate(parts)

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Array:
        """Draws of an observation of every row ``(m, n_samples)``."""
        X, row_values, samples = self.data[0], self.data[2], []
        for rows in _blocks(*self.weight.shape):
            u = self.predictive.local(X[rows], row_values[rows])
            ends = np.cumsum(self.weight[rows], axis=1)
            uniform = rng.random_sample((len(ends), n_samples)) * ends[:, -1:]
            picks = np.array([np.searchsorted(*both) for both in zip(ends, uniform, strict=True)])
            u = np.take_along_axis(u, picks[:, None], axis=2)
            samples.append(self.likelihood.sample(u, rng))
        return np.concatenate(samples)


def family_of(likelihood: Any) -> str:
    """Kind of a likelihood's observations."""
    if likelihood.totals:
        return "totals"
    if hasattr(likelihood, "n_classes"):
        return "labels"
    return "counts" if likelihood.whole else "numbers"


def leave_out(
    predictive: Any,
    data: Data,
    *,
    power: Array | float = 1.0,
    relative_ess: float = 1.0,
    smooth: bool = True,
) -> LeftOut:
    """Predictive distributions of rows under the posterior without each.

    Parameters
    ----------
    predictive : PredictiveDistribution
        Distribution under the draws of the fit, or some of them.
    data : tuple of X, y and row values
        Result of an estimator's ``_observed``: X, y, and the values of the rows.
    power : ndarray of shape (m,) or float, default=1.0
        Share of the row to leave out: its weight in the fit if that is below 1.
    relative_ess : float, default=1.0
        Effective sample size over the number of draws; it sets the length of the smoothed tail.
    smooth : bool, default=True
        Whether to smooth the largest weights. Bounding them takes a hundredth of the time and is
        enough for averages over many rows. ``pareto_k`` and ``log_density_with`` are then nan, and
        so is ``log_density`` unless observations are whole numbers.

    Returns
    -------
    left : LeftOut
    """
    n, n_draws = len(data[1]), len(predictive.share)
    weight, (k, without, with_row) = np.empty((n, n_draws)), np.empty((3, n))
    power = np.broadcast_to(power, n)
    for rows in _blocks(n, n_draws):
        some = _chosen(data, rows)
        weight[rows], k[rows], without[rows], with_row[rows] = _left_out(
            predictive, some, power[rows], relative_ess, smooth
        )
    return LeftOut(predictive, data, weight, k, without, with_row)


def _left_out(
    predictive: Any, data: Data, power: Array, relative_ess: float, smooth: bool
) -> tuple[Array, Array, Array, Array]:
    """Weights ``(b, S)``, Pareto k, and log densities without each row and with it."""
    values, share = predictive.log_likelihood(*data), predictive.share
    if not smooth:
        weight = _bounded_weights(power[:, None] * values, share)
        k, without, with_row = np.full((3, len(values)), np.nan)
        if predictive.likelihood.whole:  # only their transforms need it
            with np.errstate(divide="ignore"):
                without = _log_sum(values + np.log(weight))
        return weight, k, without, with_row
    log_weight, k = weights_without(power[:, None] * values, share, relative_ess)
    # in logarithms, since the density under a draw of large weight may underflow
    without, with_row = _log_sum(values + log_weight), _log_sum(values + np.log(share))
    return np.exp(log_weight), k, without, with_row


def _bounded_weights(values: Array, share: Array) -> Array:
    """Weights ``(b, S)`` without each row, at most the mean times the root of their number."""
    with np.errstate(invalid="ignore"):
        weight: Array = np.exp(values.min(axis=1, keepdims=True) - values) * share
        weight /= weight.sum(axis=1, keepdims=True)
        np.minimum(weight, 1.0 / np.sqrt(len(share)), out=weight)
        weight /= weight.sum(axis=1, keepdims=True)
    return weight


def _weights(values: Array, share: Array) -> Array:
    """Log weights ``(b, S)`` of the draws without what has these log densities."""
    log_weight: Array = np.log(share) - values
    log_weight -= _log_sum(log_weight)[:, None]
    return log_weight


def weights_without(values: Array, share: Array, relative_ess: float) -> tuple[Array, Array]:
    """Log weights ``(b, S)`` without rows, or groups, of log densities ``values``; and Pareto k."""
    log_weight = _weights(values, share)
    k = np.full(len(log_weight), -np.inf)
    effective = 1.0 / (len(share) * np.exp(2.0 * log_weight).sum(axis=1))
    for row in np.flatnonzero(effective < 0.97):  # smoothing the others has no visible effect
        log_weight[row], k[row] = _smoothed(log_weight[row], relative_ess)
    return log_weight, k


def log_mean(values: Array, log_weight: Array) -> Array:
    """Log of the mean of exponentials over draws with these log weights ``(b,)``."""
    return _log_sum(values + log_weight)


def _log_sum(values: Array) -> Array:
    """Log of the sum of exponentials over draws ``(b,)``: SciPy's takes three times as long."""
    largest = values.max(axis=1)
    largest[~np.isfinite(largest)] = 0.0
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(np.exp(values - largest[:, None]).sum(axis=1)) + largest


def mix(predictive: Any, data: Data) -> LeftOut:
    """Predictive distributions of new rows under the posterior of the fit."""
    log_density = predictive.log_density(*data)
    weight = np.broadcast_to(predictive.share, (len(log_density), len(predictive.share)))
    k = np.full(len(log_density), -np.inf)
    return LeftOut(predictive, data, weight, k, log_density, log_density, held_out=True)


def good_k(n_draws: int) -> float:
    """Pareto k up to which weights are reliable (Vehtari et al. 2024)."""
    return min(1.0 - 1.0 / np.log10(n_draws), 0.7)


def _smoothed(log_ratio: Array, relative_ess: float) -> tuple[Array, float]:
    """Logs of smoothed weights ``(S,)``, which sum to 1, and the shape of their tail.

    If the tail is too long for a distribution to be fitted, its shape is infinite, and the weights
    are not smoothed.
    """
    from arviz_stats.base import array_stats  # its import takes a fifth as long as this package's

    try:
        with np.errstate(all="ignore"):
            log_weight, k = array_stats.psislw(-log_ratio, r_eff=relative_ess)
    except ValueError:  # the largest weights are equal: there is no tail
        return log_ratio, -np.inf
    if np.isnan(log_weight).any() or not np.isfinite(log_weight.max()) or np.isnan(k):
        return log_ratio, np.inf
    return log_weight, float(k)


def _chosen(data: Data, rows: Any) -> Data:
    """X, y and row values of some of the rows."""
    X, y, row_values = data
    return X[rows], y[rows], row_values[rows]


def _blocks(n_rows: int, n_draws: int, n_numbers: int = 2**21) -> Iterator[slice]:
    size = max(1, n_numbers // n_draws)  # by default an array has 16 megabytes
    return (slice(first, first + size) for first in range(0, n_rows, size))


# ---- the rows of a fit ---------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedRows:
    """Rows of a fit, or new ones, as the innermost model of an estimator takes them.

    Attributes
    ----------
    unwrapped : Unwrapped
        The model, its rows as given, and the transformers of its target.
    data : tuple of X, y and row values
        X, y and the values of the rows whose weight is above 0.
    weight : ndarray of shape (n,)
        Weights of these rows.
    counted : ndarray of shape (n,)
        Positions of these rows.
    log_slope : ndarray of shape (n,)
        Log derivative, at each row, of the inverse transformation of the target.
    held_out : bool
        Whether the rows are new; none is then left out.
    """

    unwrapped: Unwrapped
    data: Data
    weight: Array
    counted: Array
    log_slope: Array
    held_out: bool = False

    @property
    def family(self) -> str:
        """Kind of the observations, as in :class:`LeftOut`."""
        return family_of(self.unwrapped.model._fitted.target.likelihood)

    @property
    def numbers(self) -> Array | None:
        """Positions of the columns of numbers of a mixed model; None if all columns are."""
        mixed = getattr(self.unwrapped.model._fitted, "mixed", None)
        return None if mixed is None else mixed.fixed

    def choose(self, n_rows: int | None, random_state: Any, n: int | None = None) -> Array:
        """Positions of the rows to check, among those with a weight, or of n groups; increasing."""
        n = len(self.counted) if n is None else n
        if n_rows is None:
            return np.arange(n)
        check_number(n_rows, "n_rows", low=2, closed="left", integer=True)
        return np.sort(as_random_state(random_state).choice(n, min(n_rows, n), replace=False))

    def decide_alone(self, rows: Array) -> Array:
        """Mask of the chosen rows that weights cannot leave out, in a mixed model."""
        mixed = getattr(self.unwrapped.model._fitted, "mixed", None)
        if mixed is None or self.held_out:
            return np.zeros(len(rows), bool)
        alone: Array = mixed.decide_alone(self.data[0], self.weight)[rows]
        return alone

    def some_draws(self, n_draws: int | None) -> Any:
        """Predictive distribution under at most ``n_draws`` draws; None: all."""
        n = len(self.unwrapped.model.posterior_.flat)
        step = 1 if n_draws is None else -(-n // n_draws)
        return self.unwrapped.model._predictive(slice(None, None, step))

    def check_draws(self) -> None:
        """Raise if there are too few draws to leave rows out."""
        n = len(self.unwrapped.model.posterior_.flat)
        if n < 25:  # the tail would have fewer than five weights
            raise ValueError(
                f"the fit has {n} draws; leaving rows out needs at least 25. Raise n_draws."
            )

    def leave_out(self, rows: Array, n_draws: int | None = None) -> LeftOut:
        """Distributions of the model's target in the chosen rows, each without that row.

        New rows are not left out.

        ``n_draws`` is the most draws to use; None: all.
        """
        self.check_draws()
        predictive = self.some_draws(n_draws)
        n_numbers = 2 * len(predictive.share) + 4 * _SAMPLES + 8 * min(self.data[0].shape[1], 200)
        what = f"{len(rows):,} rows and {len(predictive.share):,} draws of each"
        check_memory(8 * len(rows) * n_numbers, what, "give n_rows=2000")
        data = _chosen(self.data, rows)
        if self.held_out:
            return mix(predictive, data)
        relative = relative_ess(self, len(predictive.share))
        power = np.minimum(self.weight[rows], 1.0)
        return leave_out(predictive, data, power=power, relative_ess=relative)

    def far(self, rows: Array, n_draws: int | None = None) -> Array:
        """Mask of the new rows so far out that their mean overflows under a draw."""
        X, _, row_values = _chosen(self.data, rows)
        return far_rows(self.some_draws(n_draws), X, row_values)[0]

    def log_densities(self, rows: Array) -> tuple[Array, Array, Array]:
        """Log densities without each row and with it, and Pareto k, computed by blocks of rows."""
        found = np.empty((3, len(rows)))
        for part in _blocks(len(rows), len(self.unwrapped.model.posterior_.flat)):
            one = self.leave_out(rows[part])
            found[:, part] = one.log_density, one.log_density_with, one.pareto_k
        without, with_row, k = found
        return without, with_row, k


def relative_ess(fit: FittedRows, n_draws: int) -> float:
    """Effective sample size of the fit over a number of its draws."""
    ess = np.nanmean(effective_sample_size(fit.unwrapped.model.posterior_.values, kind="mean"))
    # with a smaller effective sample size all draws would be in the tail
    return float(np.clip(ess / n_draws, 0.01, 1.0))


def rows_of_fit(
    caller: str,
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: Any,
    params: dict[str, Any],
    held_out: bool = False,
) -> FittedRows:
    """Rows of a fit; errors name the function that the user called.

    Parameters
    ----------
    caller : str
    estimator : estimator
        Fitted estimator, or wrappers around one.
    X, y, sample_weight
        Data of the fit, as the outermost wrapper takes them.
    params : dict
        Further arguments of the model's ``log_likelihood``, such as ``exposure``.
    held_out : bool, default=False
        Whether the rows are new. Otherwise raise if they are not those of the fit.
    """
    if live_elsewhere(X):
        raise TypeError(
            f"X is {type(X).__name__}, and {caller} takes arrays or memory maps; give all rows as "
            f"an array, or for a random part of them {_FOR_NEW_ROWS[caller]}."
        )
    unwrapped = unwrap_for(caller, "log_likelihood", estimator, X, params)
    if y is None:
        raise ValueError("y is None; give an array with the observation of each row of X.")
    if hasattr(unwrapped.model, "estimators_"):
        raise ValueError(
            f"y has {len(unwrapped.model.estimators_)} outputs, and {caller} takes one; call it "
            "for each of the models in estimators_, with its column of y."
        )
    check_by_row_given(unwrapped.model, params, caller)
    data = unwrapped.model._observed(unwrapped.X, unwrapped.to_model(y), params)
    weight = as_weights(sample_weight, "sample_weight", len(data[1]))
    check_size(float(weight.max()), "sample_weight", low=0.0)
    if unwrapped.model._fitted.target.likelihood.totals:
        weight = weight * (data[2].trials > 0)  # rows without trials carry no information
    counted = np.flatnonzero(weight)
    if len(counted) < 2:
        raise ValueError(
            f"X has {len(counted)} rows with a sample_weight above 0; {caller} needs two."
        )
    if len(counted) < len(weight):
        weight, data = weight[counted], _chosen(data, counted)
    if not held_out:
        _check_same(caller, unwrapped.model, estimator, data, weight, sample_weight is None)
    z = data[1]
    slope = np.log(unwrapped.slope(z, np.full(len(z), z.std()))) if unwrapped.transformers else 0.0
    return FittedRows(unwrapped, data, weight, counted, np.broadcast_to(slope, len(z)), held_out)


_FOR_NEW_ROWS = {
    "check_model": "check_model(model, X, y, held_out=True)",
    "compare_models": "compare_models(models, X, y, held_out=True)",
    "loo": "skbayes_sgld.metrics.get_scorer('log_predictive_density')(model, X, y)",
}


def _check_same(
    caller: str,
    model: Any,
    estimator: Any,
    data: Data,
    weight: Array,
    unweighted: bool,
) -> None:
    """Raise if sums over the rows with a weight are not those of the fit."""
    of_fit: Fingerprint = model._fingerprint
    X, y, row_values = data
    given = Fingerprint.of(X, replace(row_values, y=y, weight=weight))
    differs = of_fit.difference(given)
    if differs == "X" and changes_columns(estimator):
        differs = ""
    if differs:
        what = {
            "rows": f"they are {given.n_rows:,}, and the fit had {of_fit.n_rows:,}",
            "y": "y differs",
            "X": "X, or the order of y beside it, differs",
            "argument": f"{' or '.join(model._fitted.target.arguments)} differs",
        }[differs]
        raise ValueError(
            f"X and y are not the rows of the fit: {what}. Give the rows of the fit, in any order, "
            f"to leave each out; for new rows call {_FOR_NEW_ROWS[caller]}."
        )
    if abs(of_fit.weight - given.weight) > 1e-6 * of_fit.weight:
        none = "is None" if unweighted else f"has the sum {given.weight:g}"
        raise ValueError(
            f"sample_weight {none}, and that of the fit has the sum {of_fit.weight:g}; give the "
            f"weights of the fit: {caller}(..., sample_weight=sample_weight)."
        )
