r"""A normal linear model whose noise differs from row to row.

.. math:: y_i \sim N(x_i \beta + b, \sigma_i^2), \quad
    \log \sigma_i = \alpha_0 + (z_i - \bar z) \alpha, \quad \alpha_j \sim N(0, s_j^2),

with z some columns of X. At their mean the noise is :math:`\exp(\alpha_0)`: its prior, and the
unit of coefficients whose prior is scaled by the noise, are those of the noise there, so that
:math:`\alpha = 0` is the model of constant noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld._linalg import (
    MAX_DENSE,
    column_moments,
    in_threads,
    matmul_rows,
    one_blas_thread,
    weighted_gram,
)
from skbayes_sgld.posterior.base import BasePosterior, BoundBatches
from skbayes_sgld.posterior.glm import ROUNDED_NUMBERS, GLMPosterior
from skbayes_sgld.posterior.likelihoods import HeteroscedasticGaussian
from skbayes_sgld.posterior.priors import CoefficientPrior, NoisePrior, Normal
from skbayes_sgld.posterior.protocol import Expansion, Rows
from skbayes_sgld.posterior.restricted_likelihood import restricted_normal

Array = NDArray[Any]

_FEW_ROWS = 20  # rows per parameter, below which the joint mode is off the centre
_INTEGRATED = 2**17  # rows times coefficients squared, which a step then takes for each chain
_ROUNDS = 3  # of a prior with kinks, averaged over the width that the last one found


class LogLinearBatches(BoundBatches):
    """Batches of rows that see theta through two linear predictors of X.

    The ``n_walkers`` neighbouring positions of a chain share its batch, in one product.
    """

    def __init__(
        self, posterior: LogLinearNoisePosterior, n_chains: int, batch_size: int, n_walkers: int
    ) -> None:
        self.size, self._of, self._n_walkers = batch_size, posterior, n_walkers
        rounded = n_walkers > 1 and posterior._rounds_batches(batch_size)
        self._dtype = np.float32 if rounded else np.float64
        self._together = n_chains, 2 * n_walkers, -1

    def gather(self, idx: Array) -> Sequence[Any]:
        """Batches of the rows ``idx (T, C, B)``, one a step."""
        model = self._of
        X = model.X.take(idx, axis=0).astype(self._dtype, copy=False)
        y = np.repeat(model.y.take(idx), self._n_walkers, axis=1)
        if model.weight is None:
            return list(zip(X, y, strict=True))
        weight = np.repeat(model.weight.take(idx), self._n_walkers, axis=1)
        return list(zip(X, y, weight[:, :, None], strict=True))

    def local(self, theta: Array, batch: Any) -> Array:
        """Mean and log variance of each row ``(C, 2, B)``."""
        coef, level = self._of.predictors(theta)
        grouped = coef.reshape(self._together).astype(self._dtype, copy=False)
        product = np.matmul(grouped, batch[0].swapaxes(-1, -2))
        u = product.reshape(*level.shape, -1).astype(float, copy=False)
        u += level[..., None]
        return u

    def score(self, u: Array, batch: Any) -> Array:
        """Weighted gradient of each row's log likelihood in u."""
        score = self._of.likelihood.score(u, batch[1])
        return score * batch[2] if len(batch) > 2 else score

    def pullback(self, score: Array, batch: Any, out: Array | None = None) -> Array:
        """Gradient in theta ``(C, P)``: ``out``, or a new array."""
        grad = np.empty((len(score), self._of.n_params)) if out is None else out
        grouped = score.reshape(self._together).astype(self._dtype, copy=False)
        in_coef = np.matmul(grouped, batch[0])
        grad[...] = 0.0
        self._of.add_slope(in_coef.reshape(*score.shape[:2], -1), score.sum(axis=2), grad)
        return grad


