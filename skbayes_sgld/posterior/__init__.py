"""Posteriors to sample, and what they are composed of: likelihoods, priors and transforms."""

from skbayes_sgld.posterior.boundary import as_posterior
from skbayes_sgld.posterior.checks import check_gradient
from skbayes_sgld.posterior.custom import CustomPosterior, FunctionPosterior
from skbayes_sgld.posterior.examples.stochastic_volatility import StochasticVolatility
from skbayes_sgld.posterior.examples.tied_mixture import TiedGaussianMixture
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.likelihoods import (
    LIKELIHOODS,
    Bernoulli,
    Binomial,
    Categorical,
    FixedGaussian,
    Gaussian,
    HeteroscedasticGaussian,
    LabelLikelihood,
    Likelihood,
    NegativeBinomial,
    OwnParameter,
    Poisson,
)
from skbayes_sgld.posterior.mlp import MLPPosterior
from skbayes_sgld.posterior.noise_models import (
    NOISE_MODELS,
    ConstantNoise,
    LogLinearNoise,
    NoiseModel,
)
from skbayes_sgld.posterior.priors import (
    HIERARCHICAL_PRIORS,
    NOISE_PRIORS,
    PRIORS,
    Cauchy,
    CoefficientPrior,
    ConjugateNormal,
    Exponential,
    Flat,
    FlatNoise,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    HierarchicalNormal,
    HierarchicalPrior,
    Horseshoe,
    InverseGamma,
    Laplace,
    NoisePrior,
    Normal,
    Prior,
    StudentT,
)
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from skbayes_sgld.posterior.protocol import Posterior
from skbayes_sgld.posterior.transforms import (
    TRANSFORMS,
    Coordinates,
    Interval,
    Positive,
    Transform,
)

__all__ = [
    "HIERARCHICAL_PRIORS",
    "LIKELIHOODS",
    "NOISE_MODELS",
    "NOISE_PRIORS",
    "PRIORS",
    "TRANSFORMS",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Cauchy",
    "CoefficientPrior",
    "ConjugateNormal",
    "ConstantNoise",
    "Coordinates",
    "CustomPosterior",
    "Exponential",
    "FixedGaussian",
    "Flat",
    "FlatNoise",
    "FunctionPosterior",
    "GLMPosterior",
    "Gaussian",
    "HalfCauchy",
    "HalfNormal",
    "HalfStudentT",
    "HeteroscedasticGaussian",
    "HierarchicalNormal",
    "HierarchicalPosterior",
    "HierarchicalPrior",
    "Horseshoe",
    "ImproperPosteriorError",
    "Interval",
    "InverseGamma",
    "Laplace",
    "LabelLikelihood",
    "Likelihood",
    "LogLinearNoise",
    "MLPPosterior",
    "NegativeBinomial",
    "NoiseModel",
    "NoisePrior",
    "Normal",
    "OwnParameter",
    "Poisson",
    "Positive",
    "Posterior",
    "Prior",
    "StochasticVolatility",
    "StudentT",
    "TiedGaussianMixture",
    "Transform",
    "as_posterior",
    "check_gradient",
]
