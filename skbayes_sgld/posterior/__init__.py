"""Posteriors to sample: of generalised linear models."""

from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.noise_models import (
    NOISE_MODELS,
    ConstantNoise,
    LogLinearNoise,
    NoiseModel,
)
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from skbayes_sgld.posterior.protocol import Posterior

__all__ = [
    "NOISE_MODELS",
    "ConstantNoise",
    "GLMPosterior",
    "HierarchicalPosterior",
    "ImproperPosteriorError",
    "LogLinearNoise",
    "NoiseModel",
    "Posterior",
]
