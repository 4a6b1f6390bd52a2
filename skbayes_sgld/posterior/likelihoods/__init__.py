"""The likelihoods by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.posterior.likelihoods.base import Bernoulli, LabelLikelihood, Likelihood
from skbayes_sgld.posterior.likelihoods.categorical import Categorical
from skbayes_sgld.posterior.likelihoods.gaussian import (
    FixedGaussian,
    Gaussian,
    HeteroscedasticGaussian,
)
from skbayes_sgld.posterior.likelihoods.poisson import Poisson
from skbayes_sgld.posterior.likelihoods.rows import RowKernel

LIKELIHOODS: Registry[Likelihood] = Registry(
    Likelihood,
    gaussian=Gaussian,
    fixed_gaussian=FixedGaussian,
    heteroscedastic_gaussian=HeteroscedasticGaussian,
    bernoulli=Bernoulli,
    categorical=Categorical,
    poisson=Poisson,
)

__all__ = [
    "LIKELIHOODS",
    "Bernoulli",
    "Categorical",
    "FixedGaussian",
    "Gaussian",
    "HeteroscedasticGaussian",
    "LabelLikelihood",
    "Likelihood",
    "Poisson",
    "RowKernel",
]
