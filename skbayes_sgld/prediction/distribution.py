"""The posterior predictive distribution: a likelihood, mixed over the draws of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from skbayes_sgld._doors import Door
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Bernoulli, LabelLikelihood, Likelihood, as_totals
from skbayes_sgld.likelihoods.base import HIGHEST, FarRowError
from skbayes_sgld.likelihoods.mixture import Mixture
from skbayes_sgld.likelihoods.normal import NormalNoise
from skbayes_sgld.likelihoods.row_values import NO_VALUES, RowValues
from skbayes_sgld.prediction.blocks import block_size, by_blocks, map_blocks
from skbayes_sgld.prediction.count_tables import cdf_of_counts, quantiles_of_counts
from skbayes_sgld.prediction.cubature import Cubature
from skbayes_sgld.prediction.interpolation import Interpolation
from skbayes_sgld.prediction.levels import quantiles_at
from skbayes_sgld.prediction.normal_mixture import NormalMixtures
from skbayes_sgld.prediction.order_statistics import draw_quantiles
from skbayes_sgld.prediction.predictors import Predictor, Spread
from skbayes_sgld.prediction.quadrature import Nodes, OwnNodes, Quadrature, count_nodes

_NODES = 0.1  # nodes for each draw; with more, sums over all draws cost less
_MANY = 200
# estimates of errors from which on rows have more nodes: nearly all errors are a fifth of these.
# That of quantiles is of their levels: 2e-4 at most on difficult rows (tests/prediction)
_OF_QUANTILE, _OF_COUNT = 2.5e-4, 5e-4
_OF_CDF = {1: 1e-4, 2: 2.5e-4}  # by the number of predictors
_OF_DENSITY = {1: 1e-4, 2: 1e-3}  # relative, by the number of predictors
# relative, of rows that all draws predict, and as some of the draws tell of the others; with what
# these miss, nearly always below 2e-3. The error of 4,000 draws is 5e-3 if log odds have sd 0.3
_OF_PROBABILITY = 5e-4
_ROUGH = 2.5e-4  # error from which on third moments may be those of some of the draws
_OF_MOMENTS = 1e-4  # in sds of an observation at the mean parameters
_MOST_POINTS = 16  # of a row, of which each has an estimate of its error
_EXTRA = 0, 1, 3  # nodes more of each coordinate, for rows whose errors are too large
_MOST_OVER = 5.0  # a few more nodes do not mend larger errors
_PROBE = 16  # rows whose errors tell those of others with as many nodes
_PROBED = 32  # rows that tell which of the others need all draws
# draws that predict each row, by the largest relative change of a probability by averaging
_TRIED = {0.01: 128, 0.03: 256, 0.06: 500}
# a mean over n normal draws errs by this times the change to the power 1.5, over the root of n
_BY_CHANCE = 2.3
_MOST_VARIED = 0.16  # variance of a predictor of rows that nodes may predict
_FAR_OUT = 1e-3  # level of a quantile
_OF_FEW = np.array([5, 8, 13])  # numbers of nodes of few rows
_LARGEST_LOG = 60.0  # of a log variance in single precision
_LARGEST_SINGLE = 100.0  # predictor up to which single precision is right to 5e-5
_FARTHEST_IN_SINGLE = 1e15  # sds of an observation, whose square is in the range
_DONE = -1

# rare: under a log link the mean of a row far out may overflow
_PREDICT_APART = Door("skbayes_sgld.prediction.far_rows", "predict_apart")
_FIND_FAR_ROWS = Door("skbayes_sgld.prediction.far_rows", "find_far_rows")


def _far_rows_apart(method: Callable[..., Array]) -> Callable[..., Array]:
    """Method that predicts rows on their own whose means overflow under some draw."""
    expected = signature(method)

    @wraps(method)
    def call(self: PredictiveDistribution, X: Array, *args: Any, **kwargs: Any) -> Array:
        try:
            if self._far_noise(X).any():
                raise FarRowError
            return method(self, X, *args, **kwargs)
        except FarRowError:
            _, _, *arguments = expected.bind(self, X, *args, **kwargs).arguments.items()
            return _PREDICT_APART.open()(self, method.__name__, X, dict(arguments))

    return call


@dataclass(frozen=True)
class PredictiveDistribution:
    """Posterior predictive distribution: a likelihood mixed over the draws of its parameters.

    Methods take rows ``X (n, d)`` and their :class:`RowValues`: an offset, which is added to the
    predictors or, for averages, to the log spread; and values that the likelihood takes, such as
    numbers of trials. Predictions of many rows are in single precision. Its error, 1e-6, is far
    below that of the draws.

    Attributes
    ----------
    predictor : Predictor
        Map from rows to their predictors under every draw.
    likelihood : Likelihood
    own : ndarray of shape (S, n_own) or None
        Coordinates of the likelihood's own parameters under each draw; None without any.
    weights : ndarray of shape (S,) or None
        Weights of the draws; None if they are equal.
    present : ndarray of int or None
        Positions, among all classes, of the classes that have rows, which the likelihood knows; the
        others have probability 0. None: all classes have rows, or observations are not labels.
    n_classes : int
        Number of all classes, if there is ``present``.
    """

    predictor: Predictor
    likelihood: Likelihood
    own: Array | None = None
    weights: Array | None = None
    present: Array | None = None
    n_classes: int = 0

    def at_mean(self) -> PredictiveDistribution | None:
        """Distribution at the posterior mean of the parameters; None if such a mean has no meaning.

        The likelihood's own parameters are averaged as coordinates, such as log variances.
        """
        predictor = self.predictor.at_mean(self.share)
        if predictor is None:
            return None
        own = None if self.own is None else (self.share @ self.own)[None]
        return replace(self, predictor=predictor, own=own, weights=None)

    def by_contrasts(self) -> PredictiveDistribution:
        """Distribution whose predictors are contrasts, if these determine the probabilities."""
        if not self.likelihood.shift_invariant:
            return self
        return replace(self, predictor=self.predictor.contrasts())

    @property
    def share(self) -> Array:
        """Probabilities of the draws ``(S,)``."""
        n = self.predictor.n_draws
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    @property
    def _noise_variance(self) -> Array:
        """Noise variance under every draw ``(S,)``."""
        variance = self.likelihood.noise_variance(None if self.own is None else self.own[:, 0])
        return np.broadcast_to(variance, self.predictor.n_draws)

    @property
    def _unit(self) -> float:
        """Unit in which single precision can hold the deviations of the predictors."""
        if not self.likelihood.quadratic:
            return 1.0
        variance = self._noise_variance
        largest = variance.max()
        return float(np.sqrt(self.share @ (variance / largest)) * np.sqrt(largest))

    @property
    def allows_quadrature(self) -> bool:
        """Whether averages over the draws may be computed by a quadrature with a few nodes.

        With a predictor for each class, or cut points, it would take too many nodes.
        """
        alone = self.predictor.n_predictors <= 2 and self.likelihood.n_predictors == 1
        has_cut_points = self.own is not None and isinstance(self.likelihood, LabelLikelihood)
        return alone and not has_cut_points

    def _spread(self, X: Array) -> Spread:
        with one_blas_thread():  # with two, predict_proba of 5,000 rows takes 1.3 times as long
            return self.predictor.spread(self.share, X)

    def predictors(
        self, X: Array, row_values: RowValues = NO_VALUES, single: bool = False
    ) -> Array:
        """Predictors ``(K, n, S)`` of the rows, perhaps in single precision."""
        eta = self.predictor.in_single(X) if single else self.predictor(X)
        if row_values.offset is not None:
            eta[0] += row_values.offset[:, None]
        return eta

    def local(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Local parameters ``(n, n_local, S)`` of the rows, as the likelihood takes them."""
        eta = self.predictors(X, row_values)
        self.likelihood.check_predictors(eta)
        return self.at_predictors(eta, row_values)

    def at_predictors(self, eta: Array, row_values: RowValues) -> Array:
        """Local parameters ``(n, n_local, S)``, given the predictors ``(K, n, S)``."""
        return self._beside(self._with_own(eta), row_values)

    def _beside(self, u: Array, row_values: RowValues) -> Array:
        """Local parameters with the log spread of averages, and values the likelihood takes."""
        if row_values.n_averaged is not None:
            u = u.copy()
            u[:, self.likelihood.spread_at] -= np.log(row_values.n_averaged)[:, None]
        if taken := self.likelihood.taken(row_values):
            known = np.stack(taken, axis=1)[:, :, None].astype(u.dtype, copy=False)
            u = np.concatenate([u, np.broadcast_to(known, (*known.shape[:2], u.shape[2]))], axis=1)
        return u

    def _with_own(self, eta: Array) -> Array:
        """Local parameters ``(n, n_local, S)``, given the predictors ``(K, n, S)``."""
        if self.own is not None:
            own = self.own.T[:, None].astype(eta.dtype)
            eta = np.concatenate([eta, np.broadcast_to(own, (len(own), *eta.shape[1:]))])
        return eta.swapaxes(0, 1)

    def _by_blocks(
        self,
        function: Callable[..., Array],
        copies: int,
        X: Array,
        *more: Array | RowValues,
        each: int | None = None,
        dtype: Any = None,
    ) -> Array:
        """Values of ``function(X, *more)``, computed in blocks of rows, perhaps cast to ``dtype``.

        A row has ``copies`` temporaries of ``each`` numbers; None: as many as its predictors. Each
        of ``more`` has one entry for each row.
        """

        def values_of(rows: slice) -> Array:
            return function(X[rows], *(a[rows] for a in more))

        size = block_size(copies * (each or self.predictor.n_draws * self.predictor.n_predictors))
        with one_blas_thread():
            return map_blocks(values_of, X.shape[0], size, dtype)

    # ---- observations -------------------------------------------------------------------------

    @_far_rows_apart
    def moments(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Mean and variance of an observation ``(n, 2)``."""
        likelihood, every = self.likelihood, slice(None)
        normal = isinstance(likelihood, NormalNoise) and not likelihood.taken(row_values)
        if normal or likelihood.has_sums(row_values):
            return self._moments_of_locations(X, row_values)

        def moments_of(mixture: Mixture) -> Array:
            center, u = mixture.center(), mixture.u
            level, unit = likelihood.mean(center), np.sqrt(likelihood.variance(center))
            unit[~((unit > 0.0) & np.isfinite(unit))] = 1.0
            away = (likelihood.mean(u) - level) / unit
            first = mixture.average(away, every)
            square = np.square(away) + likelihood.variance(u) / np.square(unit)
            variance = mixture.average(square, every) - np.square(first)
            level, unit = level[:, 0], unit[:, 0]
            return np.column_stack([level + unit * first, np.square(unit) * variance])

        pays = likelihood.finite_variance and self._many(X)
        return self._averages(moments_of, _OF_MOMENTS if pays else 0.0, X, row_values)

    def _moments_of_locations(self, X: Array, row_values: RowValues) -> Array:
        """Mean and variance ``(n, 2)`` if the first predictor is the mean of an observation."""
        share, likelihood, spread = self.share, self.likelihood, self._spread(X)
        # noise variances under every draw, at a predicted log variance of 0
        zero = np.zeros((self.predictor.n_predictors, 1, len(share)))
        noises = likelihood.variance(self._with_own(zero))[0]
        shares = np.multiply(share, noises, where=share > 0.0, out=np.zeros_like(share))

        def moments_of(X: Array, row_values: RowValues) -> Array:
            coordinates = _moved(spread.coordinates(X), row_values)
            mean, variance = coordinates[0, :, -1].copy(), spread.variance(coordinates)[0]
            if self.predictor.n_predictors == 1:
                noise = shares.sum()
            else:  # location and log variance, whose draws are taken from its mean
                level = coordinates[1, :, -1].copy()
                coordinates[..., -1] = 0.0
                away = spread.predictors(coordinates[1], 1)
                if away.max(initial=0.0) > 80.0:  # the most in single precision
                    away = away.astype(float)
                noise = np.exp(level) * (np.exp(away) @ shares.astype(away.dtype))
            return np.column_stack([mean, variance + noise * self._noise_share(row_values)])

        size = spread.n_coordinates + 4 * len(share) * (self.predictor.n_predictors - 1)
        return self._by_blocks(moments_of, 2, X, row_values, each=size)

    @_far_rows_apart
    def mean(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Mean of an observation ``(n,)``."""
        likelihood, share = self.likelihood, self.share

        def mean_of(X: Array, row_values: RowValues) -> Array:
            mean: Array = likelihood.mean(self.local(X, row_values)) @ share
            return mean

        def mean_in_single(X: Array, row_values: RowValues) -> Array:
            center, away = spread.deviations(X)
            if row_values.offset is not None:
                center += row_values.offset
            if likelihood.log_link:  # the mean of exp(eta) is exp(center) times that of exp(away)
                likelihood.check_predictors(center + away.max(axis=1))
                if away.max(initial=0.0) > _LARGEST_LOG:
                    return mean_of(X, row_values)
                factor = np.exp(center)
            else:
                factor = np.ones(len(center))
                away += center[:, None].astype(away.dtype)
            mean = likelihood.mean(self.at_predictors(away[None], row_values))
            return factor * (mean @ share.astype(mean.dtype))

        if self._many(X) and self.predictor.n_predictors == likelihood.n_predictors == 1:
            spread = self._spread(X)
            return self._by_blocks(mean_in_single, 4, X, row_values)
        return self._by_blocks(mean_of, 2, X, row_values)

    @_far_rows_apart
    def mean_draws(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Mean of an observation under every draw ``(n, S)``."""
        mean = self.likelihood.mean
        return self._by_blocks(lambda *rows: mean(self.local(*rows)), 2, X, row_values)

    @_far_rows_apart
    def mean_quantiles(self, X: Array, q: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Posterior quantiles of the mean of an observation ``(n, len(q))``."""
        unit, likelihood, spread = self._unit, self.likelihood, self._spread(X)

        def quantiles_of(X: Array, row_values: RowValues) -> Array:
            return draw_quantiles(likelihood.mean(self.local(X, row_values)), q, self.weights)

        def transformed_quantiles_of(X: Array, row_values: RowValues) -> Array:
            center, deviation = spread.deviations(X, unit)
            if row_values.offset is not None:
                center += row_values.offset
            if likelihood.log_link:
                likelihood.check_predictors(center + deviation.max(axis=1))

            def mean(deviation: Array) -> Array:
                return likelihood.mean((center[:, None] + unit * deviation)[:, None])

            return draw_quantiles(deviation, q, self.weights, mean)

        if likelihood.increasing:
            return self._by_blocks(transformed_quantiles_of, 1, X, row_values)
        return self._by_blocks(quantiles_of, 2, X, row_values)

    @_far_rows_apart
    def quantiles(self, X: Array, q: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Quantiles of an observation under the mixture over all draws ``(n, len(q))``."""
        likelihood = self.likelihood
        if likelihood.has_sums(row_values):
            t = self._mixture_values(
                lambda mixtures, *rows: mixtures.quantiles(*rows, q), X, row_values
            )
            return t if row_values.offset is None else t + row_values.offset[:, None]

        def scale_of(p: Array) -> Array:
            """Units of the errors: far out those of the nodes are larger than their estimates."""
            tail = np.minimum(p, 1.0 - p)
            return np.minimum(1.0, 4.0 * tail * np.where(tail < _FAR_OUT, 0.03, 1.0))

        def solve(mixture: Mixture, p: float) -> Array:
            mixture.scale = float(scale_of(np.array(p)))
            return likelihood.averaged_quantile(mixture, p)

        def start(mixture: Mixture, p: float) -> Array:
            return likelihood.quantile_start(mixture.center(), p)[0]

        def level(mixture: Mixture, t: Array, near: float) -> Array:
            mixture.scale = float(scale_of(np.array(near)))
            return mixture.cdf(likelihood.cdf)(t, np.arange(len(mixture)))

        def quantiles_of(mixture: Mixture) -> Array:
            if likelihood.has_ratios:
                return quantiles_of_counts(mixture, likelihood, q, scale_of(q))
            if likelihood.whole:
                return np.column_stack([solve(mixture, float(p)) for p in q])
            quantiles = quantiles_at(mixture, solve, start, level, q, bool(likelihood.log_link)).T
            return (mixture.origin + mixture.unit * quantiles).T

        error = _OF_COUNT if likelihood.whole else _OF_QUANTILE
        in_units = self._has_units(row_values) and np.minimum(q, 1.0 - q).min() >= _FAR_OUT
        return self._averages(quantiles_of, error, X, row_values, in_units=in_units)

    def _has_units(self, row_values: RowValues) -> bool:
        """Whether the first two local parameters are a location and a log variance."""
        return self.likelihood.infers_noise and not self.likelihood.taken(row_values)

    def _far_noise(self, X: Array) -> Array:
        """Mask ``(n,)`` of rows whose predicted noise variance is out of range under some draw."""
        if not (self.predictor.n_predictors == 2 and self.likelihood.n_predictors == 1):
            return np.zeros(X.shape[0], bool)
        far: Array = self.predictor.bound(X, 1) > HIGHEST
        if far.any():  # the bound is too large if coefficients have different signs
            each = np.flatnonzero(far)
            of_far = self._by_blocks(lambda X: np.abs(self.predictor(X)[1]).max(axis=1), 1, X[each])
            far[each] = of_far > HIGHEST
        return far

    def _noise_share(self, row_values: RowValues) -> Array | float:
        """Noise variance of each row over that of one observation ``(n,)``: 1 but for averages."""
        return 1.0 if row_values.n_averaged is None else 1.0 / row_values.n_averaged

    def _mixture_values(
        self, function: Callable[..., Array], X: Array, row_values: RowValues, *more: Array
    ) -> Array:
        """Values of ``function(mixtures, X, unit, *more)``, by blocks of rows."""
        unit, n_rows = self._unit, X.shape[0]
        scale = np.sqrt(self._noise_variance) / unit
        units = np.broadcast_to(unit * np.sqrt(self._noise_share(row_values)), n_rows)

        def values_of(rows: slice) -> Array:
            return function(mixtures, X[rows], units[rows], *(each[rows] for each in more))

        with one_blas_thread():
            mixtures = NormalMixtures(self._spread(X), scale, self.share)
            # rows of a block: their expansions are solved together
            return map_blocks(values_of, n_rows, int(np.clip(n_rows // 8, 512, 4096)))

    def _averages(
        self,
        function: Callable[..., Array],
        error: float,
        X: Array,
        row_values: RowValues,
        *more: Array,
        in_units: bool = False,
    ) -> Array:
        """Values, by blocks of rows, of a function of their mixtures.

        The function takes a :class:`Mixture` and the block's part of ``more``. An error of 0 stands
        for mixtures over all draws. If ``in_units``, those of all draws are in units of the rows.
        """
        # two predictors of few rows: nodes take longer to make than sums over all draws
        pays = self.predictor.n_predictors == 1 or self._many(X)
        if error and self.allows_quadrature and pays:
            return self._by_nodes(function, error, X, row_values, *more, in_units=in_units)
        return self._by_sums(function, X, row_values, *more, in_units=in_units)

    def _by_sums(
        self,
        function: Callable[..., Array],
        X: Array,
        row_values: RowValues,
        *more: Array,
        in_units: bool,
    ) -> Array:
        """Values as :meth:`_averages`, of mixtures over all draws."""
        share = self.share
        spread = self._spread(X) if in_units else None

        def values_of(X: Array, row_values: RowValues, *more: Array) -> Array:
            if spread is None:
                return function(Mixture(self.local(X, row_values), share), *more)
            return function(self._mixture_in_units(spread, X, row_values), *more)

        return self._by_blocks(values_of, 4, X, row_values, *more)

    def _mixture_in_units(self, spread: Spread, X: Array, row_values: RowValues) -> Mixture:
        """Mixtures over all draws in units of the rows, which single precision can hold.

        They take half of the time (log density, log-linear noise).
        """
        coordinates = _moved(spread.coordinates(X), row_values)
        center, own = coordinates[0, :, -1].copy(), self.own
        if self.predictor.n_predictors == 2:
            log_variance = coordinates[1, :, -1].copy()
        else:
            mean = self.share @ self._own_draws[:, 0]
            own = self._own_draws.copy()
            own[:, 0] -= mean
            log_variance = np.full(len(center), mean)
        unit = np.exp(0.5 * log_variance) * np.sqrt(self._noise_share(row_values))
        coordinates[..., -1] = 0.0
        coordinates[0] /= unit[:, None]
        eta = spread.predictors(coordinates)
        if np.abs(eta[0]).max(initial=0.0) > _LARGEST_SINGLE:
            eta = self.predictors(X, row_values)
            eta[0] = (eta[0] - center[:, None]) / unit[:, None]
            if len(eta) == 2:
                eta[1] -= log_variance[:, None]
        u = replace(self, own=own)._with_own(eta)
        if np.abs(u[:, 1]).max(initial=0.0) > _LARGEST_LOG:
            u = u.astype(float)
        return Mixture(u, self.share.astype(u.dtype), center, unit)

    def _density_in_units(self, mixture: Mixture, y: Array) -> Callable[..., Array]:
        """Log density of ``y (n,)`` in units, from local parameters and positions of rows."""
        at = ((y - mixture.origin) / mixture.unit)[:, None]
        near = np.abs(at).max(initial=0.0) < _FARTHEST_IN_SINGLE

        def log_density(u: Array, rows: Array | slice) -> Array:
            u = u if near else u.astype(float)
            kernel = self.likelihood.bind(RowValues(at[rows]), u.dtype.type)
            return kernel.derivatives(u, 0)[0]

        return log_density

    def _by_nodes(
        self,
        function: Callable[..., Array],
        error: float,
        X: Array,
        row_values: RowValues,
        *more: Array,
        in_units: bool,
    ) -> Array:
        """Values as :meth:`_averages`, of mixtures over a few nodes of each row.

        Rows whose nodes are too many, or have too large an error, are summed over all draws.
        """
        spread, share, likelihood = self._spread(X), self.share, self.likelihood
        within = bool(likelihood.log_link)
        draws = self._own_draws

        def counts_of(X: Array, row_values: RowValues) -> Array:
            _, center, sd = self._location(spread, X, row_values)
            likelihood.check_predictors(center[0])
            extent = np.zeros(center.shape[1])
            for away in (-2.0, 0.0, 2.0):
                at = center + away * sd
                if likelihood.log_link:
                    np.minimum(at[0], HIGHEST, out=at[0])
                extent = np.maximum(extent, (sd * self._rates(at, row_values)).max(axis=0))
            return count_nodes(extent, error)

        def nodes_of(X: Array, row_values: RowValues) -> tuple[Array, ...]:
            coordinates, center, sd = self._location(spread, X, row_values)
            coordinates[..., -1] = 0.0
            coordinates /= np.where(sd > 0.0, sd, 1.0)[..., None]
            if by_moments and (not within or np.all(center[0] + sd[0] * reach < HIGHEST)):
                return by_moments(center, sd, coordinates[..., :-1])
            size, parts = block_size(4 * z_size), []
            for first in range(0, X.shape[0], size):
                block = np.s_[:, first : first + size]
                z = spread.predictors(coordinates[block])
                if within:
                    largest = center[block][0] + sd[block][0] * z[0].max(axis=1)
                    likelihood.check_predictors(largest)
                parts.append(quadrature(center[block], sd[block], z))
            return tuple(np.concatenate(each) for each in zip(*parts, strict=True))

        def values_at(rows: Array) -> Array:
            """Values of some rows, and last their estimated errors."""

            def values_of(part: slice) -> Array:
                at = rows[part]
                values_at = row_values[at]
                u, weights, last = nodes_of(X[at], values_at)
                mixture = Nodes(self._beside(u, values_at), weights, last, quadrature)
                if in_units:
                    mixture.change_units()
                values = function(mixture, *(each[at] for each in more))
                return np.column_stack([values, mixture.error])

            with one_blas_thread():
                each = 4 * quadrature.n_nodes + 8 * spread.n_coordinates
                return map_blocks(values_of, len(rows), block_size(each))

        # a whole number may move by a small error of its level
        rough = error >= _ROUGH and not likelihood.whole
        K, n_rows = self.predictor.n_predictors, X.shape[0]
        z_size = K * len(share)
        directions = spread.directions
        reach = 0.0 if directions is None else _reach(directions[0])
        counts: Array = self._by_blocks(counts_of, 1, X, row_values, each=spread.n_coordinates)
        if not self._many(X):  # each number of nodes has a fixed cost
            counts[counts > 0] = _OF_FEW[np.searchsorted(_OF_FEW, counts[counts > 0])]
        values = None
        for extra in _EXTRA:
            own, before = OwnNodes(draws, share, error, extra), counts.copy()
            for n in np.unique(before[before > 0]):
                rows, quadrature = (
                    np.flatnonzero(before == n),
                    Quadrature(int(n), K, share, own, within),
                )
                if quadrature.n_nodes > _NODES * len(share):
                    counts[rows] = 0
                    continue
                by_moments = directions is not None and quadrature.by_moments(directions, rough)
                if len(rows) > 4 * _PROBE:  # a few rows tell whether all are worth their time
                    over = values_at(rows[:: len(rows) // _PROBE])[:, -1] / error
                    if not np.mean(over <= 1.0) > 0.5:
                        counts[rows] = n + extra + 1 if np.median(over) < _MOST_OVER else 0
                        continue
                found = values_at(rows)
                if values is None:
                    values = np.empty((n_rows, found.shape[1] - 1))
                values[rows] = found[:, :-1]
                over = found[:, -1] / error
                counts[rows] = np.where(over < _MOST_OVER, n + extra + 1, 0)
                counts[rows[over <= 1.0]] = _DONE
        counts[counts > 0] = 0
        rest = np.flatnonzero(counts == 0)
        if values is None:
            return self._by_sums(function, X, row_values, *more, in_units=in_units)
        if len(rest):
            of_rest = (each[rest] for each in more)
            values[rest] = self._by_sums(
                function, X[rest], row_values[rest], *of_rest, in_units=in_units
            )
        return values

    @property
    def _own_draws(self) -> Array:
        """Own coordinates under every draw ``(S, n_own)``, perhaps none."""
        return np.empty((len(self.share), 0)) if self.own is None else self.own

    def _location(
        self, spread: Spread, X: Array, row_values: RowValues
    ) -> tuple[Array, Array, Array]:
        """Coordinates of rows, and means and sds ``(K, n)`` of their predictors."""
        coordinates = _moved(spread.coordinates(X), row_values)
        center, sd = coordinates[..., -1].copy(), np.sqrt(spread.variance(coordinates))
        return coordinates, center, sd

    def _rates(self, center: Array, row_values: RowValues) -> Array:
        """How fast functions of the predictors change ``(K, n)``, at predictors ``(K, n)``.

        They change like the normal distribution function of the predictor times its rate.
        """
        likelihood, u = self.likelihood, center
        if self.own is not None:
            mean_own = (self.share @ self.own)[:, None]
            u = np.concatenate([center, np.broadcast_to(mean_own, (len(mean_own), len(u[0])))])
        if row_values.n_averaged is not None:
            u = u.copy()
            u[likelihood.spread_at] -= np.log(row_values.n_averaged)
        y = likelihood.mean(u[None])[0]
        if likelihood.totals:  # the likelihood's mean is that of one trial
            trials = np.ones(y.shape) if row_values.trials is None else row_values.trials
            y = as_totals(trials * y, trials)
        elif taken := likelihood.taken(row_values):
            u = np.concatenate([u, np.stack(taken)])
        rates = np.full(center.shape, 0.5)  # of a log variance at most
        information = likelihood.curvature(u[None], y)[0, 0, 0]
        rates[0] = np.sqrt(np.maximum(information, 0.0))
        return rates

    @_far_rows_apart
    def log_likelihood(self, X: Array, y: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Log density of each row's observation under every draw ``(n, S)``.

        For many rows the error is below 5e-5, and relative to a log density below -1.
        """

        def log_likelihood_of(X: Array, row_values: RowValues, y: Array) -> Array:
            return self._log_density(self.local(X, row_values), y)

        def of_labels(X: Array, row_values: RowValues, y: Array) -> Array:
            coordinates = _moved(spread.coordinates(X), row_values)
            codes, absent = self._codes(y)
            eta = spread.predictors(coordinates).swapaxes(0, 1)
            values = likelihood.log_probability_draws(eta, self._own_draws, codes)
            values[absent] = -np.inf
            rest = np.flatnonzero(np.abs(coordinates).max(axis=(0, 2)) > _LARGEST_SINGLE)
            if len(rest):
                values[rest] = log_likelihood_of(X[rest], row_values[rest], y[rest])
            return values

        def interpolated(X: Array, row_values: RowValues, y: Array) -> Array:
            coordinates = _moved(spread.coordinates(X), row_values)[0]
            center = coordinates[:, -1].copy()
            coordinates[:, -1] = 0.0
            away = spread.predictors(coordinates)
            likelihood.check_predictors(center + away.max(axis=1))

            def log_density(u: Array, at: Array) -> Array:
                return self._log_density(self._beside(u, row_values[at]), y[at])

            values = interpolation(center, away, log_density)
            if len(rest := np.flatnonzero(np.isnan(values[:, 0]))):
                values[rest] = log_likelihood_of(X[rest], row_values[rest], y[rest])
            return values

        def in_units(X: Array, row_values: RowValues, y: Array) -> Array:
            mixture = self._mixture_in_units(spread, X, row_values)
            values = self._density_in_units(mixture, y)(mixture.u, slice(None))
            values -= np.log(mixture.unit)[:, None].astype(values.dtype)
            return values

        likelihood, interpolation = self.likelihood, Interpolation(self._own_draws)
        alone = self.allows_quadrature and self.predictor.n_predictors == 1
        in_single = self._has_units(row_values)
        if not self._many(X) or (alone and not in_single and not interpolation.pays):
            return self._by_blocks(log_likelihood_of, 4, X, row_values, y)
        if in_single:
            spread = self._spread(X)
            each = len(self.share)  # the more rows at once, the less time functions of nu take
            return self._by_blocks(in_units, 4, X, row_values, y, each=each, dtype=float)
        if alone:
            spread = self._spread(X)
            return self._by_blocks(interpolated, 1, X, row_values, y, dtype=float)
        if isinstance(likelihood, LabelLikelihood):
            spread = self._spread_of_labels(X)
            return self._by_blocks(of_labels, 1, X, row_values, y, dtype=float)
        return self._by_blocks(log_likelihood_of, 4, X, row_values, y)

    def _log_density(self, u: Array, y: Array) -> Array:
        """Log density of observations ``(n,)`` at local parameters, ``(n, m)``."""
        if self.present is None:
            return self.likelihood.log_density(u, y[:, None])
        codes, absent = self._codes(y)
        values = self.likelihood.log_density(u, codes[:, None])
        values[absent] = -np.inf
        return values

    def _codes(self, y: Array) -> tuple[Array, Array]:
        """Codes ``(n,)`` as the likelihood knows them, and whether a class has no rows ``(n,)``."""
        if self.present is None:
            return y, np.zeros(len(y), bool)
        codes = np.searchsorted(self.present, y).clip(max=len(self.present) - 1).astype(float)
        return codes, ~np.isin(y, self.present)

    @_far_rows_apart
    def log_density(self, X: Array, y: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Log density of each row's observation under the mixture over all draws ``(n,)``."""

        def log_density_of(mixture: Mixture, y: Array) -> Array:
            if in_units:
                density = self._density_in_units(mixture, y)
                return (mixture.log_mean(density) - np.log(mixture.unit))[:, None]
            return mixture.log_mean(lambda u, rows: self._log_density(u, y[rows]))[:, None]

        in_units = self._has_units(row_values) and self.predictor.n_predictors == 2
        error = _OF_DENSITY.get(self.predictor.n_predictors, 0.0) if self._many(X) else 0.0
        return self._averages(log_density_of, error, X, row_values, y, in_units=in_units)[:, 0]

    def _many(self, X: Array) -> bool:
        """Whether nodes pay for functions that are computed once a row.

        Sums over all draws are exact, and for few rows as fast.
        """
        return X.shape[0] >= _MANY

    @_far_rows_apart
    def cdf(self, X: Array, t: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Probability of an observation of at most each of ``t (n, m)``, in its shape.

        For many rows the estimated error is below 1e-4, with a predictor for the noise 2.5e-4.
        """
        likelihood, many = self.likelihood, self._many(X)
        error = _OF_CDF.get(self.predictor.n_predictors, 0.0)

        def mixture_cdf(mixture: Mixture, t: Array) -> Array:
            if likelihood.has_ratios and t.shape[1] > 1:
                return cdf_of_counts(mixture, likelihood, t)
            cdf, every = mixture.cdf(likelihood.cdf), np.arange(len(mixture))
            values = np.empty(t.shape)
            for number, at in enumerate((t.T - mixture.origin) / mixture.unit):
                # neighbours of many points have similar errors, whose estimates take a third
                mixture.estimates = number % 4 == 0 or t.shape[1] <= _MOST_POINTS
                values[:, number] = cdf(at, every)
            return values

        if many and likelihood.has_sums(row_values):
            at = t if row_values.offset is None else t - row_values.offset[:, None]
            values = self._mixture_values(
                lambda mixtures, *rows: mixtures.cdf(*rows), X, row_values, at
            )
            rest = np.flatnonzero(np.isnan(values).any(axis=1))
            if len(rest):
                of_rest = X[rest], row_values[rest], t[rest]
                values[rest] = self._averages(mixture_cdf, error, *of_rest)
            return values
        in_units = many and t.shape[1] > _MOST_POINTS and self._has_units(row_values)
        return self._averages(
            mixture_cdf, error if many else 0.0, X, row_values, t, in_units=in_units
        )

    def sample(
        self, X: Array, rng: np.random.RandomState, row_values: RowValues = NO_VALUES
    ) -> Array:
        """One observation of every row under every draw ``(n, S)``."""
        some_are_far = False

        def sample_of(rows: slice) -> Array:
            nonlocal some_are_far
            part = row_values[rows]
            try:
                u = self.local(X[rows], part)
            except FarRowError:
                u, some_are_far = self._with_own(self.predictors(X[rows], part)), True
            with np.errstate(over="ignore"):
                sample = self.likelihood.sample(u, rng)
            return sample if self.present is None else self.present[sample]

        size = block_size(4 * self.predictor.n_draws * self.predictor.n_predictors)
        samples = by_blocks(sample_of, X.shape[0], size)
        if some_are_far:
            _FIND_FAR_ROWS.open()(self, X, row_values)
        return samples

    # ---- labels -------------------------------------------------------------------------------

    def _among_all(self, values: Array, absent: Any) -> Array:
        """Values ``(n, n_seen, ...)`` extended by ``absent`` for the classes without rows."""
        if self.present is None:
            return values
        shape = len(values), self.n_classes, *values.shape[2:]
        extended = np.broadcast_to(np.asarray(absent, dtype=float), shape).copy()
        extended[:, self.present] = values
        return extended

    def probability(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Posterior mean of the probability of each class ``(n, n_classes)``.

        A tiny probability is as precise as others. Probabilities are of one trial.
        """
        return self._among_all(self._probability(X, _of_one_trial(row_values)), 0.0)

    def _probability(self, X: Array, row_values: RowValues) -> Array:
        """Probabilities of the classes that have rows."""
        likelihood, share, own = self._label_likelihood(), self.share, self._own_draws
        spread = self._spread_of_labels(X)

        def means_of(X: Array, row_values: RowValues) -> Array:
            eta = spread.predictors(_moved(spread.coordinates(X), row_values)).swapaxes(0, 1)
            return likelihood.mean_probabilities(eta, own, share)

        def means_of_two(X: Array, row_values: RowValues) -> Array:
            coordinates = _moved(spread.coordinates(X), row_values)[0]
            negative = coordinates[:, -1:] < 0.0
            eta = spread.predictors(np.where(negative, -coordinates, coordinates))
            smaller = likelihood.mean_smaller(eta, share)
            p = np.column_stack([smaller, 1.0 - smaller])
            return np.where(negative, p[:, ::-1], p)

        if likelihood.symmetric:
            p = self._by_blocks(means_of_two, 1, X, row_values)
        else:
            rest = np.arange(X.shape[0])
            p = np.empty((len(rest), likelihood.n_classes))
            directions = spread.directions
            if directions is not None and len(rest) >= _PROBED * _PROBE:
                with one_blas_thread():
                    cubature = Cubature(directions, own, share)
                if len(cubature.weights) <= _NODES * len(share):
                    p, rest = self._probability_at_nodes(spread, cubature, means_of, X, row_values)
            if len(rest):
                p[rest] = self._by_blocks(means_of, 4, X[rest], row_values[rest])
        return p / p.sum(axis=1, keepdims=True)

    def _probability_at_nodes(
        self,
        spread: Spread,
        cubature: Cubature,
        means_of: Callable[..., Array],
        X: Array,
        row_values: RowValues,
    ) -> tuple[Array, Array]:
        """Probabilities of the classes by a few nodes of each row, and rows that need all draws.

        Rows are in the order of how much the mean over the nodes differs from the value at the mean
        of the draws. Some of them tell up to which place the nodes are right. They cannot speak for
        rows whose predictors are more skewed than those of others, such as rows of a rare category:
        some of the draws predict each row, and tell these.
        """
        likelihood = self._label_likelihood()

        def means_at_nodes(X: Array, row_values: RowValues) -> Array:
            with np.errstate(all="ignore"):  # rows of nan or a probability of 0 need all draws
                coordinates = _moved(spread.coordinates(X), row_values)
                eta = cubature(coordinates)
                at_mean = eta[..., :1].copy(), cubature.own[:1], np.ones(1)
                level = likelihood.mean_probabilities(*at_mean)
                p = likelihood.mean_probabilities(eta, cubature.own, cubature.weights)
                bend = np.abs(p / level - 1.0).max(axis=1)
            return np.column_stack([p, bend, spread.variance(coordinates).max(axis=0)])

        def errors_of(X: Array, row_values: RowValues, p: Array) -> Array:
            coordinates = _moved(spread.coordinates(X), row_values).astype(np.float32)
            eta = (coordinates[..., :-1] @ directions + coordinates[..., -1:]).swapaxes(0, 1)
            return np.abs(likelihood.mean_probabilities(eta, own, weight) / p - 1.0).max(axis=1)

        each = 4 * len(cubature.weights) * self.predictor.n_predictors
        found = self._by_blocks(means_at_nodes, 1, X, row_values, each=each)
        p, bend, variance = found[:, :-2], found[:, -2], found[:, -1]
        near = np.flatnonzero((bend < max(_TRIED)) & (variance < _MOST_VARIED))  # not those of nan
        order = near[np.argsort(bend[near])]
        if len(order) < _PROBED:
            return p, np.arange(len(p))
        at = np.linspace(0, len(order), _PROBED + 1).astype(int)[1:] - 1
        some = order[at]
        exact = self._by_blocks(means_of, 4, X[some], row_values[some])
        sure = (np.abs(p[some] - exact) <= _OF_PROBABILITY * exact).all(axis=1)
        order = order[: np.append(-1, at)[np.logical_and.accumulate(sure).sum()] + 1]
        # Skewness is at most the reach, and a sixth of the third moment moves a probability by
        # about as much, relatively: by less than twice the error
        is_right = np.zeros(len(p), bool)
        is_right[order] = variance[order] ** 1.5 * cubature.reach < 12.0 * _OF_PROBABILITY
        order = order[~is_right[order]]
        ends = np.searchsorted(bend[order], [0.0, *_TRIED])
        for n, first, last in zip(_TRIED.values(), ends, ends[1:], strict=False):
            rows = order[first:last]
            with one_blas_thread():
                moved = cubature.moved_draws(n) if len(rows) else None
            if moved:
                (directions, own, weight), of_rows = moved, (X[rows], row_values[rows], p[rows])
                directions = directions.astype(np.float32)
                errors = self._by_blocks(errors_of, 2, *of_rows, each=directions[:, 0].size)
                chance = _BY_CHANCE * bend[rows] ** 1.5 / np.sqrt(n)
                is_right[rows] = errors <= _OF_PROBABILITY + chance
        return p, np.flatnonzero(~is_right)

    def _spread_of_labels(self, X: Array) -> Spread:
        """Spread of the predictors, or of their contrasts if these determine the probabilities."""
        return self.by_contrasts()._spread(X)

    def labels(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Position ``(n,)``, among all classes, of the most probable class.

        Means and variances of the predictors decide nearly all rows.
        """
        likelihood, share, own = self._label_likelihood(), self.share, self._own_draws
        row_values = _of_one_trial(row_values)
        predictor = self.predictor.centered() if likelihood.shift_invariant else self.predictor
        spread = predictor.spread(share, X)

        def decided(X: Array, row_values: RowValues) -> Array:
            coordinates = _moved(spread.coordinates(X), row_values)
            variance = spread.variance(coordinates)
            return likelihood.decided(coordinates[..., -1], variance, own, share)

        labels = self._by_blocks(decided, 1, X, row_values, each=spread.n_coordinates)
        if len(rest := np.flatnonzero(labels < 0)):
            labels[rest] = self._probability(X[rest], row_values[rest]).argmax(axis=1)
        return labels if self.present is None else self.present[labels]

    def log_probability(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Logs ``(n, n_classes, 2)`` of the mean probability of each class, and of all others.

        Each is accurate even if the other is near log 1.
        """
        likelihood, share = self._label_likelihood(), self.share
        row_values = _of_one_trial(row_values)
        log_share = np.log(share, where=share > 0, out=np.full_like(share, -np.inf))

        def logs_of(*rows: Any) -> Array:
            logs = (p + log_share for p in likelihood.log_probabilities(self.local(*rows)))
            return np.stack([np.logaddexp.reduce(p, axis=-1) for p in logs], axis=-1)

        p = self._probability(X, row_values)
        rest = p @ (1.0 - np.eye(p.shape[1]))  # 1 - p would lose precision where p is near 1
        both = np.stack([p, rest], axis=-1)
        # single precision has rounded draws to 0 that matter
        tiny = (both < 1e-30).any(axis=(1, 2))
        with np.errstate(divide="ignore"):
            log_mean = np.log(both)
        if tiny.any():
            log_mean[tiny] = self._by_blocks(logs_of, 4, X[tiny], row_values[tiny])
        return self._among_all(log_mean, [-np.inf, 0.0])

    def probability_draws(self, X: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Probability of each class under every draw ``(n, n_classes, S)``."""
        likelihood, row_values = self._label_likelihood(), _of_one_trial(row_values)

        def probabilities_of(*rows: Any) -> Array:
            return likelihood.probabilities(self.local(*rows))[0]

        return self._among_all(self._by_blocks(probabilities_of, 2, X, row_values), 0.0)

    def total_probabilities(self, eta: Array, weight: Array) -> Array:
        """Sums over rows as ``LabelLikelihood.total_probabilities`` ``(M, n_classes, S)``.

        ``eta (K, n, S)`` are the predictors of the rows, or their contrasts (see
        :meth:`by_contrasts`), and ``weight (n, M)`` their weights.
        """
        likelihood, eta = self._label_likelihood(), eta.swapaxes(0, 1)
        totals = likelihood.total_probabilities(eta, self._own_draws, weight)
        return self._among_all(totals, 0.0)

    def probabilities_at(self, eta: Array) -> Array:
        """Probability of each class ``(n, n_classes, S)``, given predictors or contrasts."""
        likelihood, eta = self._label_likelihood(), eta.swapaxes(0, 1).copy()
        return self._among_all(likelihood.probability_draws(eta, self._own_draws), 0.0)

    def probability_quantiles(self, X: Array, q: Array, row_values: RowValues = NO_VALUES) -> Array:
        """Posterior quantiles of the probability of each class ``(n, n_classes, len(q))``."""
        likelihood, row_values = self._label_likelihood(), _of_one_trial(row_values)
        if likelihood.increasing:
            # Two classes, both with rows. The mean of a label, 0 or 1, is the probability of the
            # second class; that of a total would be a number of successes. The quantile q of the
            # first class's probability is 1 - the quantile 1 - q of the second's.
            of_labels = replace(self, likelihood=likelihood)
            second = of_labels.mean_quantiles(X, np.concatenate([q, 1.0 - q]), row_values)
            at_q, at_rest = np.split(second, 2, axis=1)
            return np.stack([1.0 - at_rest, at_q], axis=1)
        spread, own = self._spread_of_labels(X), self._own_draws

        def quantiles_of(X: Array, row_values: RowValues) -> Array:
            eta = spread.predictors(_moved(spread.coordinates(X), row_values)).swapaxes(0, 1)
            p = likelihood.probability_draws(eta, own)
            each = [draw_quantiles(values, q, self.weights) for values in p.swapaxes(0, 1)]
            return np.stack(each, axis=1)

        each = self.predictor.n_draws * likelihood.n_classes
        values = self._by_blocks(quantiles_of, 2, X, row_values, each=each)
        return self._among_all(values, 0.0)

    def _label_likelihood(self) -> LabelLikelihood:
        if self.likelihood.totals:  # probabilities are of one trial
            return Bernoulli()
        assert isinstance(self.likelihood, LabelLikelihood)
        return self.likelihood


def _reach(directions: Array) -> float:
    """Largest distance of a draw from the mean, in sds, of any predictor along the directions."""
    return float(np.sqrt(np.einsum("ij,ij->j", directions, directions).max()))


def _of_one_trial(row_values: RowValues) -> RowValues:
    """Values of rows whose probabilities are asked for: their offsets."""
    return RowValues(offset=row_values.offset)


def _moved(coordinates: Array, row_values: RowValues) -> Array:
    """Coordinates of predictors ``(K, n, D)`` whose first predictor has the offset added."""
    if row_values.offset is not None:
        coordinates[0, :, -1] += row_values.offset
    return coordinates
