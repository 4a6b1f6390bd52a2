"""What is sampled: likelihoods, priors, and the posteriors they make with data."""

from skbayes_sgld.posterior.base import Posterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.heavy_tails import Cauchy, StudentT
from skbayes_sgld.posterior.likelihoods import (
    LIKELIHOODS,
    Bernoulli,
    Categorical,
    FixedGaussian,
    Gaussian,
    Likelihood,
)
from skbayes_sgld.posterior.mlp import MLPPosterior
from skbayes_sgld.posterior.noise_priors import (
    NOISE_PRIORS,
    Exponential,
    FlatNoise,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    InverseGamma,
    NoisePrior,
)
from skbayes_sgld.posterior.priors import (
    PRIORS,
    CoefficientPrior,
    ConjugateNormal,
    Flat,
    Laplace,
    Normal,
)
from skbayes_sgld.posterior.propriety import ImproperPosteriorError, check_mode, check_propriety

__all__ = [
    "LIKELIHOODS",
    "NOISE_PRIORS",
    "PRIORS",
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "CoefficientPrior",
    "ConjugateNormal",
    "Exponential",
    "FixedGaussian",
    "Flat",
    "FlatNoise",
    "GLMPosterior",
    "Gaussian",
    "HalfCauchy",
    "HalfNormal",
    "HalfStudentT",
    "ImproperPosteriorError",
    "InverseGamma",
    "Laplace",
    "Likelihood",
    "MLPPosterior",
    "NoisePrior",
    "Normal",
    "Posterior",
    "StudentT",
    "check_mode",
    "check_propriety",
]
