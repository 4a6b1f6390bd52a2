r"""Models of the noise of a normal regression: constant, or log-linear in columns of X.

.. math:: y_i \sim N(x_i \beta + b, \sigma_i^2), \quad
    \log \sigma_i = \alpha_0 + (z_i - \bar z) \alpha, \quad \alpha_j \sim N(0, s_j^2),

with z some columns of X. At their mean the noise is :math:`\exp(\alpha_0)`. The noise prior is a
prior of the noise there, which is also the unit of priors that the noise scales, so that
:math:`\alpha = 0` is the model of constant noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._checks import check_array_or_number, column_position
from skbayes_sgld._components import Component, Registry
from skbayes_sgld._linalg import (
    MAX_DENSE,
    column_moments,
    inverse_root,
    one_blas_thread,
)
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.coefficient_maps import ByBlock
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameters import NoiseSlopes
from skbayes_sgld.posterior.protocol import Facts
from skbayes_sgld.priors import CoefficientPrior, NoisePrior, Normal

NoisePriors = NoisePrior | Sequence[NoisePrior]

# squared distance to the centre, in sds, that is accepted if a search does not converge
_NEAR = 0.1


class NoiseModel(Component):
    """Model of the noise of a normal regression, which may vary from row to row.

    Attributes
    ----------
    constant : bool
        Whether the noise is the same in every row.
    """

    constant = False

    def bind(
        self,
        X: Array,
        y: Array,
        likelihood: Likelihood,
        prior: CoefficientPrior,
        own_priors: NoisePriors,
        **options: Any,
    ) -> GLMPosterior:
        """Posterior with this noise, if it is not constant; ``options`` are GLMPosterior's."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class ConstantNoise(NoiseModel):
    """Noise of the same standard deviation in every row.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> SGLDLinearRegression(noise_model="constant")
    SGLDLinearRegression()
    """

    constant = True


@dataclass(eq=False, repr=False)
class LogLinearNoise(NoiseModel):
    r"""Noise whose log standard deviation is linear in columns of X.

    .. math:: \log \sigma_i = \alpha_0 + z_i \alpha, \quad \alpha_j \sim N(0, s_j^2).

    ``noise_prior`` is the prior of the noise at the mean of the columns. That noise is also the
    unit of ``prior="conjugate_normal"``: with ``alpha = 0`` the model has constant noise.

    Parameters
    ----------
    columns : "all" or sequence of str or int, default="all"
        Columns of X on which the noise depends: names or positions.
    scale : "auto", float or array-like of shape (n_columns,), default="auto"
        Standard deviations s of the prior. ``"auto"`` is ``1 / sd(x_j)``, so that one standard
        deviation of a column changes the noise by a typical factor of e. A column of two values
        has their difference in place of the standard deviation.

    Notes
    -----
    Each column has a coefficient of the mean and one of the noise. With few rows per coefficient,
    some rows may be fitted almost without noise. Under normal priors the coefficients of the mean
    are then integrated out exactly (``parameterization="noncentered"``). Under other priors chains
    mix badly, and the fit warns.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.posterior import LogLinearNoise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.0, 2.0, (400, 2))
    >>> y = X[:, 1] + np.exp(X[:, 0]) * rng.standard_normal(400)
    >>> model = SGLDLinearRegression(noise_model=LogLinearNoise(columns=[0]), random_state=0)
    >>> print(model.fit(X, y).noise_coef_.round(1))
    [1.]
    """

    columns: Any = "all"
    scale: Any = "auto"

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        if isinstance(self.columns, str):
            if self.columns != "all":
                raise ValueError(
                    f"noise_model.columns={self.columns!r} is not accepted; give 'all', or a list "
                    "of names or positions of columns."
                )
        elif not np.size(np.asarray(self.columns, dtype=object)):
            raise ValueError(
                "noise_model.columns is empty; give a column at least, or noise_model='constant'."
            )
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            check_array_or_number(self.scale, "noise_model.scale", None, positive=True)

    def bind(
        self,
        X: Array,
        y: Array,
        likelihood: Likelihood,
        prior: CoefficientPrior,
        own_priors: NoisePriors,
        **options: Any,
    ) -> GLMPosterior:
        """Posterior of the regression with this noise."""
        if not likelihood.infers_noise:
            raise ValueError(
                "noise_variance fixes the noise variance of every row, and noise_model="
                f"{self!r} infers it; set noise_variance='infer' or noise_model='constant'."
            )
        columns = self._positions(X.shape[1], options.get("feature_names"))
        unequal = likelihood.with_unequal_noise()
        return LogLinearNoisePosterior(
            X, y, unequal, prior, own_priors, columns, self.scale, **options
        )

    def _positions(self, d: int, names: Sequence[str] | None) -> Array:
        """Positions of the columns among the d of X, which may have names."""
        if isinstance(self.columns, str):
            return np.arange(d)
        columns = np.ravel(np.asarray(self.columns, dtype=object))
        positions = [column_position(c, d, names, "noise_model.columns") for c in columns]
        if len(set(positions)) < len(positions):
            raise ValueError(f"noise_model.columns={self.columns!r} names a column twice.")
        return np.array(positions)


