"""A posterior in coordinates of its own, whose reported parameters are those of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.conflict import PriorConflict
from skbayes_sgld.posterior.glm import GLMPosterior

Array = NDArray[Any]


class Reparameterized(BasePosterior):
    """Base of posteriors in other coordinates phi; subclasses define the map and the density.

    Parameters
    ----------
    posterior : GLMPosterior
        The posterior in the model's own coordinates theta.
    temperature : float
        Temperature tau that the sampler is to use: the log Jacobian is multiplied by it.
    """

    def __init__(self, posterior: GLMPosterior, temperature: float) -> None:
        self.inner: Any = posterior
        self._temperature = temperature
        self.n_samples, self.n_params = posterior.n_samples, posterior.n_params
        self.total_weight = posterior.total_weight
        self.param_names, self.n_predictors = posterior.param_names, posterior.n_predictors
        self.coords, self.one_mode = posterior.coords, posterior.one_mode
        self.log_concave = posterior.log_concave

    def from_theta(self, theta: Array) -> Array:
        """Coordinates phi ``(C, P)`` of ``theta (C, P)``."""
        raise NotImplementedError

    def unconstrain(self, values: Array) -> Array:
        """Coordinates phi ``(C, P)`` of the reported parameters."""
        return self.from_theta(self.inner.unconstrain(values))

    def zeros(self) -> Array:
        """Point ``(P,)`` at which all coefficients are 0 and the noise variance is that of y."""
        return self.from_theta(self.inner.zeros()[None])[0]

    def draw_prior(self, generators: list[np.random.Generator]) -> Array | None:
        """Draws from the prior ``(C, P)``, as reported parameters."""
        return self.inner.draw_prior(generators)

    def prior_conflict(self, values: Array, sds: Array) -> PriorConflict | None:
        """How far prior and data are apart, by the mean and sds ``(n_constrained,)``."""
        return self.inner.prior_conflict(values, sds)

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters."""
        return self.inner.constrained_names
