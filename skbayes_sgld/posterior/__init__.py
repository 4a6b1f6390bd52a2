"""Posteriors to sample: of linear models, of networks, and of users' own densities."""

from skbayes_sgld.posterior.boundary import CustomPosterior, FunctionPosterior, as_posterior
from skbayes_sgld.posterior.checks import check_gradient
from skbayes_sgld.posterior.examples.stochastic_volatility import StochasticVolatility
from skbayes_sgld.posterior.examples.tied_mixture import TiedGaussianMixture
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.mlp import MLPPosterior
from skbayes_sgld.posterior.noise_models import (
    NOISE_MODELS,
    ConstantNoise,
    LogLinearNoise,
    NoiseModel,
)
from skbayes_sgld.posterior.parameterizations.elementwise import Coordinates
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from skbayes_sgld.posterior.protocol import Posterior

__all__ = [
    "NOISE_MODELS",
    "ConstantNoise",
    "Coordinates",
    "CustomPosterior",
    "FunctionPosterior",
    "GLMPosterior",
    "HierarchicalPosterior",
    "ImproperPosteriorError",
    "LogLinearNoise",
    "MLPPosterior",
    "NoiseModel",
    "Posterior",
    "StochasticVolatility",
    "TiedGaussianMixture",
    "as_posterior",
    "check_gradient",
]
