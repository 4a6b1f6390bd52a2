"""The likelihoods by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.likelihoods.base import LabelLikelihood, Likelihood
from skbayes_sgld.likelihoods.bernoulli import Bernoulli
from skbayes_sgld.likelihoods.beta_binomial import BetaBinomial
from skbayes_sgld.likelihoods.binomial import Binomial, as_totals
from skbayes_sgld.likelihoods.categorical import Categorical
from skbayes_sgld.likelihoods.gamma import Gamma
from skbayes_sgld.likelihoods.given_own import GivenOwn
from skbayes_sgld.likelihoods.kernel import RowKernel, with_offset_and_weight
from skbayes_sgld.likelihoods.negative_binomial import NegativeBinomial
from skbayes_sgld.likelihoods.normal import (
    FixedNormalNoise,
    NormalNoise,
    UnequalNormalNoise,
)
from skbayes_sgld.likelihoods.ordinal import Ordinal
from skbayes_sgld.likelihoods.own import OwnParameter
from skbayes_sgld.likelihoods.poisson import Poisson
from skbayes_sgld.likelihoods.student_t import StudentTNoise

LIKELIHOODS: Registry[Likelihood] = Registry(
    Likelihood,
    normal=NormalNoise,
    fixed_normal=FixedNormalNoise,
    unequal_normal=UnequalNormalNoise,
    student_t=StudentTNoise,
    bernoulli=Bernoulli,
    binomial=Binomial,
    beta_binomial=BetaBinomial,
    categorical=Categorical,
    ordinal=Ordinal,
    poisson=Poisson,
    gamma=Gamma,
    negative_binomial=NegativeBinomial,
)

__all__ = [
    "LIKELIHOODS",
    "Bernoulli",
    "BetaBinomial",
    "Binomial",
    "Categorical",
    "FixedNormalNoise",
    "Gamma",
    "NormalNoise",
    "GivenOwn",
    "UnequalNormalNoise",
    "RowKernel",
    "LabelLikelihood",
    "Likelihood",
    "NegativeBinomial",
    "Ordinal",
    "OwnParameter",
    "Poisson",
    "StudentTNoise",
    "with_offset_and_weight",
    "as_totals",
]
