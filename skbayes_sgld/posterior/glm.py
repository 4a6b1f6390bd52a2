"""The posterior of a generalised linear model: likelihood, priors and data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import logsumexp

from skbayes_sgld._components import resolve
from skbayes_sgld._linalg import GROUP, MAX_DENSE, column_moments
from skbayes_sgld._random import probe_generator
from skbayes_sgld._sparse import as_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import (
    FixedNormalNoise,
    GivenOwn,
    Likelihood,
    OwnParameter,
)
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior.always_read import AlwaysRead
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.batches import LinearBatches
from skbayes_sgld.posterior.coefficient_maps import ByBlock, CoefficientMap, Contrasts
from skbayes_sgld.posterior.design import DenseDesign, Design
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.one_hot import LevelSum, levels_of
from skbayes_sgld.posterior.parameters import linear_parameters
from skbayes_sgld.posterior.protocol import Expansion, Facts, Reported
from skbayes_sgld.posterior.row_sum import RowSum
from skbayes_sgld.posterior.sparse_design import SparseDesign, as_array
from skbayes_sgld.posterior.statistics import GaussianStatistics
from skbayes_sgld.priors import NOISE_PRIORS, CoefficientPrior, Flat, Normal
from skbayes_sgld.priors.noise import NoisePrior

ROUNDED_NUMBERS = 2**8, 2**26  # least and most numbers of X for which a copy in float32 pays


class GLMPosterior(BasePosterior):
    """Posterior of a generalised linear model, for all chains at once.

    ``theta`` holds the coefficients and the intercept of each linear predictor in turn, and last
    the coordinates of the likelihood's own parameters, such as ``gamma = log sigma^2``. If
    ``x_mean (d,)`` is not None, intercepts are those at that row instead of at X = 0.

    A shift common to all softmax predictors does not change the likelihood. If its prior is flat,
    the shift gets a normal density, which does not change the distribution of differences between
    classes. Reported coefficients and intercepts sum to zero over the classes.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, d), float32 or float64
        Features; a large array is not copied, and a sparse one never made dense.
    y : ndarray of shape (n,)
        Observations.
    likelihood : Likelihood
        Distribution of an observation given its linear predictors.
    prior : CoefficientPrior
        Prior of the coefficients.
    own_priors : NoisePrior, sequence of NoisePrior or None, default=None
        Prior of each of the likelihood's own parameters, such as the noise variance. None: their
        defaults, in units of the variance of y for the noise.
    intercept_prior : CoefficientPrior or None, default=None
        Prior of the intercept at X = 0; None is the flat prior.
    sample_weight : ndarray of shape (n,) or None, default=None
        Weight of each row: a weight of w counts as w rows.
    offset : ndarray of shape (n,) or None, default=None
        Known part of each row's first linear predictor, such as the log of an exposure.
    n_averaged : ndarray of shape (n,) or None, default=None
        Number of observations that each y is the mean of; None of single observations.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_at_mean : bool, default=False
        Whether theta holds the intercept at the mean of X instead of at X = 0: the same posterior
        in coordinates that are easier to sample.
    feature_names, class_names : sequence of str or None, default=None
        Names of the columns of X and of the classes, for ``param_names``.
    moments : tuple of two ndarrays of shape (d,) or None, default=None
        Mean and spread of each column, if X is a sample of rows with known moments.
    others : dict of ndarray of shape (n, ...) or None, default=None
        Further values of the rows by name, for a likelihood that takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.likelihoods import Bernoulli
    >>> from skbayes_sgld.posterior import GLMPosterior
    >>> from skbayes_sgld.priors import Normal
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 1.0])
    >>> posterior = GLMPosterior(X, y, Bernoulli(), Normal(scale=2.5))
    >>> posterior.param_names
    ['coef[x0]', 'intercept']
    >>> posterior.log_density(np.zeros((1, 2))).round(3).tolist()  # 3 log(1 / 2)
    [-2.079]
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        likelihood: Likelihood,
        prior: CoefficientPrior,
        own_priors: NoisePrior | Sequence[NoisePrior] | None = None,
        *,
        intercept_prior: CoefficientPrior | None = None,
        sample_weight: Array | None = None,
        offset: Array | None = None,
        n_averaged: Array | None = None,
        fit_intercept: bool = True,
        intercept_at_mean: bool = False,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        moments: tuple[Array, Array] | None = None,
        others: Mapping[str, Array] | None = None,
    ) -> None:
        self.X: Any = as_rows(X) if issparse(X) else X
        self.values = RowValues(y, sample_weight, offset, n_averaged, others or {})
        self.n_samples, self.n_features = X.shape
        self.likelihood, self.n_predictors = likelihood, likelihood.n_predictors
        by_trial = likelihood.trial_weight(y, sample_weight)
        self.total_weight = float(len(y) if by_trial is None else by_trial.sum())
        self.fit_intercept, self._given_moments = bool(fit_intercept), moments
        self._statistics = self._sufficient_statistics()
        self.x_mean = self._mean() if intercept_at_mean and fit_intercept else None

        linear_prior = LinearPrior.from_rows(
            prior,
            intercept_prior or Flat(),
            likelihood,
            (self.X, self._y_less_known, sample_weight),
            self.column_spread if prior.automatic else None,
            self.x_mean,
            self.fit_intercept,
        )
        if own_priors is None:
            own_priors = self._default_own_priors()
        parts = (own_priors,) if isinstance(own_priors, NoisePrior) else tuple(own_priors)
        features = list(feature_names or (f"x{j}" for j in range(self.n_features)))
        self.parameters, self.coords = linear_parameters(
            linear_prior, likelihood, parts, features, class_names
        )
        self._sums = SharedSums()

    def _sufficient_statistics(self) -> GaussianStatistics | None:
        """Sums of products of the rows, if the likelihood needs nothing else."""
        if not self.likelihood.has_sums(self.values) or self.n_features > MAX_DENSE:
            return None
        rows = self.X, self.values.y_less_offset, self.weight, self.fit_intercept
        return GaussianStatistics.from_rows(*rows, refine=True, size=self.n_averaged)

    @property
    def _y_less_known(self) -> Array:
        """Observations, less the offset if the predictor has their unit."""
        return self.values.y_less_offset if self.likelihood.in_units_of_y else self.y

    def _mean(self) -> Array:
        """Mean of the columns ``(d,)``."""
        return self._moments[0] if self._statistics is None else self._statistics.x_mean

    def _default_own_priors(self) -> list[NoisePrior]:
        units = self.likelihood.own_units(self.values)
        pairs = zip(self.likelihood.own, units, strict=True)
        return [default_prior(own).for_data(unit) for own, unit in pairs]

    # ---- rows: X, and what they bring besides ---------------------------------------------------

    @property
    def y(self) -> Array:
        """Observations ``(n,)``."""
        assert self.values.y is not None
        return self.values.y

    @property
    def weight(self) -> Array | None:
        """Weights ``(n,)``; None if all are 1."""
        return self.values.weight

    @property
    def offset(self) -> Array | None:
        """Offsets ``(n,)`` of the first linear predictor; None without any."""
        return self.values.offset

    # ---- theta, a list of blocks ----------------------------------------------------------------

    @property
    def n_params(self) -> int:  # type: ignore[override]
        """Number of parameters P."""
        return self.parameters.size

    @property
    def param_names(self) -> list[str]:  # type: ignore[override]
        """Names of the entries of theta."""
        return self.parameters.names

    @property
    def n_own(self) -> int:
        """Number of the likelihood's own parameters, the last of theta."""
        return self.parameters.n_own

    # precisions of gradients, and of log densities bound with them
    _dtype: type = np.float64
    _density_dtype: type = np.float64

    @property
    def linear_prior(self) -> LinearPrior:
        """Prior of coefficients and intercepts."""
        prior: LinearPrior = self.parameters.coefficients.prior
        return prior

    @property
    def own_priors(self) -> tuple[NoisePrior, ...]:
        """Prior of each of the likelihood's own parameters."""
        priors: tuple[NoisePrior, ...] = self.parameters["own"].priors
        return priors

    @property
    def reported(self) -> Reported:
        """Reported parameters: their names, and the maps from and to theta."""
        blocks = self.parameters
        names = blocks.reported_names
        maps = blocks.to_reported, blocks.from_reported, blocks.moves
        return Reported(names, *maps, self.coords)

    # ---- rows: a design, a likelihood, and their sum -------------------------------------------

    def _coefficient_map(self) -> CoefficientMap:
        """Map from theta to the coefficients of the likelihood's predictors."""
        if self.n_own:
            return ByBlock(self.parameters)
        kind = Contrasts if self.likelihood.shift_invariant else CoefficientMap
        return kind(self.n_predictors, self.linear_prior.width)

    def _design(self, dtype: type) -> Design:
        """Columns of X and, for intercepts and own parameters, a column of ones."""
        has_ones = self.fit_intercept or self.n_own > 0
        if issparse(self.X):
            return SparseDesign(self.X.astype(dtype), self.x_mean, has_ones)
        return DenseDesign(self.X, self.x_mean, has_ones, dtype)

    def row_sum(self, dtype: type = np.float64) -> RowSum:
        """Sum over the rows in a precision, which all posteriors of these rows share."""
        if dtype not in self._sums:
            kernel = self.likelihood.bind(self.values, dtype)
            self._sums[dtype] = RowSum(self._design(dtype), kernel, self._coefficient_map())
        return self._sums[dtype]

    def _sum(self, dtype: type = np.float64) -> RowSum | _StatisticsSum:
        """Log likelihood of all rows in any order; by sufficient statistics, if these are known."""
        if self._statistics is not None:
            return _StatisticsSum(self)
        if dtype not in self._sums.of_all:
            self._sums.of_all[dtype] = self._level_sum(dtype) or self.row_sum(dtype)
        return self._sums.of_all[dtype]

    def _level_sum(self, dtype: type) -> LevelSum | None:
        """Sum over rows sorted by the factor that has most of the columns; None without one."""
        coefficient_map = self._coefficient_map()
        # coefficients of the columns of X and an intercept alone
        plain = self.fit_intercept and not isinstance(coefficient_map, ByBlock)
        found = levels_of(self.X) if plain and not issparse(self.X) else None
        if found is None:
            return None
        kernel = self.likelihood.bind(self.values, dtype)
        return LevelSum.of(self.X, self.x_mean, found, kernel, coefficient_map, dtype)

    def design_rows(self, rows: slice) -> Any:
        """Rows of the design ``(B, d + 1)``, a column of ones last where there are intercepts."""
        block = self.row_sum().design.block(rows)
        return block if issparse(self.X) else block[:, : self.linear_prior.width]

    def bind_batches(self, n_chains: int, batch_size: int, n_walkers: int = 1) -> LinearBatches:
        """Batches of rows for the chains of one run, in one thread."""
        # control variates leave a small rest, for which single precision is enough: the products of
        # 16 walkers are then 2.5 times as fast (10,000 rows of 300 columns)
        pays = n_walkers > 1 and batch_size * self.n_features >= 2**15
        pays = pays and self.X.size <= ROUNDED_NUMBERS[1] and not issparse(self.X)
        rounds = pays or self._dtype is np.float32
        sums = self.row_sum(np.float32 if rounds else np.float64)
        return LinearBatches(sums, self, n_chains, batch_size, n_walkers)

    def leverages(self, at: Expansion | Array, moves: Array, least: float) -> Array:
        """Leverages ``(n_products, n)`` of the rows; those clearly below ``least`` are 0.

        The likelihood's own parameters count as further predictors. The point is an expansion of
        the log likelihood, or ``theta (P,)``; the covariance of theta is ``moves^T moves``, for
        ``moves (k, P)``. A row's curvature is the largest within two sds of its predictors.
        """
        theta, of_rows = (at.theta, at.of_rows) if isinstance(at, Expansion) else (at, ())
        # for 5 in 1,000 rows the variance from k random moves is too small by more than this factor
        often = 20 * len(moves) > least * self.n_samples
        k, factor = (32, 2.0) if often else (8, 6.0)
        few, rows = probe_generator().standard_normal((k, len(moves))) / np.sqrt(k), self.row_sum()
        variances = rows.variances(few @ moves if len(moves) > k else moves)
        rough = of_rows[1] * variances if of_rows else rows.leverages(theta, variances)
        # with a variance above 1 / 4, curvatures change by a factor of e or more
        inside = (~(factor * rough < least) | (variances > 0.25)).any(axis=0)
        leverages = np.zeros_like(variances)
        if inside.any():
            some = self.take(np.flatnonzero(inside)).row_sum()
            found = some.leverages(theta, some.variances(moves), 2.0)
            leverages[:, inside] = np.where(np.isfinite(found), found, np.inf)
        return leverages

    def take(self, idx: Array) -> Self:
        """Posterior given only the rows ``idx``."""
        return self.with_rows(self.X[idx], self.values[idx])

    def without(self, idx: Array | int) -> Self:
        """Posterior given all rows but ``idx``."""
        return self.take(np.delete(np.arange(self.n_samples), idx))

    def always_reading(self, rows: Array) -> AlwaysRead:
        """Posterior whose batches exclude some rows, which every step reads."""
        return AlwaysRead(self, rows)

    # ---- subsets that stand for all rows --------------------------------------------------------

    def subset(self, rows: slice) -> Self:
        """Posterior given some of the rows, reweighted to stand for all.

        All rows of a rare class are in it, since a few would say little about the class. They
        represent no other rows.
        """
        inside, rare = np.zeros(self.n_samples, bool), self.likelihood.rare(self.y)
        inside[rows] = True
        idx: Any = rows if rare is None else np.flatnonzero(inside | rare)  # a slice copies nothing
        weight = np.full(inside[idx].size, self.n_samples / inside.sum())
        if rare is not None:
            weight[rare[idx]] = 1.0
        return self.with_rows(self.X[idx], self.values[idx].weighted(weight))

    def with_rows(self, X: Array, values: RowValues) -> Self:
        """Posterior given other rows, under the same prior and in the same coordinates."""
        n = X.shape[0]
        return self._with(X=X, values=values, n_samples=n, _statistics=None, _sums=SharedSums())

    def _has_rows_of(self, other: GLMPosterior) -> bool:
        """Whether both are of one likelihood of one set of rows, and so share their sums."""
        return self._sums is other._sums

    # ---- facts ----------------------------------------------------------------------------------

    @property
    def prior(self) -> CoefficientPrior:
        """Prior of the coefficients."""
        return self.linear_prior.coef

    @property
    def noise_prior(self) -> NoisePrior | None:
        """Prior of the noise variance; None if it is not inferred."""
        return self.own_priors[0] if self.likelihood.infers_noise else None

    @property
    def n_averaged(self) -> Array | None:
        """Number of observations ``(n,)`` averaged in each y; None if y are single observations."""
        return self.values.n_averaged

    @property
    def _moments(self) -> tuple[Array, Array]:
        """Mean and spread of each column, of the rows that the posterior was made of."""
        if self._given_moments is None:
            self._given_moments = column_moments(self.X, self.weight)
        return self._given_moments

    @property
    def column_spread(self) -> Array:
        """Spread of each column ``(d,)``, the unit of automatic scales."""
        return self._moments[1]

    @property
    def intercept_is_free(self) -> bool:
        """Whether there is an intercept with an improper prior, which the data must determine."""
        return self.fit_intercept and not self.linear_prior.intercept.proper

    @property
    def own_parameters(self) -> tuple[OwnParameter, ...]:  # type: ignore[override]
        """Own parameters of the likelihood."""
        return self.likelihood.own

    @cached_property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        return self._facts()

    def _facts(self) -> Facts:
        # with few rows per parameter the bulk may be far from the mode
        far = self.n_samples < 5 * self.n_params and self.n_params >= 300
        return Facts(
            has_mode=True,  # since it is proper
            one_mode=True,
            log_concave=self.prior.log_concave and self.likelihood.log_concave,  # or nearly so
            has_other_starts=self.likelihood.several_modes,
            n_own=self.n_own,
            light_tailed=self.prior.normal and self.prior.proper and not self.n_own,
            far_from_mode=far and self.likelihood.has_sites and not self.prior.nonsmooth,
            bounded_curvature=self.likelihood.bounded_curvature,
            cheap_full_gradient=self._statistics is not None,
            shares_batches=not (issparse(self.X) or self.n_own),
            condensable=self._condensable(),
            likely_normal=self._likely_normal(),
            likely_cubic=self._likely_cubic(),
            thread_safe=True,
            n_predictors=self.n_predictors,
            total_weight=self.total_weight,
            noise_index=self.parameters.noise,
            parameterizations=self._parameterizations(),
            prior_slope=self._prior_slope(),
        )

    def _is_plain(self) -> bool:
        # rows of a subclass have further coordinates
        return type(self) is GLMPosterior and self._statistics is None

    def _condensable(self) -> bool:
        return self._is_plain() and self._has_many_rows()

    def _has_many_rows(self) -> bool:
        # of fewer rows all are as cheap (1,340 x 19), or most of them matter (1,500 x 100). Gamma
        # targets of 2,000 rows in fifty levels take 0.4 of the time, and eight classes of 2,000 x
        # 16 with a row far out a sixth
        n, P = self.n_samples, self.n_params
        of_each = P // self.n_predictors
        return n > min(4000, max(1500, 15 * of_each)) and P <= MAX_DENSE

    def _likely_normal(self) -> bool:
        # at 40,000 x 100 and 100,000 x 200 the usual plan takes 1.4 and 1.5 times as long
        n, P = self.n_samples, self.n_params
        many = n > 4000 and P >= 64 and 12 * P <= n <= 20 * P**2
        return many and self._condensable() and self._one_concave()

    def _likely_cubic(self) -> bool:
        # quartic terms are of order P^2 / n; the usual plan of more rows takes no longer
        n, P = self.n_samples, self.n_params
        many = n > 1000 and 15 * P**2 <= n <= 12_000
        return many and self._is_plain() and self._one_concave()

    def _one_concave(self) -> bool:
        """Whether rows are dense and have one predictor, in which they are log-concave."""
        alone = not self.n_own and self.n_predictors == 1
        return alone and self.likelihood.log_concave and not issparse(self.X)

    def _prior_slope(self) -> Array | None:
        line = self.linear_prior.line
        if self.n_own or line is None or line[1] is not None:
            return None
        return np.tile(line[0], self.n_predictors)

    def _parameterizations(self) -> tuple[str, ...]:
        names = ["centered"]
        if self.likelihood.infers_noise and self._statistics is not None:
            names.append("noncentered")
        normal = isinstance(self.prior, Normal) and self.prior.normal and self.prior.proper
        if normal and self.n_samples < self.n_features and self.n_samples <= MAX_DENSE:
            names.append("row_space")
        if type(self) is GLMPosterior and [own.has_limit for own in self.own_parameters] == [True]:
            names.append("quantiles")
        return tuple(names)

    def start(self) -> Array:
        """Starting point ``(P,)`` of a search: coefficients 0, the others estimated from y."""
        theta = np.zeros(self.n_params)
        size, weight = self.n_averaged, self.weight
        if size is not None:  # weights, for starts by single observations
            weight = size if weight is None else weight * size
        local = self.likelihood.start(self._y_less_known, weight, self.fit_intercept)
        if size is not None:
            local[self.likelihood.spread_at :] += np.log(np.average(size, weights=self.weight))
        if self.offset is not None and not self.likelihood.in_units_of_y:
            # under a log link the mean is then that of y
            weight = np.ones(self.n_samples) if weight is None else weight
            local[0] -= logsumexp(self.offset, b=weight) - np.log(weight.sum())
        self.parameters.intercept(theta[None])[0] = local[: self.n_predictors, None]
        self.parameters.own(theta[None])[0] = local[self.n_predictors :]
        return theta

    def other_starts(self) -> list[Array]:
        """Further starting points ``(P,)`` of searches, if the likelihood has some."""
        if not self.likelihood.several_modes:
            return []
        design, width, starts = self.row_sum().design, self.parameters.n_linear, []
        block = as_array(design.block(slice(0, self.n_samples)))[:, :width]
        for found in self.likelihood.other_starts(block, self.y, self.weight):
            theta = np.zeros(self.n_params)
            theta[:width] = found[:width]
            self.parameters.own(theta[None])[0] = found[width:]
            starts.append(theta)
        return starts

    def zeros(self) -> Array:
        """Point ``(P,)`` at which all coefficients are 0; the noise variance is that of y."""
        theta = self.start()
        self.parameters.linear(theta[None])[...] = 0.0
        return theta

    def draw_prior(self, generators: list[np.random.Generator]) -> Array:
        """Reported parameters ``(C, P)`` from the prior.

        Parameters with flat priors are 0, and own parameters are those at the start of a search.
        """
        return self.parameters.draw_prior(self.zeros(), generators)

    # ---- likelihood ---------------------------------------------------------------------------

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Weighted log likelihood of each row ``(C, B)``."""
        if idx is None:
            return self.row_sum().each_row(theta)
        batches = self.bind_batches(*idx.shape)
        batch = batches.gather(idx[None])[0]
        return batches.log_density(batches.local(theta, batch), batch)

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        if idx is not None:
            batches = self.bind_batches(*idx.shape)
            with np.errstate(over="ignore"):
                return batches.gradient(theta, batches.gather(idx[None])[0])
        return self._sum().grad(theta)

    # ---- prior and posterior ------------------------------------------------------------------

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""
        return self.parameters.log_prior(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        return self.parameters.grad_log_prior(theta)

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""
        return self._sum().value(theta) + self.log_prior(theta)

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.bind_grad()(theta)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        # with several predictors, those of one position are a matrix product already
        return self.bind_value_and_grad(group=GROUP if self.n_predictors == 1 else 1)(theta)

    def bind_log_density(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`log_density` for one run in one thread."""
        rows = self._sum(self._density_dtype)
        return lambda theta: rows.value(theta, group) + self.log_prior(theta)

    def bind_grad(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`grad` for one run in one thread."""
        rows = self._sum(self._dtype)

        def grad(theta: Array) -> Array:
            out = rows.grad(theta, group)
            out += self.grad_log_prior(theta)
            return out

        return grad

    def bind_value_and_grad(
        self, followed: BasePosterior | None = None, group: int | None = GROUP
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, in one pass also if ``followed`` has another prior."""
        other = self if followed is None else followed
        if not (isinstance(other, GLMPosterior) and self._has_rows_of(other)):
            return super().bind_value_and_grad(followed, group)
        rows = self._sum(self._density_dtype)

        def value_and_grad(theta: Array) -> tuple[Array, Array]:
            value, grad = rows.value_and_grad(theta, group)
            self._add_prior(theta, value, grad, other)
            return value, grad

        return value_and_grad

    def _add_prior(self, theta: Array, value: Array, grad: Array, other: GLMPosterior) -> None:
        """Add the log prior to ``value (C,)``, and the slope of another one to ``grad (C, P)``."""
        value += self.log_prior(theta)
        grad += other.grad_log_prior(theta)

    def given_own(self, own: Array) -> GLMPosterior:
        """Posterior of the linear parameters at known coordinates ``own (n_own,)``."""
        likelihood, noise_variance = self.likelihood, None
        if not self.n_own:
            return self
        if likelihood.infers_noise:
            noise_variance = float(np.exp(own[0]))
        given: Likelihood = GivenOwn(likelihood, own)
        if likelihood.quadratic:
            given = FixedNormalNoise(float(np.exp(own[0])))
        parameters = self.parameters.given_own(given, noise_variance)
        return self._with(likelihood=given, parameters=parameters, _sums=SharedSums())

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Log likelihood and its derivatives at one ``theta (P,)``, in one pass.

        At draws ``(S, P)`` they are means over the draws. A given ``curvature (P, P)`` replaces
        minus the Hessian; the value is then not computed.
        """
        if curvature is None:
            return self._sum(self._dtype).expand(theta)
        return Expansion(theta, self._sum(self._dtype).grad(theta[None], None)[0], curvature)

    def remainders(self, draws: Array) -> Array:
        """Each row's log likelihood minus its expansion with averages over draws ``(S, n)``.

        The mean over the draws is left out.
        """
        return self.row_sum(self._dtype).remainders(draws)

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal d and factor F of the curvature ``diag(d) + F^T F`` at one ``theta (P,)``.

        Mixed derivatives of own parameters and coefficients, small at the mode, are ignored.

        Returns
        -------
        diagonal : ndarray of shape (P,)
        factor : ndarray of shape (n, P) or (n + 1, P), or None
            One row per row of X, and one for the intercept's prior. None if it does not pay: with
            more rows than parameters or than 4,000, several linear predictors, or sparse rows.
            ``diagonal`` is then the whole diagonal of the curvature.
        """
        n, P, K, width = self.n_samples, self.n_params, self.n_predictors, self.linear_prior.width
        few = K == 1 and n <= min(P, MAX_DENSE) and not issparse(self.X)
        prior = self.prior_diagonal(theta)
        likelihood = self.row_sum().hessian_diagonal(theta)
        if not few:
            return likelihood + prior, None
        factor = np.zeros((n, P))
        for rows, block, curvature in self.row_sum().curvatures(theta):
            factor[rows, :width] = np.sqrt(curvature[0, 0])[:, None] * block[:, :width]
        if not self.linear_prior.intercept.flat:  # a further row for the intercept's prior
            linear, gamma = self.parameters.at_one(theta)
            direction, curvature, *_ = self.linear_prior.intercept_curvature(linear, gamma)
            prior[:width] -= curvature[0] * np.square(direction)
            factor = np.concatenate([factor, np.zeros((1, P))])
            factor[-1, :width] = np.sqrt(max(curvature[0], 0.0)) * direction
        diagonal = np.maximum(prior, 1e-8 * likelihood)
        own = self.parameters.at("own")
        diagonal[own] = likelihood[own] + prior[own]
        return diagonal, factor

    def prior_diagonal(self, theta: Array) -> Array:
        """Diagonal of the log prior's curvature ``(P,)`` at one ``theta (P,)``."""
        return self.parameters.prior_diagonal(theta)

    def expand(self, theta: Array) -> Expansion:
        """Log density and its derivatives at one ``theta (P,)``, in one pass.

        At draws ``(S, P)`` the likelihood's are means over the draws; the prior's are at their
        mean.
        """
        return self.with_prior_part(self.expand_likelihood(theta))

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log posterior ``(P, P)`` at one ``theta (P,)``."""
        return self.expand(theta).curvature

    def mean_curvature(self, theta: Array) -> Array | None:
        """Mean of the curvatures ``(P, P)`` at draws ``(S, P)``; the prior's is at their mean."""
        return None if self.n_own or self.prior.nonsmooth else self.curvature(theta)

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add the curvature of the log prior at one ``theta (P,)`` to ``H (P, P)``."""
        self.parameters.add_prior_curvature(H, theta)

    def with_rounded_kinks(self, spread: Array) -> GLMPosterior:
        """Posterior with its kinks rounded over a small fraction of ``spread (P,)``."""
        # 0.15 posterior sds halve the work of HMC, with little error
        return self.averaged_over(0.15 * spread) if self.linear_prior.nonsmooth else self

    def rounded(self, density: bool = False) -> GLMPosterior:
        """Posterior with a rounded gradient, also a rounded ``density`` if asked, or itself."""
        pays = ROUNDED_NUMBERS[0] <= self.X.size <= ROUNDED_NUMBERS[1]
        dtype = self._density_dtype if density else self._dtype
        if not pays or dtype is np.float32 or issparse(self.X):
            return self
        densities = np.float32 if density else np.float64
        return self._with(_dtype=np.float32, _density_dtype=densities)

    def averaged_over(self, spread: Array | None) -> Self:
        """Posterior with its prior averaged over errors of sd ``spread``; None: the prior's width.

        A posterior without kinks is returned as it is.
        """
        if self.linear_prior.normal:
            return self
        width = None if spread is None else self.parameters.linear(spread[None])[0]
        prior = self.linear_prior.averaged_over(width)
        if prior is self.linear_prior:
            return self
        return self.with_prior(prior)

    def with_prior(self, prior: LinearPrior) -> Self:
        """Posterior of the same rows under another prior of the linear parameters."""
        coefficients = replace(self.parameters.coefficients, prior=prior)
        return self._with(parameters=self.parameters.changed(coefficients))

    def with_own_priors(self, priors: tuple[NoisePrior, ...]) -> Self:
        """Posterior of the same rows under other priors of the likelihood's own parameters."""
        return self._with(
            parameters=self.parameters.changed(replace(self.parameters["own"], priors=priors))
        )


class SharedSums(dict[type, RowSum]):
    """Sums over one set of rows under one likelihood, by the dtype of their products.

    All posteriors of these rows and this likelihood hold this one object: copies under another
    prior share it, and a posterior of other rows or of another likelihood has a new one.

    Attributes
    ----------
    of_all : dict of RowSum
        Sums over all rows in any order, such as that of their levels, by the same dtype.
    """

    def __init__(self) -> None:
        super().__init__()
        self.of_all: dict[type, RowSum] = {}


class _StatisticsSum:
    """Log likelihood of all rows of a normal model, by their sufficient statistics.

    It has the value, the gradient and the expansion of :class:`RowSum`.
    """

    def __init__(self, posterior: GLMPosterior) -> None:
        assert posterior._statistics is not None
        self._posterior, self._statistics = posterior, posterior._statistics

    def _at(self, theta: Array) -> tuple[Any, ...]:
        """Arguments of the statistics at ``theta (C, P)``."""
        posterior, gamma = self._posterior, self._posterior.parameters.gamma(theta)
        at_mean = posterior.x_mean is not None or not posterior.fit_intercept
        return theta, posterior.likelihood.noise_variance(gamma), gamma, at_mean

    def value_and_grad(self, theta: Array, group: int | None = None) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)``; ``group`` is not used."""
        return self._statistics.value_and_grad(*self._at(theta))

    def value(self, theta: Array, group: int | None = None) -> Array:
        """Log likelihood ``(C,)``; ``group`` is not used."""
        return self.value_and_grad(theta)[0]

    def grad(self, theta: Array, group: int | None = None) -> Array:
        """Gradient of the log likelihood ``(C, P)``; ``group`` is not used."""
        return self.value_and_grad(theta)[1]

    def expand(self, theta: Array) -> Expansion:
        """Value and derivatives at ``theta (P,)``, or their means at draws ``(S, P)``."""
        at = self._at(np.atleast_2d(theta))
        value, grad = self._statistics.value_and_grad(*at)
        H = self._statistics.curvature(*at)
        return Expansion(theta, grad.mean(axis=0), H, value=float(value.mean()))


def default_prior(own: OwnParameter) -> NoisePrior:
    """Default prior of an own parameter."""
    return resolve(own.default, NOISE_PRIORS, f"OwnParameter({own.name!r}).default")