NOISE_MODELS: Registry[NoiseModel] = Registry(
    NoiseModel, constant=ConstantNoise, log_linear=LogLinearNoise
)


class LogLinearNoisePosterior(GLMPosterior):
    """Posterior of a linear model whose log noise is linear in columns of X.

    ``theta`` holds the coefficients and the intercept of the mean, then ``2 alpha``, the slopes of
    the log variance, then ``gamma = 2 alpha_0``, the log variance at the mean of the columns, and
    last the coordinates of the likelihood's other own parameters.

    Parameters
    ----------
    X, y : ndarray of shape (n, d) and (n,)
    likelihood : Likelihood
        Likelihood whose first own parameter is the noise variance, which may differ by row.
    prior : CoefficientPrior
        Prior of the coefficients of the mean.
    own_priors : NoisePrior or sequence of NoisePrior
        Prior of the noise at the mean of the columns, and of the other own parameters.
    columns : ndarray of int of shape (m,)
        Columns of X on which the noise depends.
    scale : "auto", float or ndarray of shape (m,), default="auto"
        Standard deviations of the prior of alpha; ``"auto"`` is 1 over the spread of a column.
    **options : dict
        Further parameters of :class:`GLMPosterior`.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        likelihood: Likelihood,
        prior: CoefficientPrior,
        own_priors: NoisePriors,
        columns: Array,
        scale: Any = "auto",
        **options: Any,
    ) -> None:
        if issparse(X):
            raise TypeError(
                "X is sparse, and noise_model='log_linear' takes dense columns; give "
                "X.toarray(), or noise_model='constant'."
            )
        super().__init__(X, y, likelihood, prior, own_priors, **options)
        mean, spread = column_moments(X[:, columns], options.get("sample_weight"))
        alpha_prior = Normal(scale)
        alpha_prior.check(len(columns), "noise_model")
        scale = alpha_prior.for_data(1.0, spread).get_params()["scale"]
        scale = np.broadcast_to(np.asarray(scale, dtype=float), len(columns))
        features = [self.param_names[j].removeprefix("coef") for j in columns]
        self.slopes = NoiseSlopes(mean, scale, features, columns)
        self.parameters = self.parameters.plus(self.slopes)
        if self.n_samples <= self.n_params:
            most = self.n_samples - 1 - (self.n_params - len(columns))
            fewer = f"choose at most {most} of them by LogLinearNoise(columns=[...]), or "
            raise ValueError(
                "noise_model='log_linear' gives the noise a coefficient for each of "
                f"{len(columns)} columns, which makes {self.n_params} parameters of "
                f"{self.n_samples} rows: the fit would find rows without any noise; "
                f"{fewer * (most > 0)}set noise_model='constant'."
            )

    def _parameterizations(self) -> tuple[str, ...]:
        # with few rows and normal priors, also coordinates in which the coefficients are normal; a
        # step then takes rows times squared coefficients multiplications for each chain
        few = self._few_rows and self.n_samples * self.parameters.n_linear**2 <= 2**17
        normal = self.n_own == 1 and self.linear_prior.normal
        return ("centered", "noncentered") if few and normal else ("centered",)

    def _coefficient_map(self) -> ByBlock:
        """Mean and log variance as two predictors of one design."""
        return ByBlock(self.parameters, self._shift)

    @property
    def _shift(self) -> Array:
        """Values of the noise's columns, in the design, at which theta has the level."""
        # the design is centred, or is centred here
        return np.zeros(len(self.slopes.mean)) if self.x_mean is not None else self.slopes.mean

    def _facts(self) -> Facts:
        # with many rows it is nearly normal; given the level of the noise it is not of one mode
        light = self.prior.normal and self.prior.proper and not self._few_rows
        unequal = self._condensable()
        return replace(
            super()._facts(),
            n_own=0,
            light_tailed=light,
            shares_batches=True,
            unequal_noise=unequal,
        )

    def _condensable(self) -> bool:
        return self._has_many_rows() and not self._few_rows

    @property
    def _few_rows(self) -> bool:
        return self.n_samples < 20 * self.n_params  # the joint mode is then far from the centre

    # ---- few rows per parameter -----------------------------------------------------------------

    def centered_normal(self, anyway: bool = False) -> tuple[Array, Array] | None:
        """Mean and precision of a normal near the posterior, with the coefficients integrated out.

        None with many rows per parameter, as the mode is then a good centre, unless with
        ``anyway``, since no mode was found. Always None if the noise is not normal.
        """
        if self.n_own > 1 or self.n_params > MAX_DENSE or not (anyway or self._few_rows):
            return None
        with one_blas_thread():
            smooth = self.averaged_over(None)
            moments = restricted_normal(smooth, within=np.inf if anyway else _NEAR)
            for _ in range(0 if anyway else 3):  # each with the width that the last one found
                if moments is None or smooth is self:
                    break
                smooth = self.averaged_over(np.sqrt(np.diagonal(np.linalg.inv(moments[1]))))
                moments = restricted_normal(smooth, moments[0])
        return moments

    def mean_and_noise(self, theta: Array) -> tuple[Array, Array, Array]:
        """Designs of the mean and of the log variance, both with a level, and the log variance."""
        rows = slice(0, self.n_samples)
        design = self.row_sum().design.block(rows)
        Z = design.take([*self.slopes.columns, -1], axis=1)
        Z[:, :-1] -= self._shift
        log_variance = Z @ theta[self.parameters.n_linear :]
        if self.n_averaged is not None:
            log_variance -= np.log(self.n_averaged)
        return design[:, : self.linear_prior.width], Z, log_variance

    def prior_precision(self, theta: Array) -> Array:
        """Curvature of the log prior without cross terms of noise and coefficients."""
        H, L = np.zeros((self.n_params, self.n_params)), self.parameters.n_linear
        self.add_prior_curvature(H, theta)
        H[:L, L:] = H[L:, :L] = 0.0
        return H

    curvature_factor = BasePosterior.curvature_factor


