"""Starting points of a linear model: no effects at all, and draws from the prior."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.linear_prior import LinearPrior

Array = NDArray[Any]


class _LinearModel(Protocol):
    """The members of a generalised linear model that are used."""

    n_params: int
    likelihood: Likelihood
    linear_prior: LinearPrior

    def start(self) -> Array: ...
    def _linear(self, theta: Array) -> Array: ...


def zero_effects(posterior: _LinearModel) -> Array:
    """Point ``(P,)`` at which all coefficients are 0 and the noise variance is that of y."""
    theta = np.zeros(posterior.n_params)
    if posterior.likelihood.infers_noise:
        theta[-1] = posterior.start()[-1]
    return theta


def prior_draws(posterior: _LinearModel, generators: list[np.random.Generator]) -> Array:
    """Reported parameters ``(C, P)`` from the prior; flat ones are 0, the noise that of y."""
    values = np.zeros((len(generators), posterior.n_params))
    noise = 1.0
    if posterior.likelihood.infers_noise:
        noise = float(np.exp(posterior.start()[-1]))
        values[:, -1] = noise
    linear = posterior._linear(values)
    for c, rng in enumerate(generators):
        linear[c] = posterior.linear_prior.sample(rng, linear.shape[1:], noise)
    return values
