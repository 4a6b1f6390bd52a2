"""The coordinates in which a model is sampled, where others than its own are better."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.parameterizations.noncentered import (
    NoncenteredPosterior,
    NormalNoncenteredPosterior,
)
from skbayes_sgld.posterior.parameterizations.row_space import RowSpacePosterior
from skbayes_sgld.sampling import Mode, find_mode
from skbayes_sgld.sampling.preconditioners.metric import Diagonal

_ROUNDS = 3  # the first ones find the noise level, the last is taken there


def shorten(posterior: GLMPosterior, temperature: float) -> GLMPosterior:
    """Return a model of more than 2,000 parameters in the space of its rows, if that is small.

    That takes a normal prior, no more than 2,000 rows, and fewer rows than columns; any other
    model is returned as it is.
    """
    few = posterior.n_samples <= min(posterior.n_features - 1, MAX_DENSE)
    normal = posterior.prior.normal and posterior.prior.proper
    if posterior.n_params > MAX_DENSE and few and normal:
        return RowSpacePosterior(posterior, temperature)
    return posterior


def noncenter(posterior: GLMPosterior, temperature: float) -> tuple[NoncenteredPosterior, Mode]:
    """Return a normal linear model with noise and coefficients decoupled, and its mode there.

    Under a normal prior the coordinates are standard normal but for the noise; the mode and the
    metric are then known: the origin and the identity.
    """
    start = posterior.start()
    gamma = float(start[-1])
    family = NormalNoncenteredPosterior if posterior.linear_prior.normal else NoncenteredPosterior
    for _ in range(_ROUNDS):
        center = find_mode(posterior.given_noise(float(np.exp(gamma))), start[:-1])
        decoupled = family(posterior, center.theta, center.root, gamma, temperature)
        start, gamma = np.append(center.theta, gamma), decoupled.noise_level
    P = posterior.n_params
    return decoupled, Mode(np.zeros(P), Diagonal(np.ones(P)))
