"""The coordinates in which a normal linear model is sampled."""

from __future__ import annotations

import numpy as np

from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.decoupled import DecoupledPosterior, NormalDecoupledPosterior
from skbayes_sgld.sampling import Mode, find_mode
from skbayes_sgld.sampling.metric import Diagonal

_ROUNDS = 3  # the first ones find the noise level, the last is taken there


def decouple(posterior: GLMPosterior, temperature: float) -> tuple[DecoupledPosterior, Mode]:
    """Return a normal linear model with noise and coefficients decoupled, and its mode there.

    Under a normal prior the coordinates are standard normal but for the noise; the mode and the
    metric are then known: the origin and the identity.
    """
    start = posterior.start()
    gamma = float(start[-1])
    family = NormalDecoupledPosterior if posterior.prior.normal else DecoupledPosterior
    for _ in range(_ROUNDS):
        center = find_mode(posterior.given_noise(float(np.exp(gamma))), start[:-1])
        decoupled = family(posterior, center.theta, center.root, gamma, temperature)
        start, gamma = np.append(center.theta, gamma), decoupled.noise_level
    P = posterior.n_params
    return decoupled, Mode(np.zeros(P), Diagonal(np.ones(P)))
