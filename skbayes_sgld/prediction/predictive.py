"""The posterior predictive distribution as a function of the draws; nothing here is random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.posterior.likelihoods import LabelLikelihood, Likelihood
from skbayes_sgld.prediction.blocks import block_size, by_blocks, map_blocks
from skbayes_sgld.prediction.normal_mixture import NormalMixtures
from skbayes_sgld.prediction.order_statistics import OrderStatistics
from skbayes_sgld.prediction.predictors import Predictor
from skbayes_sgld.prediction.quadrature import Quadrature

Array = NDArray[Any]
_OfRows = Callable[..., Array]

_MIXTURES = 512, 4096  # least and most of those whose expansions are solved together
_MANY_ROWS = 200  # with fewer, double precision costs little
_SHARE = 0.1  # of its largest value that the mean of a density keeps its digits with
_TINY = 1e-30  # mean probability below which single precision has lost draws that matter


@dataclass(frozen=True)
class Predictive:
    """Posterior predictive distribution: a likelihood mixed over the draws of its parameters.

    Methods take rows ``X (n, d)`` and an optional ``offset (n,)``, which is added to their
    predictors. Where there are many numbers, they are in single precision: its error, 1e-6, is far
    below that of the draws.

    Attributes
    ----------
    predictor : Predictor
        Map from rows to their predictors under every draw.
    likelihood : Likelihood
    gamma : ndarray of shape (S,) or None
        Log noise variance of each draw, if the likelihood infers it.
    weights : ndarray of shape (S,) or None
        Weights of the draws; None where they are equal.
    """

    predictor: Predictor
    likelihood: Likelihood
    gamma: Array | None = None
    weights: Array | None = None

    def at_mean(self) -> Predictive | None:
        """The distribution at the posterior mean of the parameters; None where that means nothing.

        The log noise variance is at its mean too.
        """
        predictor = self.predictor.at_mean(self.share)
        if predictor is None:
            return None
        gamma = None if self.gamma is None else np.atleast_1d(self.share @ self.gamma)
        return replace(self, predictor=predictor, gamma=gamma, weights=None)

    @property
    def share(self) -> Array:
        """Probabilities of the draws ``(S,)``."""
        n = self.predictor.n_draws
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    @property
    def _noise_variance(self) -> Array:
        """Noise variance under every draw ``(S,)``."""
        variance = self.likelihood.noise_variance(self.gamma)
        return np.broadcast_to(variance, self.predictor.n_draws)

    @property
    def _unit(self) -> float:
        """Unit in which deviations of the predictors are of a size that single precision holds."""
        if not self.likelihood.quadratic:
            return 1.0
        variance = self._noise_variance
        largest = variance.max()
        return float(np.sqrt(self.share @ (variance / largest)) * np.sqrt(largest))

    def local(self, X: Array, offset: Array | None = None) -> Array:
        """Local parameters ``(n, n_local, S)`` of the rows, as the likelihood takes them."""
        eta = self.predictor(X)
        if offset is not None:
            eta += offset[:, None]
        self.likelihood.check_predictors(eta)
        if self.gamma is not None:
            eta = np.concatenate([eta, np.broadcast_to(self.gamma, eta[:1].shape)])
        return eta.swapaxes(0, 1)

    def _by_blocks(
        self, function: _OfRows, X: Array, offset: Array | None, size: int, *more: Array
    ) -> Array:
        """Values of a function of rows and offset, ``size`` rows at a time.

        Arrays in ``more``, of one entry a row, are handed to the function too.
        """

        def values_of(rows: slice) -> Array:
            part = None if offset is None else offset[rows]
            return function(X[rows], part, *(array[rows] for array in more))

        return map_blocks(values_of, X.shape[0], size)

    def _size(self, copies: int) -> int:
        """Rows of a block with ``copies`` temporaries per predictor."""
        return block_size(self.predictor.n_draws * self.predictor.n_predictors * copies)

    # ---- observations -------------------------------------------------------------------------

    def moments(self, X: Array, offset: Array | None = None) -> Array:
        """Mean and variance of an observation ``(n, 2)``."""
        share, likelihood = self.share, self.likelihood

        def moments_of(X: Array, offset: Array | None) -> Array:
            u = self.local(X, offset)
            each = likelihood.mean(u)
            mean = each @ share
            spread = np.square(each - mean[:, None]) @ share
            return np.column_stack([mean, spread + likelihood.variance(u) @ share])

        if not likelihood.quadratic or offset is not None:
            return self._by_blocks(moments_of, X, offset, self._size(4))
        with one_blas_thread():
            of = self.predictor.moments(share, X.shape[0])
            found = self._by_blocks(lambda X, _: of(X), X, None, self._size(2))
        found[:, 1] += share @ self._noise_variance
        return found

    def mean(self, X: Array, offset: Array | None = None) -> Array:
        """Mean of an observation ``(n,)``."""
        share = self.share

        def mean_of(X: Array, offset: Array | None) -> Array:
            return self.likelihood.mean(self.local(X, offset)) @ share

        return self._by_blocks(mean_of, X, offset, self._size(2))

    def mean_draws(self, X: Array, offset: Array | None = None) -> Array:
        """Mean of an observation under every draw ``(n, S)``."""

        def mean_of(X: Array, offset: Array | None) -> Array:
            return self.likelihood.mean(self.local(X, offset))

        return self._by_blocks(mean_of, X, offset, self._size(2))

    def mean_quantiles(self, X: Array, q: Array, offset: Array | None = None) -> Array:
        """Posterior quantiles of the mean of an observation ``(n, len(q))``."""
        quantiles = OrderStatistics(q, self.predictor.n_draws, self.weights)

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            return quantiles(self.likelihood.mean(self.local(X, offset)))

        if not self.likelihood.increasing:
            return self._by_blocks(quantiles_of, X, offset, self._size(2))
        return self._transformed_quantiles(X, quantiles, offset)

    def _transformed_quantiles(
        self, X: Array, quantiles: OrderStatistics, offset: Array | None = None
    ) -> Array:
        """Quantiles of a mean that increases with the predictor: those of the predictor."""
        unit, likelihood = self._unit, self.likelihood

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            center, deviation = deviations_of(X)(slice(None))
            if offset is not None:
                center = center + offset
            likelihood.check_predictors(center)

            def mean(chosen: Array) -> Array:
                eta = center[:, None] + unit * chosen
                return likelihood.mean(eta[:, None])

            return quantiles(deviation, mean)

        with one_blas_thread():
            deviations_of = self.predictor.deviations(self.share, unit, X.shape[0])
            return self._by_blocks(quantiles_of, X, offset, self._size(1))

    def quantiles(self, X: Array, q: Array, offset: Array | None = None) -> Array:
        """Quantiles of an observation under the mixture over all draws ``(n, len(q))``."""
        share, likelihood = self.share, self.likelihood

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            u = self.local(X, offset)
            return np.column_stack([likelihood.mixture_quantile(u, share, p) for p in q])

        if likelihood.n_local == 1 and not likelihood.quadratic:
            return self._by_quadrature(
                lambda average, n: np.column_stack(
                    [likelihood.averaged_quantile(average, n, p) for p in q]
                ),
                X,
                offset,
            )
        if not likelihood.quadratic:
            return self._by_blocks(quantiles_of, X, offset, self._size(4))
        with one_blas_thread():
            mixtures, size = self._normal_mixtures(X.shape[0])
            found = self._by_blocks(lambda X, _: mixtures.quantiles(X, q), X, None, size)
        return found if offset is None else found + offset[:, None]

    def _by_quadrature(
        self, function: Callable[..., Array], X: Array, offset: Array | None, *more: Array
    ) -> Array:
        """Values, a block of rows at a time, of a function of averages over one predictor's draws.

        It takes the average (see :meth:`Likelihood.averaged_quantile`), the number of rows in the
        block, and its part of the arrays in ``more``.
        """
        share, likelihood = self.share, self.likelihood

        def values_of(X: Array, offset: Array | None, *more: Array) -> Array:
            center, deviation = deviations_of(X)(slice(None))
            if offset is not None:
                center = center + offset
            likelihood.check_predictors(center + deviation.max(axis=1))

            def exact(rows: Array) -> Array:
                return self.local(X[rows], None if offset is None else offset[rows])[:, 0]

            rate = np.sqrt(likelihood.variance(center[:, None, None])[:, 0])
            mixture = Quadrature(center, deviation, share, rate, exact)

            def average(function: Callable[[Array, Array], Array], rows: Array) -> Array:
                return mixture.mean(lambda eta, rows: function(eta[:, None], rows), rows)

            return function(average, len(center), *more)

        with one_blas_thread():
            deviations_of = self.predictor.deviations(share, 1.0, X.shape[0])
            return self._by_blocks(values_of, X, offset, self._size(2), *more)

    def log_likelihood(self, X: Array, y: Array, offset: Array | None = None) -> Array:
        """Log density of each row's observation under every draw ``(n, S)``."""
        return self._by_blocks(self._log_likelihood, X, offset, self._size(4), y)

    def _log_likelihood(self, X: Array, offset: Array | None, y: Array) -> Array:
        return self.likelihood.log_density(self.local(X, offset), y[:, None])

    def log_density(self, X: Array, y: Array, offset: Array | None = None) -> Array:
        """Log density of each row's observation under the mixture over all draws ``(n,)``.

        Of many rows the error is below 2e-5: draws are summed in single precision, or by a
        quadrature.
        """
        share, likelihood = self.share, self.likelihood

        def plainly(X: Array, offset: Array | None, y: Array) -> Array:
            return _log_mean(self._log_likelihood(X, offset, y), share)

        many = X.shape[0] >= _MANY_ROWS
        if likelihood.quadratic and many:
            found = self._normal_log_density(X, y, offset)
        elif likelihood.n_local == 1 and many:
            found = self._by_quadrature(self._averaged_log_density, X, offset, y)
        else:
            return self._by_blocks(plainly, X, offset, self._size(4), y)
        rest = np.flatnonzero(np.isnan(found))
        if len(rest):
            some = None if offset is None else offset[rest]
            found[rest] = self._by_blocks(plainly, X[rest], some, self._size(4), y[rest])
        return found

    def _normal_log_density(self, X: Array, y: Array, offset: Array | None) -> Array:
        """Log densities under mixtures of normals; nan far out, where single precision ends."""
        share, unit = self.share, self._unit
        variance = self._noise_variance / unit / unit
        level = np.log(share, where=share > 0, out=np.full_like(share, -np.inf))
        level -= 0.5 * np.log(2.0 * np.pi * variance)
        root = np.sqrt(0.5 / variance)

        def log_density_of(X: Array, offset: Array | None, y: Array) -> Array:
            center, z = deviations_of(X)(slice(None))
            residual = y - center if offset is None else y - center - offset
            z -= (residual / unit)[:, None].astype(z.dtype)
            z *= root.astype(z.dtype)
            z *= z
            np.subtract(level.astype(z.dtype), z, out=z)
            np.exp(z, out=z)
            density = z.sum(axis=1, dtype=float)
            tiny = ~(density > _TINY)
            found = np.log(np.where(tiny, 1.0, density)) - np.log(unit)
            return np.where(tiny, np.nan, found)

        with one_blas_thread(), np.errstate(over="ignore"):
            deviations_of = self.predictor.deviations(share, unit, X.shape[0])
            return self._by_blocks(log_density_of, X, offset, self._size(2), y)

    def _averaged_log_density(self, average: Callable[..., Array], n: int, y: Array) -> Array:
        """Logs of averaged densities; nan where the average is far below the largest."""
        likelihood, every = self.likelihood, np.arange(n)
        largest = np.empty(n)

        def relative(u: Array, rows: Array) -> Array:
            each = likelihood.log_density(u, y[rows, None])
            largest[rows] = each.max(axis=1)
            return np.exp(each - largest[rows, None])

        mean = average(relative, every)
        far = ~(mean > _SHARE)
        return np.where(far, np.nan, np.log(np.where(far, 1.0, mean)) + largest)

    def cdf(self, X: Array, t: Array, offset: Array | None = None) -> Array:
        """Probability of an observation of at most each of ``t (n, m)``, of its shape.

        Of many rows the error is below 3e-6.
        """
        share, likelihood = self.share, self.likelihood

        def averaged(average: Callable[..., Array], n: int, t: Array) -> Array:
            def mean_of(at: Array) -> Array:
                return average(lambda u, rows: likelihood.cdf(u, at[rows, None]), np.arange(n))

            return np.column_stack([mean_of(at) for at in t.T])

        def plainly(X: Array, offset: Array | None, t: Array) -> Array:
            u = self.local(X, offset)
            return np.column_stack([likelihood.cdf(u, at[:, None]) @ share for at in t.T])

        many = X.shape[0] >= _MANY_ROWS
        if likelihood.quadratic and many:
            at = t if offset is None else t - offset[:, None]
            with one_blas_thread():
                mixtures, size = self._normal_mixtures(X.shape[0])
                found = self._by_blocks(lambda X, _, t: mixtures.cdf(X, t), X, None, size, at)
        elif likelihood.n_local == 1 and many:
            return self._by_quadrature(averaged, X, offset, t)
        else:
            return self._by_blocks(plainly, X, offset, self._size(4), t)
        rest = np.flatnonzero(np.isnan(found).any(axis=1))
        if len(rest):
            some = None if offset is None else offset[rest]
            found[rest] = self._by_blocks(plainly, X[rest], some, self._size(4), t[rest])
        return found

    def _normal_mixtures(self, n_rows: int) -> tuple[NormalMixtures, int]:
        """Mixtures of normals of so many rows, and how many of them are taken at a time."""
        share, unit = self.share, self._unit
        scale = np.sqrt(self._noise_variance) / unit
        deviations_of = self.predictor.deviations(share, unit, n_rows)
        mixtures = NormalMixtures(deviations_of, unit, scale, share)
        return mixtures, int(np.clip(n_rows // 8, *_MIXTURES))

    def sample(self, X: Array, rng: np.random.RandomState, offset: Array | None = None) -> Array:
        """One observation of every row under every draw ``(n, S)``."""

        def sample_of(rows: slice) -> Array:
            part = None if offset is None else offset[rows]
            return self.likelihood.sample(self.local(X[rows], part), rng)

        return by_blocks(sample_of, X.shape[0], self._size(4))

    # ---- labels -------------------------------------------------------------------------------

    def probability(self, X: Array) -> Array:
        """Posterior mean of the probability of each class ``(n, n_classes)``."""
        p = self._mean_probabilities(X)
        return p / p.sum(axis=1, keepdims=True)

    def _mean_probabilities(self, X: Array) -> Array:
        """Means ``(n, n_classes)``, which sum to 1 up to 1e-6; a tiny one keeps its digits."""
        likelihood, share = self._labels(), self.share

        def means_of(X: Array, offset: Array | None) -> Array:
            return likelihood.mean_probabilities(predictors_of(X).swapaxes(0, 1), share)

        def means_of_two(X: Array, offset: Array | None) -> Array:
            sign, eta = upward_of(X)
            smaller = likelihood.mean_smaller(eta, share)
            p = np.column_stack([smaller, 1.0 - smaller])
            return np.where((sign > 0)[:, None], p, p[:, ::-1])

        with one_blas_thread():
            if likelihood.symmetric:
                upward_of = self.predictor.upward(share, X.shape[0])
                return self._by_blocks(means_of_two, X, None, self._size(1))
            predictors_of = self.predictor.rounded(share, X.shape[0])
            return self._by_blocks(means_of, X, None, self._size(1))

    def log_probability(self, X: Array) -> Array:
        """Logs ``(n, n_classes, 2)`` of the mean probability of each class, and of the others.

        Each is accurate even where the other is near log 1.
        """
        likelihood, share = self._labels(), self.share
        log_share = np.log(share, where=share > 0, out=np.full_like(share, -np.inf))

        def logs_of(X: Array, offset: Array | None) -> Array:
            logs = (p + log_share for p in likelihood.log_probabilities(self.local(X)))
            return np.stack([np.logaddexp.reduce(p, axis=-1) for p in logs], axis=-1)

        p = self.probability(X)
        likeliest = p.argmax(axis=1)[:, None]
        others = p.copy()
        np.put_along_axis(others, likeliest, 0.0, axis=1)
        rest = 1.0 - p
        np.put_along_axis(rest, likeliest, others.sum(axis=1, keepdims=True), axis=1)
        both = np.stack([p, rest], axis=-1)
        tiny = (both < _TINY).any(axis=(1, 2))
        with np.errstate(divide="ignore"):
            log_mean = np.log(both)
        if tiny.any():
            log_mean[tiny] = self._by_blocks(logs_of, X[tiny], None, self._size(4))
        return log_mean

    def probability_draws(self, X: Array) -> Array:
        """Probability of each class under every draw ``(n, n_classes, S)``."""
        likelihood = self._labels()

        def probabilities_of(X: Array, offset: Array | None) -> Array:
            return likelihood.probabilities(self.local(X))[0]

        return self._by_blocks(probabilities_of, X, None, self._size(2))

    def probability_quantiles(self, X: Array, q: Array) -> Array:
        """Posterior quantiles of the probability of each class ``(n, n_classes, len(q))``."""
        likelihood, share = self._labels(), self.share
        quantiles = OrderStatistics(q, self.predictor.n_draws, self.weights)

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            p = likelihood.mean(predictors_of(X).swapaxes(0, 1))
            return np.stack([quantiles(each) for each in p.swapaxes(0, 1)], axis=1)

        if likelihood.increasing:  # two classes, of which one is what the other leaves
            levels = np.concatenate([q, 1.0 - q])
            both = OrderStatistics(levels, self.predictor.n_draws, self.weights)
            second, left = np.split(self._transformed_quantiles(X, both), 2, axis=1)
            return np.stack([1.0 - left, second], axis=1)
        with one_blas_thread():
            predictors_of = self.predictor.rounded(share, X.shape[0])
            return self._by_blocks(quantiles_of, X, None, self._size(2))

    def _labels(self) -> LabelLikelihood:
        assert isinstance(self.likelihood, LabelLikelihood)
        return self.likelihood


def _log_mean(values: Array, share: Array) -> Array:
    """Logs of the means of exponentials over the columns ``(n,)``; the values are overwritten."""
    largest = values.max(axis=1)
    shift = np.where(largest > -np.inf, largest, 0.0)
    values -= shift[:, None]
    np.exp(values, out=values)
    with np.errstate(divide="ignore"):
        return np.log(values @ share) + shift
