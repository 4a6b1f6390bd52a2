"""The posterior of a generalised linear model, composed of likelihood, priors and data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld._linalg import GROUP, MAX_DENSE, column_means, column_moments, in_threads
from skbayes_sgld._sparse import as_rows
from skbayes_sgld.posterior.averaging import FEW_ROWS, MANY, averaged_normal
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.batches import RowSubsets
from skbayes_sgld.posterior.bound_density import bound_value_and_grad
from skbayes_sgld.posterior.conflict import measured_conflict
from skbayes_sgld.posterior.expansion import expand_rows
from skbayes_sgld.posterior.factor import curvature_factor as factor_of_curvature
from skbayes_sgld.posterior.likelihoods import FixedGaussian, Likelihood
from skbayes_sgld.posterior.linear_predictors import HELD_NUMBERS, BoundRows, SettledRows
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.priors import CoefficientPrior, Flat
from skbayes_sgld.posterior.priors.noise import NoisePrior
from skbayes_sgld.posterior.propriety import check_mode, check_propriety, check_weights
from skbayes_sgld.posterior.protocol import AveragedNormal, Expansion
from skbayes_sgld.posterior.rounded_hessian import rough_curvature, rounded_expansion
from skbayes_sgld.posterior.starts import prior_draws, zero_effects
from skbayes_sgld.posterior.statistics import GaussianStatistics

Array = NDArray[Any]

ROUNDED_NUMBERS = 2**10, 2**26  # numbers of X between which a copy in float32 pays
_SOFT = 0.15  # posterior sds that kinks are rounded over: halves the work of HMC, at little error


class GLMPosterior(RowSubsets, BasePosterior):
    """Posterior of a generalised linear model, for all chains at once.

    ``theta`` holds the coefficients and the intercept of each linear predictor in turn, and last
    ``gamma = log sigma^2`` where the noise is inferred.

    A shift common to all softmax predictors does not change the likelihood. Where its prior is
    flat the shift is given a normal density of its own, which leaves the distribution of every
    difference between classes unchanged; and :meth:`constrain` reports coefficients and intercepts
    that sum to zero over the classes.

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
    noise_prior : NoisePrior or None, default=None
        Prior of the noise variance; needed if the likelihood infers the noise.
    intercept_prior : CoefficientPrior or None, default=None
        Prior of the intercept at X = 0; None is the flat prior.
    sample_weight : ndarray of shape (n,) or None, default=None
        Weight of each row: a weight of w counts as w rows.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    center : bool, default=False
        Whether theta holds the intercept at the mean of X instead of at X = 0: the same posterior
        in coordinates that are easier to sample.
    feature_names, class_names : sequence of str or None, default=None
        Names of the columns of X and of the classes, for ``param_names``.
    columns : tuple of two ndarrays of shape (d,) or None, default=None
        Mean and spread of each column, where X is a sample of rows whose moments are known.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
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
        noise_prior: NoisePrior | None = None,
        *,
        intercept_prior: CoefficientPrior | None = None,
        sample_weight: Array | None = None,
        fit_intercept: bool = True,
        center: bool = False,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        columns: tuple[Array, Array] | None = None,
    ) -> None:
        X, fit_intercept = as_rows(X) if issparse(X) else X, bool(fit_intercept)
        K, infers_noise, statistics = likelihood.n_predictors, likelihood.infers_noise, None
        if likelihood.quadratic and X.shape[1] <= MAX_DENSE:
            statistics = GaussianStatistics(X, y, sample_weight, fit_intercept)
        mean, spread = None if columns is None else columns[0], None
        if prior.automatic:
            mean, spread = column_moments(X, sample_weight) if columns is None else columns
        self._spread = spread if columns is None else columns[1]
        if statistics is not None:
            mean = statistics.x_mean
        if not (center and fit_intercept):
            mean = None
        elif mean is None:
            mean = column_means(X, sample_weight)
        super().__init__(X, y, sample_weight, K, infers_noise, fit_intercept, mean)
        self._statistics = statistics
        self.likelihood, self.noise_prior = likelihood, noise_prior
        self.bounded_curvature = likelihood.bounded_curvature
        self.log_concave = prior.log_concave  # as a likelihood is, or nearly
        priors, data = (prior, intercept_prior or Flat()), (X, y, sample_weight)
        self.linear_prior = LinearPrior.of_data(
            *priors, likelihood, data, spread, self.center, fit_intercept
        )
        self._dtype: type = np.float64  # of bound gradients
        self._density_dtype: type = np.float64  # of densities bound with them
        self._group: int | None = GROUP
        self.param_names = self._name_params(feature_names, class_names)

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters."""
        linear = self.param_names[: self._n_linear]
        return linear + ["noise_variance"] * self._infers_noise

    def _name_params(
        self, feature_names: Sequence[str] | None, class_names: Sequence[str] | None
    ) -> list[str]:
        """Names of the parameters, from those of the columns and of the classes."""
        features = list(feature_names or (f"x{j}" for j in range(self.n_features)))
        self.coords = {"feature": features}
        if self.n_predictors == 1:
            names = [f"coef[{f}]" for f in features] + ["intercept"] * self.fit_intercept
        else:
            names, classes = [], list(class_names or map(str, range(self.n_predictors)))
            self.coords = {"class": classes, "feature": features}
            for k in classes:
                names += [f"coef[{k}, {f}]" for f in features]
                names += [f"intercept[{k}]"] * self.fit_intercept
        return names + ["log_noise_variance"] * self._infers_noise

    _statistics: GaussianStatistics | None
    _spread: Array | None
    _settled: dict[type, Any]

    def _bind(self, X: Any, y: Array, weight: Array | None) -> None:
        super()._bind(X, y, weight)
        self._statistics, self._settled, self._holds = None, {}, None

    @property
    def prior(self) -> CoefficientPrior:
        """Prior of the coefficients."""
        return self.linear_prior.coef

    @property
    def column_spread(self) -> Array:
        """Spread of each column ``(d,)``, which automatic scales are in units of."""
        if self._spread is None:
            self._spread = column_moments(self.X, self.weight)[1]
        return self._spread

    @property
    def intercept_is_free(self) -> bool:
        """Whether there is an intercept under an improper prior, which the data must determine."""
        intercept = self.linear_prior.intercept
        return bool(self.fit_intercept) and (intercept is None or not intercept.proper)

    @property
    def cheap_full_gradient(self) -> bool:
        """Whether the gradient from all rows costs no more than one from a few."""
        return self._statistics is not None

    @property
    def noise_index(self) -> int | None:
        """Position of the log noise variance among the parameters; None without one."""
        return self.n_params - 1 if self.likelihood.infers_noise else None

    def start(self) -> Array:
        """Point ``(P,)`` to search for the mode from: coefficients 0, the rest estimated from y."""
        theta = np.zeros(self.n_params)
        local = self.likelihood.start(self.y, self.weight, self.fit_intercept)
        if self.fit_intercept:
            self._linear(theta[None])[0, :, -1] = local[: self.n_predictors]
        if self.likelihood.infers_noise:
            theta[-1] = local[-1]
        return theta

    @property
    def light_tailed(self) -> bool:
        """Whether the tails are no heavier than normal: under a normal prior, the noise known."""
        return self.prior.normal and self.prior.proper and not self.likelihood.infers_noise

    @property
    def quadratic_prior(self) -> bool:
        """Whether the log prior is of second order: it is normal or flat, the noise known."""
        return self.linear_prior.normal and not self._infers_noise

    def check_proper(self) -> None:
        """Raise where flat priors leave the posterior without a finite integral."""
        level = self.intercept_is_free and self.likelihood.level_is_free(self.y)
        noise_is_proper = self.noise_prior is None or self.noise_prior.proper
        if level or not (self.prior.proper and noise_is_proper):
            check_propriety(self, level)

    def check_weights(self) -> None:
        """Raise where the weights of the rows are so small that flat priors are left, or nearly."""
        check_weights(self)

    def check_mode(self, theta: Array) -> None:
        """Raise where the likelihood at the mode shows that flat coefficients are unbounded."""
        if not self.prior.proper:
            check_mode(self, theta)

    @property
    def parameterizations(self) -> tuple[str, ...]:
        """Names of the coordinates in which the posterior can be sampled."""
        names = ["centered"]
        if self.likelihood.infers_noise and self._statistics is not None:
            names.append("noncentered")
        normal = self.prior.normal and self.prior.proper and self.linear_prior.separate
        if normal and self.n_samples < self.n_features and self.n_samples <= MAX_DENSE:
            names.append("row_space")
        return tuple(names)

    # ---- likelihood ---------------------------------------------------------------------------

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        if idx is not None:
            taken = self.take(idx)
            return self.pullback(self.score(self.local(theta, taken), taken), taken)
        if self._statistics is not None:
            return self._statistics_value_and_grad(theta)[1]
        return np.sum(in_threads(partial(self._sum_of_grad, theta), self._parts()), axis=0)

    def _statistics_value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        assert self._statistics is not None
        return self._statistics.of_theta(*self._statistics_at(theta))

    def _statistics_at(self, theta: Array) -> tuple[Any, ...]:
        """What the sufficient statistics are asked for, at ``theta (C, P)``."""
        gamma = self._gamma(theta)
        at_mean = self.center is not None or not self.fit_intercept
        variance = self.likelihood.noise_variance(gamma)
        return theta, variance, gamma, bool(self.fit_intercept), at_mean

    # ---- prior and posterior ------------------------------------------------------------------

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""
        gamma = self._gamma(theta)
        value = self.linear_prior.log_density(self._linear(theta), gamma)
        if gamma is not None:
            assert self.noise_prior is not None
            value = value + self.noise_prior.log_density(gamma)
        return value

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        grad, gamma = np.empty_like(theta), self._gamma(theta)
        self._linear(grad)[...], in_gamma = self.linear_prior.grad(self._linear(theta), gamma)
        if gamma is not None:
            assert self.noise_prior is not None
            grad[:, -1] = self.noise_prior.grad(gamma)
            if in_gamma is not None:
                grad[:, -1] += in_gamma
        return grad

    def bind_grad_log_prior(self) -> Callable[[Array], Array]:
        """:meth:`grad_log_prior`, as one product where the prior is normal."""
        if self._infers_noise:
            return self.grad_log_prior
        return self.linear_prior.bind_grad_of_flat(self.n_predictors, self._width)

    def log_density(self, theta: Array) -> Array:
        """Log posterior density up to a constant ``(C,)``."""
        if self._statistics is not None:
            value = self._statistics_value_and_grad(theta)[0]
        else:
            values = in_threads(partial(self._sum_of_log_likelihood, theta), self._parts())
            value = np.sum(values, axis=0)
        return value + self.log_prior(theta)

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        if self._dtype is np.float32:
            with np.errstate(over="ignore"):
                return self.bind_grad(len(theta))(theta)
        return self.grad_log_likelihood(theta) + self.grad_log_prior(theta)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        value, grad = self._rows_value_and_grad(theta)
        return value + self.log_prior(theta), grad + self.grad_log_prior(theta)

    def _rows_value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        if self._statistics is not None:
            return self._statistics_value_and_grad(theta)
        parts = in_threads(partial(self._sum_of_value_and_grad, theta), self._parts())
        value, grad = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
        return value, grad

    def _settle(self, dtype: type) -> SettledRows | None:
        """Rows settled for bound gradients, which all runs on these rows share; None without.

        A likelihood may have no kernel, a large design is not copied in double precision, and a
        sparse one not at all.
        """
        if dtype not in self._settled:
            large = dtype is np.float64 and self.X.size > HELD_NUMBERS
            known = self.likelihood.bind_rows(np.empty(0), None, dtype) is not None
            settled = known and not (large or issparse(self.X))
            self._settled[dtype] = SettledRows(self, dtype) if settled else None
        return self._settled[dtype]

    def bind_grad(self, n_chains: int) -> Callable[[Array], Array]:
        """:meth:`grad` for ``theta (n_chains, P)``, for one run in one thread."""
        rows, shape = self._settle(self._dtype), (n_chains, self.n_predictors, self._width)
        if rows is None:
            return self.grad
        sums = BoundRows(rows, *shape, self._group)
        of_prior = self.linear_prior.bind_grad(rows.pull.reshape(shape[1:]))

        def grad(theta: Array) -> Array:
            out = of_prior(theta.reshape(shape)).reshape(theta.shape)
            sums.add_grad(theta, out)
            flat = out.ravel()
            if not isfinite(flat.dot(flat)):
                bad = ~np.isfinite(out).all(axis=1)
                out[bad] = self.value_and_grad(theta[bad])[1]
            return out

        return grad

    def bind_value_and_grad(
        self, n_chains: int, followed: BasePosterior | None = None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, in one pass also where ``followed`` has another prior."""
        other = self if followed is None else followed
        if not (isinstance(other, GLMPosterior) and other._settled is self._settled):
            return super().bind_value_and_grad(n_chains, followed)
        rows = self._settle(self._density_dtype)
        return bound_value_and_grad(self, other, rows, n_chains, self._group)

    def given_noise(self, variance: float) -> GLMPosterior:
        """Posterior of the linear parameters where the noise variance is known."""
        other = copy(self)
        other.likelihood, other.noise_prior = FixedGaussian(variance), None
        other.bounded_curvature = True
        other._infers_noise, other._settled = False, {}
        other.linear_prior = self.linear_prior.given_noise(variance)
        other.n_params, other.param_names = self._n_linear, self.param_names[: self._n_linear]
        return other

    def likelihood_curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log likelihood ``(P, P)``; a mean over draws ``(S, P)``."""
        if self._statistics is None:
            return super().likelihood_curvature(theta)
        return self._statistics.curvature_of_theta(*self._statistics_at(np.atleast_2d(theta)))

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Gradient and Hessian of the log likelihood at one ``theta (P,)``, in one pass at most."""
        if self._statistics is not None:
            return super().expand_likelihood(theta, curvature)
        rounded = rounded_expansion(self, theta) if curvature is None else None
        return rounded or expand_rows(self, theta, curvature)

    prior_conflict = measured_conflict
    curvature_factor = factor_of_curvature
    zeros = zero_effects
    draw_prior = prior_draws
    has_mode, one_mode = True, True  # being proper

    def averaged_normal(self, theta: Array, temperature: float) -> AveragedNormal | None:
        """Normal distribution nearest in expectation, from the mode; None where that serves."""
        return averaged_normal(self, theta, temperature) if self.far_from_mode else None

    @property
    def far_from_mode(self) -> bool:
        """Whether most of the posterior is known to be far from its mode, for lack of rows."""
        few = self.n_params >= MANY and self.n_samples < FEW_ROWS * self.n_params
        return few and self.likelihood.averages and not self.prior.nonsmooth

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log posterior ``(P, P)`` at one ``theta (P,)``."""
        H = self.likelihood_curvature(theta)
        self.add_prior_curvature(H, theta)
        return H

    def rough_curvature(self, theta: Array) -> Array | None:
        """:meth:`curvature` to single precision; None where that costs no less."""
        few = self.n_predictors == 1 and self.n_params < MANY  # a Hessian in float32 does not pay
        return None if few else rough_curvature(self, theta)

    def mean_curvature(self, theta: Array) -> Array | None:
        """Mean of the curvatures ``(P, P)`` at draws ``(S, P)``; the prior's is at their mean."""
        if self._infers_noise or self.prior.nonsmooth:
            return None
        H = self.likelihood_curvature(theta)
        self.add_prior_curvature(H, theta.mean(axis=0))
        return H

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add the curvature of the log prior at one ``theta (P,)`` to ``H (P, P)``."""
        linear, gamma = self._linear(theta[None])[0], self._gamma(theta[None])
        g, L = None if gamma is None else float(gamma[0]), self._n_linear
        cross, corner = self.linear_prior.add_curvature(H[:L, :L], linear, g)
        if g is not None:
            assert self.noise_prior is not None
            H[:L, -1] += cross
            H[-1, :L] += cross
            H[-1, -1] += corner + self.noise_prior.curvature(g)

    def softened(self, spread: Array) -> GLMPosterior:
        """Posterior with its kinks rounded over a small fraction of ``spread (P,)``."""
        return self.smoothed(_SOFT * spread) if self.linear_prior.nonsmooth else self

    def rounded(self, density: bool = False) -> GLMPosterior:
        """Posterior whose gradient, or ``density`` too, is rounded; itself where it is no gain."""
        pays = ROUNDED_NUMBERS[0] <= self.X.size <= ROUNDED_NUMBERS[1]
        known = self._density_dtype if density else self._dtype
        if not pays or known is np.float32 or self._settle(np.float32) is None:
            return self
        other = copy(self)
        other._dtype, other._density_dtype = np.float32, np.float32 if density else np.float64
        return other

    def in_groups_of(self, size: int | None) -> GLMPosterior:
        """Copy whose matrix products take so many positions at once, which is faster."""
        other = copy(self)
        other._group = size
        return other

    def smoothed(self, spread: Array | None) -> GLMPosterior:
        """Posterior with its prior averaged over errors of sd ``spread``, None: its own width.

        A posterior without kinks is returned as it is.
        """
        if self.linear_prior.normal:
            return self
        known = None if spread is None else self._linear(spread[None])[0]
        prior = self.linear_prior.smoothed(known)
        if prior is self.linear_prior:
            return self
        other = copy(self)
        other.linear_prior = prior
        return other
