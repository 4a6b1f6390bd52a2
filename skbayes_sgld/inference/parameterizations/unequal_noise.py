"""Coordinates in which the coefficients under unequal noise are standard normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.inference.parameterizations.noncentered import Noncentered
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.unequal_noise import UnequalNoisePosterior
from skbayes_sgld.sampling.tuning.mode import Mode


class UnequalNoise(Noncentered):
    """Coefficients standardised given the noise of each row, for few rows and normal priors."""

    needs = "noise_model='log_linear' with few rows and normal priors"

    @classmethod
    def suits(cls, posterior: Any) -> bool:
        """Whether the noise is log-linear."""
        return isinstance(posterior, LogLinearNoisePosterior)

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[UnequalNoisePosterior, Mode | None]:  # type: ignore[override]
        """Posterior in these coordinates, and its centre."""
        return integrate_mean(posterior, settings.tau)


def integrate_mean(
    posterior: LogLinearNoisePosterior, temperature: float
) -> tuple[UnequalNoisePosterior, Mode | None]:
    """Linear model with unequal noise in coordinates of normal coefficients, and its centre."""
    transformed = UnequalNoisePosterior(posterior, temperature)
    moments = posterior.centered_normal() or posterior.centered_normal(anyway=True)
    if moments is None:
        return transformed, None
    center, precision = moments
    L = posterior.parameters.n_linear
    H = np.eye(len(center))
    H[L:, L:] = precision[L:, L:]
    center = np.append(np.zeros(L), center[L:])
    return transformed, Mode.from_curvature(center, H)