def restricted_normal(
    posterior: LogLinearNoisePosterior, start: Array | None = None, within: float = _NEAR
) -> tuple[Array, Array] | None:
    """Mean and precision of a normal distribution near the posterior; None if none is found.

    With few rows per parameter the joint mode is no centre: the coefficients fit some rows so
    closely that their noise goes to zero. The coefficients are therefore integrated out, as in
    restricted maximum likelihood, by scoring (Smyth & Verbyla 1999): with the leverages h of the
    weighted regression, the score of a row's log variance is ``(r^2 / sigma^2 - (1 - h)) / 2`` and
    its information ``(1 - h)^2 / 2``.

    If the search does not converge, the best point is returned, provided that its squared distance
    to the centre, in sds, is below ``within``.
    """
    theta = posterior.start() if start is None else start.copy()
    weight = 1.0 if posterior.weight is None else posterior.weight
    scaled = posterior.linear_prior.part(scaled_by_noise=True)
    # steps by the expected information overshoot
    damping, last_step, least = 0.7, None, within
    nearest: tuple[Array, Array] | None = None
    for _ in range(300):  # 45 rows of 15 columns take 43; with binary columns and y, 190
        design, Z, log_variance = posterior.mean_and_noise(theta)
        L, H = design.shape[1], posterior.prior_precision(theta)
        in_noise = np.zeros((L, L))  # curvature of the priors in units of the noise at the centre
        scaled.add_curvature(in_noise, *posterior.parameters.at_one(theta))
        precision = weight * np.exp(-log_variance)
        H[:L, :L] += (design.T * precision) @ design
        try:
            root = inverse_root(H[:L, :L])
            theta[:L] += root @ (root.T @ posterior.grad(theta[None])[0, :L])
            grad = posterior.grad(theta[None])[0, L:]
            leverage = precision * np.square(design @ root).sum(axis=1)
            share = np.clip(1.0 - leverage, 0.0, 1.0)
            H[L:, L:] += (Z.T * (0.5 * weight * np.square(share))) @ Z
            grad += 0.5 * leverage @ Z
            if in_noise.any():
                grad[-1] += 0.5 * float(np.sum(root * (in_noise @ root)))
            noise_root = inverse_root(H[L:, L:])
        except np.linalg.LinAlgError:
            break
        step = noise_root @ (noise_root.T @ grad)
        distance = float(grad @ step)
        if not np.isfinite(distance):
            break
        if distance < least:
            least, nearest = distance, (theta.copy(), H)
        if distance < 1e-3:
            break
        overshot = last_step is not None and float(grad @ last_step) < 0.0
        damping = 0.7 * damping if overshot else min(1.1 * damping, 0.7)
        # log variances move by at most 1
        last_step = step * min(damping, 1.0 / np.abs(Z @ step).max())
        theta[L:] += last_step
    return nearest
