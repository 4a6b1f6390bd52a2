"""An own parameter of a likelihood by its quantiles, where its logarithm has a long tail.

As the dispersion of counts falls to 0, their likelihood becomes Poisson's: if the data do not
exclude this, the posterior of the log dispersion falls slowly, like its prior, to one side, and
steeply to the other. No step size suits both. The coordinate is then the normal quantile of the
distribution that the log dispersion has at the likeliest coefficients: it is nearly normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.kernel import RowKernel
from skbayes_sgld.likelihoods.own import first_if_equal
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior.glm import GLMPosterior, SharedSums
from skbayes_sgld.posterior.parameterizations.base import Affine
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    NormalQuantiles,
    normal_quantiles,
)
from skbayes_sgld.priors.noise import NoisePrior

_GRID = np.linspace(-8.0, 4.0, 25)  # sds about the mode; the tail of small values is the longer one


def in_quantiles(
    posterior: GLMPosterior, theta: Array, sd: float, temperature: float
) -> GLMPosterior | None:
    """Posterior whose own parameter is its normal quantile; None if they are not determined.

    Parameters
    ----------
    posterior : GLMPosterior
        Of a likelihood with one own parameter.
    theta : ndarray of shape (P,)
        Its mode.
    sd : float
        Standard deviation of the own parameter by the curvature there.
    temperature : float
        Temperature of the sampler, by which the log Jacobian is multiplied.
    """
    grid = theta[-1] + sd * _GRID
    positions = np.column_stack([np.tile(theta[:-1], (len(grid), 1)), grid])
    with one_blas_thread(), np.errstate(all="ignore"):
        value = posterior.log_density(positions)
    if not np.isfinite(value).all():
        return None
    spline = CubicSpline(grid, value)

    def log_density(t: Array) -> Array:
        inside = np.clip(t, grid[0], grid[-1])
        return spline(inside) + (t - inside) * spline(inside, 1)

    line = Affine(theta[-1:], np.array([[sd]]))
    quantiles = normal_quantiles(log_density, line, temperature)
    if not isinstance(quantiles, NormalQuantiles):
        return None
    prior = QuantilePrior(posterior.own_priors[0], quantiles, temperature)
    own = posterior.parameters["own"]
    likelihood = QuantileLikelihood(posterior.likelihood, quantiles)
    parameters = posterior.parameters.changed(replace(own, likelihood=likelihood, priors=(prior,)))
    return posterior._with(likelihood=likelihood, parameters=parameters, _sums=SharedSums())


class QuantileLikelihood(Likelihood):
    """A likelihood with one own parameter, of which the last local parameter is the quantile."""

    def __init__(self, likelihood: Likelihood, quantiles: NormalQuantiles) -> None:
        self.likelihood, self.quantiles = likelihood, quantiles
        self.own, self.n_predictors = likelihood.own, likelihood.n_predictors
        self.bounded_curvature, self.whole = likelihood.bounded_curvature, likelihood.whole
        self.totals, self.log_concave = likelihood.totals, likelihood.log_concave

    def bind(self, values: RowValues, dtype: type = np.float64) -> RowKernel:
        """Kernel of rows."""
        return _QuantileKernel(self.likelihood.bind(values, dtype), self.quantiles)

    def constrain_own(self, theta: Array) -> Array:
        """Own parameter ``(S, 1)`` at its quantile."""
        return self.likelihood.constrain_own(self.quantiles.derivatives(theta)[0])

    def unconstrain_own(self, values: Array) -> Array:
        """Quantile ``(S, 1)`` of the own parameter."""
        return self.quantiles.inverse(self.likelihood.unconstrain_own(values))

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Local parameters of a model without columns; the quantile is the median."""
        return np.append(self.likelihood.start(y, weight, has_level)[:-1], 0.0)

    def trial_weight(self, y: Array, weight: Array | None) -> Array | None:
        """Weights of the rows in observations."""
        return self.likelihood.trial_weight(y, weight)

    def rare(self, y: Array) -> Array | None:
        """Rows with rare observations."""
        return self.likelihood.rare(y)


class _QuantileKernel(RowKernel):
    """Kernel whose last local parameter is the quantile of another kernel's."""

    def __init__(self, kernel: RowKernel, quantiles: NormalQuantiles) -> None:
        self.kernel, self.quantiles = kernel, quantiles

    def __getitem__(self, at: Any) -> _QuantileKernel:
        """Kernel of some of the rows."""
        return _QuantileKernel(self.kernel[at], self.quantiles)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density and its derivatives, by the chain rule."""
        at = self.quantiles.derivatives(first_if_equal(u[:, -1]))
        own, slope, bend, _ = at.astype(u.dtype, copy=False)
        u[:, -1] = own
        by_order = dict(zip(orders, self.kernel.derivatives(u, *orders), strict=True))
        if 2 in by_order:  # always with order 1
            H = by_order[2]
            H[:, -1] *= slope[:, None]
            H[:, :, -1] *= slope[:, None]
            H[:, -1, -1] -= bend * by_order[1][:, -1]
        if 1 in by_order:
            by_order[1][:, -1] *= slope
        return [by_order[order] for order in orders]


class QuantilePrior(NoisePrior):
    """Prior of an own parameter as a density of its quantile.

    Parameters
    ----------
    prior : NoisePrior
    quantiles : NormalQuantiles
    temperature : float
        Factor of the log Jacobian, which tempering undoes.
    """

    def __init__(self, prior: NoisePrior, quantiles: NormalQuantiles, temperature: float) -> None:
        self.prior, self.quantiles, self.temperature = prior, quantiles, temperature
        self.proper = prior.proper

    def log_density(self, gamma: Array) -> Array:
        """Log density of the quantile up to a constant ``(C,)``."""
        own, slope, *_ = self.quantiles.derivatives(gamma)
        return self.prior.log_density(own) + self.temperature * np.log(slope)

    def grad(self, gamma: Array) -> Array:
        """Derivative of the log density ``(C,)``."""
        own, slope, bend, _ = self.quantiles.derivatives(gamma)
        return self.prior.grad(own) * slope + self.temperature * bend / slope

    def curvature(self, gamma: float) -> float:
        """Minus the second derivative of the log density at one quantile."""
        own, slope, bend, third = self.quantiles.derivatives(np.array([gamma]))
        of_prior = self.prior.curvature(float(own[0])) * slope**2 - self.prior.grad(own) * bend
        of_map = third / slope - np.square(bend / slope)
        return float((of_prior - self.temperature * of_map)[0])