class LogLinearNoisePosterior(GLMPosterior):
    """Posterior of a normal linear model whose log noise is linear in columns of X.

    ``theta`` holds the coefficients and the intercept of the mean, then ``2 alpha``, the slopes of
    the log variance, and last ``gamma = 2 alpha_0``, the log variance at the mean of the columns.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
    prior : CoefficientPrior
        Prior of the coefficients of the mean.
    noise_prior : NoisePrior
        Prior of the noise at the mean of the columns.
    columns : ndarray of int of shape (m,)
        Columns of X that the noise depends on.
    scale : "auto", float or ndarray of shape (m,), default="auto"
        Standard deviations of the prior of alpha; ``"auto"`` is 1 over the spread of a column.
    **options : dict
        Further parameters of :class:`GLMPosterior`.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        prior: CoefficientPrior,
        noise_prior: NoisePrior,
        columns: Array,
        scale: Any = "auto",
        **options: Any,
    ) -> None:
        if issparse(X):
            raise TypeError(
                "X is sparse, and noise_model='log_linear' takes dense columns; give "
                "X.toarray(), or noise_model='constant'."
            )
        super().__init__(X, y, HeteroscedasticGaussian(), prior, noise_prior, **options)
        self.noise_columns = columns
        self._noise_mean, spread = column_moments(X[:, columns], options.get("sample_weight"))
        alpha_prior = Normal(scale)
        alpha_prior.check(len(columns), "noise_model")
        known = alpha_prior.for_data(1.0, spread).get_params()["scale"]
        self.noise_scale = np.broadcast_to(np.asarray(known, dtype=float), len(columns))
        self._precision = 1.0 / np.square(2.0 * self.noise_scale)
        # the design is centred already, or has to be
        self._shift = np.zeros(len(columns)) if self.center is not None else self._noise_mean
        self._slopes = slice(self._n_linear, self._n_linear + len(columns))
        self.n_params += len(columns)
        features = [self.param_names[j].removeprefix("coef") for j in columns]
        names = [f"log_variance_slope{name}" for name in features]
        self.param_names[-1:] = [*names, "log_noise_variance"]
        if self.n_samples <= self.n_params:
            raise ValueError(
                f"the noise of {len(columns)} columns makes {self.n_params} parameters of "
                f"{self.n_samples} rows: the fit would find rows without any noise. Choose a few "
                "columns, noise_model=LogLinearNoise(columns=[...]), or noise_model='constant'."
            )
        self._reported = [f"noise_coef{name}" for name in features] + ["noise_intercept"]

    @property
    def parameterizations(self) -> tuple[str, ...]:
        """With few rows and normal priors also those in which the coefficients are normal."""
        few = self._few_rows and self.n_samples * self._n_linear**2 <= _INTEGRATED
        return ("centered", "noncentered") if few and self.linear_prior.normal else ("centered",)

    # ---- reported parameters --------------------------------------------------------------------

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters; the noise's are those of log sigma at X = 0."""
        return self.param_names[: self._n_linear] + self._reported

    def constrain(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta (S, P)``, in the same order."""
        values = self.reported_moves(theta)
        alpha = 0.5 * theta[:, self._slopes]
        values[:, self._slopes] = alpha
        values[:, -1] = 0.5 * theta[:, -1] - alpha @ self._noise_mean
        return values

    def unconstrain(self, values: Array) -> Array:
        """Theta ``(S, P)`` at the reported parameters."""
        theta, alpha = self._about_center(values), values[:, self._slopes]
        theta[:, self._slopes] = 2.0 * alpha
        theta[:, -1] = 2.0 * (values[:, -1] + alpha @ self._noise_mean)
        return theta

    def draw_prior(self, generators: list[np.random.Generator]) -> Array:
        """Reported parameters ``(C, P)`` from the prior; flat ones are 0, the noise that of y."""
        values = super().draw_prior(generators)
        alpha = [rng.standard_normal(len(self.noise_scale)) for rng in generators]
        values[:, self._slopes] = np.array(alpha) * self.noise_scale
        values[:, -1] = 0.5 * np.log(values[:, -1]) - values[:, self._slopes] @ self._noise_mean
        return values

    # ---- the log variance of each row -----------------------------------------------------------

    def _noise_design(self, design: Array) -> Array:
        """Columns ``(..., m)`` of the noise in rows of the design."""
        return design[..., self.noise_columns] - self._shift

    def _bind(self, X: Array, y: Array, weight: Array | None) -> None:
        super()._bind(X, y, weight)
        self._held: Array | None = None

    def _noise_rows(self, rows: slice) -> Array:
        """Columns of the noise in rows of the data, held where the design is."""
        if self._design is None:
            return self._noise_design(self.design(rows))
        if self._held is None:
            self._held = np.ascontiguousarray(self._noise_design(self._design))
        return self._held[rows]

    def local(self, theta: Array, rows: Rows) -> Array:
        """Mean and log variance of gathered rows ``(C, 2, B)``."""
        u = super().local(theta, rows)
        u[:, 1] += np.einsum("cbm,cm->cb", self._noise_design(rows.design), theta[:, self._slopes])
        return u

    def _local_block(self, theta: Array, rows: slice) -> Array:
        u = super()._local_block(theta, rows)
        slopes = np.ascontiguousarray(theta[:, self._slopes])
        u[:, 1] += matmul_rows(slopes, self._noise_rows(rows).T)
        return u

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' gradients in mean and log variance."""
        of_constant = super().pullback(score, rows)
        grad = np.empty((len(score), self.n_params))
        grad[:, : self._n_linear] = of_constant[:, :-1]
        Z = self._noise_design(rows.design)
        grad[:, self._slopes] = np.einsum("cbm,cb->cm", Z, score[:, 1])
        grad[:, -1] = of_constant[:, -1]
        return grad

    def _pullback_block(self, score: Array, rows: slice, grad: Array) -> None:
        super()._pullback_block(score, rows, grad)
        in_variance = np.ascontiguousarray(score[:, 1])
        grad[:, self._slopes] += matmul_rows(in_variance, self._noise_rows(rows))

    def gram(self, design: Array, local: Array, overwrite: bool = False) -> Array:
        """Sum over rows of ``A_i^T W_i A_i (P, P)``, where A_i maps theta to row i's u."""
        H = super().gram(design, local)
        Z, at = self._noise_design(design), self._slopes
        cross = (Z.T * local[0, 1]) @ design
        H[at, : self._n_linear], H[: self._n_linear, at] = cross, cross.T
        H[at, at] = weighted_gram(np.ascontiguousarray(Z), local[1, 1])
        H[at, -1] = H[-1, at] = local[1, 1] @ Z
        return H

    # ---- mean and log variance as two linear predictors of one design ---------------------------

    shares_batches = True

    def predictors(self, theta: Array) -> tuple[Array, Array]:
        """Coefficients ``(C, 2, d)`` of both at ``theta (C, P)``, and their levels at X = 0."""
        coef, level = np.zeros((len(theta), 2, self.n_features)), np.zeros((len(theta), 2))
        slopes = theta[:, self._slopes]
        coef[:, 0] = theta[:, : self.n_features]
        coef[:, 1, self.noise_columns] = slopes
        if self.fit_intercept:
            level[:, 0] = theta[:, self.n_features]
            if self.center is not None:
                # a dot product a chain rounds alike whatever the number of chains
                level[:, 0] -= np.vecdot(coef[:, 0], self.center)
        level[:, 1] = theta[:, -1] - np.vecdot(slopes, self._noise_mean)
        return coef, level

    def add_slope(self, in_coef: Array, in_level: Array, out: Array) -> None:
        """Add to ``out (C, P)`` the gradient, given that in both predictors' coefficients."""
        d = self.n_features
        out[:, :d] += in_coef[:, 0]
        if self.fit_intercept:
            out[:, d] += in_level[:, 0]
            if self.center is not None:
                out[:, :d] -= in_level[:, :1] * self.center
        out[:, self._slopes] += in_coef[:, 1, self.noise_columns]
        out[:, self._slopes] -= in_level[:, 1:] * self._noise_mean
        out[:, -1] += in_level[:, 1]

    def bind_batches(self, n_chains: int, batch_size: int, n_walkers: int = 1) -> BoundBatches:
        """Batches of rows for the chains of one run, in one thread."""
        return LogLinearBatches(self, n_chains, batch_size, n_walkers)

    def bind_grad(self, n_chains: int) -> Callable[[Array], Array]:
        """:meth:`grad` for ``theta (n_chains, P)``, for one run in one thread."""
        if n_chains % (self._group or n_chains):
            return lambda theta: self.grad_log_likelihood(theta) + self.grad_log_prior(theta)
        return lambda theta: self._value_and_slope(theta, self, self._dtype)[1]

    def bind_value_and_grad(
        self, n_chains: int, followed: BasePosterior | None = None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, in one pass also where ``followed`` has another prior."""
        followed = self if followed is None else followed
        if n_chains % (self._group or n_chains) or not isinstance(followed, GLMPosterior):
            return super().bind_value_and_grad(n_chains, followed)
        return lambda theta: self._value_and_slope(theta, followed, self._density_dtype)

    def _value_and_slope(
        self, theta: Array, followed: GLMPosterior, dtype: type
    ) -> tuple[Array, Array]:
        """Log density, and its gradient under the prior of another, by products of groups."""
        theta, size = theta.astype(float, copy=False), self._group or len(theta)
        value, grad = self.log_prior(theta), followed.grad_log_prior(theta)
        for first in range(0, len(theta), size):
            some = slice(first, first + size)
            add = partial(self._sum_of_value_and_slope, theta[some], dtype)
            for more, slope in in_threads(add, self._parts()):
                value[some] += more
                grad[some] += slope
        return value, grad

    def _sum_of_value_and_slope(
        self, theta: Array, dtype: type, blocks: list[slice]
    ) -> tuple[Array, Array]:
        """Log likelihood of some rows and its gradient, all positions in one product."""
        value, grad, (coef, level) = (
            np.zeros(len(theta)),
            np.zeros_like(theta),
            self.predictors(theta),
        )
        flat: Array = coef.reshape(-1, self.n_features).astype(dtype, copy=False)
        for rows in blocks:
            X: Array = self._in_dtype(rows, dtype)
            y: Array = self.y[rows].astype(dtype, copy=False)
            u = (flat @ X.T).reshape(*level.shape, -1)
            u += level[..., None].astype(dtype, copy=False)
            density, score = self.likelihood.value_and_score(u, y)
            if self.weight is not None:
                weight: Array = self.weight[rows].astype(dtype, copy=False)
                density, score = density * weight, score * weight
            value += density.sum(axis=1, dtype=float)
            in_coef = (score.reshape(-1, len(X)) @ X).reshape(coef.shape)
            self.add_slope(in_coef, score.sum(axis=2, dtype=float), grad)
        return value, grad

    def _in_dtype(self, rows: slice, dtype: type) -> Array:
        """Rows of X in a precision; in single precision, of a copy that is kept."""
        if dtype is np.float64:
            return self._block(rows)
        held = self._settled.get(dtype)
        if held is None:
            held = self._settled[dtype] = np.ascontiguousarray(self.X, dtype)
        return held[rows]

    def rounded(self, density: bool = False) -> LogLinearNoisePosterior:
        """Posterior whose gradient, or ``density`` too, is rounded; itself where it is no gain."""
        known, (least, most) = self._density_dtype if density else self._dtype, ROUNDED_NUMBERS
        if known is np.float32 or not least <= self.X.size <= most:
            return self
        other = copy(self)
        other._dtype, other._density_dtype = np.float32, np.float32 if density else np.float64
        return other

    def rough_curvature(self, theta: Array) -> Array | None:
        """None: mean and noise have products of their own."""
        return None

    @property
    def light_tailed(self) -> bool:
        """Whether the posterior is nearly normal: rows are many under a normal prior."""
        return self.prior.normal and self.prior.proper and not self._few_rows

    @property
    def _few_rows(self) -> bool:
        return self.n_samples < _FEW_ROWS * self.n_params

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Gradient and Hessian of the log likelihood at one ``theta (P,)``."""
        if curvature is None:
            return super().expand_likelihood(theta)
        return BasePosterior.expand_likelihood(self, theta, curvature)

    # ---- the prior of alpha ---------------------------------------------------------------------

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""
        slopes = theta[:, self._slopes]
        return super().log_prior(theta) - 0.5 * np.square(slopes) @ self._precision

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        grad = super().grad_log_prior(theta)
        grad[:, self._slopes] = -theta[:, self._slopes] * self._precision
        return grad

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add the curvature of the log prior at one ``theta (P,)`` to ``H (P, P)``."""
        super().add_prior_curvature(H, theta)
        at = np.arange(self.n_params)[self._slopes]
        H[at, at] += self._precision

    # ---- few rows per parameter -----------------------------------------------------------------

    def centered_normal(self, anyway: bool = False) -> tuple[Array, Array] | None:
        """Mean and precision of a normal near the posterior, the coefficients integrated out.

        None with many rows per parameter, where the mode serves as well; unless one is needed
        ``anyway``, since no mode was found.
        """
        if self.n_params > MAX_DENSE:
            return None
        if anyway:
            with one_blas_thread():
                return restricted_normal(self._averaged(None), within=np.inf)
        if not self._few_rows:
            return None
        with one_blas_thread():
            smooth = self._averaged(None)
            found = restricted_normal(smooth)
            for _ in range(_ROUNDS):
                if found is None or smooth is self:
                    break
                smooth = self._averaged(np.sqrt(np.diagonal(np.linalg.inv(found[1]))))
                found = restricted_normal(smooth, found[0])
        return found

    def _averaged(self, spread: Array | None) -> LogLinearNoisePosterior:
        smooth = self.smoothed(spread)
        assert isinstance(smooth, LogLinearNoisePosterior)
        return smooth

    def mean_and_noise(self, theta: Array) -> tuple[Array, Array, Array]:
        """Designs of the mean and of the log variance, each with a level, and the log variance."""
        rows = slice(0, self.n_samples)
        Z = np.column_stack([self._noise_rows(rows), np.ones(self.n_samples)])
        return self.design(rows), Z, Z @ theta[self._n_linear :]

    def prior_precision(self, theta: Array) -> Array:
        """Curvature of the log prior without what couples noise and coefficients."""
        H, L = np.zeros((self.n_params, self.n_params)), self._n_linear
        self.add_prior_curvature(H, theta)
        H[:L, L:] = H[L:, :L] = 0.0
        return H

    def curvature_factor(self, theta: Array) -> tuple[Array, Array | None]:
        """Diagonal ``(P,)`` of the curvature at one ``theta (P,)``, and no factor."""
        return BasePosterior.curvature_factor(self, theta)
