"""Coordinates in which the noise and the coefficients of a normal linear model are independent."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.inference.parameterizations.base import Parameterization, takes_metric_and_rows
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.noncentered import noncentered
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode, newton_mode

# Distance of a log noise variance from the level at which coordinates lose no digits: exp(4) is 55
_SAME_DIGITS = 4.0


class Noncentered(Parameterization):
    """Coefficients standardised given the noise, for normal likelihoods whose noise is inferred."""

    needs = "a normal likelihood whose constant noise is inferred"

    @classmethod
    def suits(cls, posterior: Any) -> bool:
        """Whether sufficient statistics are enough, and the prior learns no scale."""
        return posterior.likelihood.quadratic and not posterior.facts.hierarchical

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str | None:
        """They are taken unless settings refer to the coefficients themselves."""
        independent = "noise and coefficients are then independent"
        return independent if takes_metric_and_rows(settings) else None

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[Reparameterized, Mode]:
        """Posterior in these coordinates, and its mode there."""
        return noncenter(posterior, settings.tau)


def noncenter(posterior: GLMPosterior, temperature: float) -> tuple[Reparameterized, Mode]:
    """Normal linear model in non-centered coordinates, and its mode there.

    Under a normal prior all coordinates but the noise are standard normal: the mode is the origin
    and the metric the identity.
    """
    start, spread = posterior.start(), None
    gamma, prior = float(start[-1]), posterior.linear_prior
    # if the noise scales all priors, mode and coordinates do not depend on its level; otherwise two
    # rounds find the level, and the third uses it
    for _ in range(1 if prior.follows_noise else 3):
        conditional = posterior.given_own(np.array([gamma]))
        center = newton_mode(conditional, start[:-1], spread=spread)
        root = center.metric.root
        transformed, line = noncentered(posterior, center.theta, root, gamma, temperature)
        # any level gives the same posterior; under normal priors, also the same coordinates
        near = _SAME_DIGITS if prior.normal else 0.01 * line.root[0, 0]
        if abs(line.level[0] - gamma) < near:
            break
        start, spread = np.append(center.theta, gamma), center.metric.marginal_sd
        gamma = float(line.level[0])
    P = posterior.n_params
    return transformed, Mode(np.zeros(P), Diagonal(np.ones(P)))
