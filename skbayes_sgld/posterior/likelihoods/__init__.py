"""The likelihoods by name, one file a family."""

from skbayes_sgld._components import Registry
from skbayes_sgld.posterior.likelihoods.base import Likelihood
from skbayes_sgld.posterior.likelihoods.bernoulli import Bernoulli
from skbayes_sgld.posterior.likelihoods.categorical import Categorical
from skbayes_sgld.posterior.likelihoods.gaussian import FixedGaussian, Gaussian

LIKELIHOODS: Registry[Likelihood] = Registry(
    Likelihood,
    gaussian=Gaussian,
    fixed_gaussian=FixedGaussian,
    bernoulli=Bernoulli,
    categorical=Categorical,
)

__all__ = ["LIKELIHOODS", "Bernoulli", "Categorical", "FixedGaussian", "Gaussian", "Likelihood"]
