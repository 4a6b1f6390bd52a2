"""Models of the noise of a normal regression, by name: constant, or log-linear in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._checks import check_array_or_number
from skbayes_sgld._components import Component, Registry
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.likelihoods import HeteroscedasticGaussian, Likelihood
from skbayes_sgld.posterior.log_linear_noise import LogLinearNoisePosterior
from skbayes_sgld.posterior.priors import CoefficientPrior, NoisePrior

Array = NDArray[Any]
OwnPriors = NoisePrior | Sequence[NoisePrior]


class NoiseModel(Component):
    """Model of how the noise of a normal regression varies from row to row.

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
        own_priors: OwnPriors,
        **options: Any,
    ) -> GLMPosterior:
        """Posterior with this noise, by default a constant; ``options`` are GLMPosterior's."""
        return GLMPosterior(X, y, likelihood, prior, own_priors, **options)


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
        Columns of X that the noise depends on: names, or positions.
    scale : "auto", float or array-like of shape (n_columns,), default="auto"
        Standard deviations s of the prior. ``"auto"`` is ``1 / sd(x_j)``, so that one standard
        deviation of a column changes the noise by a typical factor of e. For a column of two
        values their difference stands for the standard deviation.

    Notes
    -----
    Each column has a coefficient of the mean and one of the noise. With few rows per coefficient
    some rows may be fitted nearly without noise. Under normal priors the coefficients of the mean
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
        """Raise where a parameter is out of range."""
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
        own_priors: OwnPriors,
        **options: Any,
    ) -> GLMPosterior:
        """Posterior of the regression with this noise."""
        if not likelihood.infers_noise:
            raise ValueError(
                "noise_variance fixes the noise variance of every row, and noise_model="
                f"{self!r} infers it; set noise_variance='infer' or noise_model='constant'."
            )
        columns = self._positions(X.shape[1], options.get("feature_names"))
        by_row = HeteroscedasticGaussian() if likelihood.quadratic else likelihood
        priors = prior, own_priors
        return LogLinearNoisePosterior(X, y, by_row, *priors, columns, self.scale, **options)

    def _positions(self, d: int, names: Sequence[str] | None) -> Array:
        if isinstance(self.columns, str):
            return np.arange(d)
        listed = np.ravel(np.asarray(self.columns, dtype=object))
        found = [_position(column, d, names) for column in listed]
        if len(set(found)) < len(found):
            raise ValueError(f"noise_model.columns={self.columns!r} names a column twice.")
        return np.array(found)


def _position(column: Any, d: int, names: Sequence[str] | None) -> int:
    """Position of a column that a user named."""
    if isinstance(column, str):
        if column in (names or ()):
            return list(names or ()).index(column)
        known = ", ".join(map(repr, names or ())) or "none, X being an array"
        raise ValueError(f"noise_model.columns has {column!r}; the names in X are {known}.")
    if not isinstance(column, (int, np.integer)) or isinstance(column, bool):
        raise TypeError(f"noise_model.columns has {column!r}; give names or whole numbers.")
    if not -d <= column < d:
        raise ValueError(f"noise_model.columns has {column!r}; X has {d} columns.")
    return int(column) % d


NOISE_MODELS: Registry[NoiseModel] = Registry(
    NoiseModel, constant=ConstantNoise, log_linear=LogLinearNoise
)
