"""Priors of coefficients and of the noise, by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.priors.base import CoefficientPrior, Prior
from skbayes_sgld.priors.flat import Flat
from skbayes_sgld.priors.group import GroupPrior
from skbayes_sgld.priors.hierarchical import HierarchicalNormal, HierarchicalPrior
from skbayes_sgld.priors.horseshoe import Horseshoe
from skbayes_sgld.priors.location_scale import (
    Cauchy,
    ConjugateNormal,
    Laplace,
    LocationScale,
    Normal,
    StudentT,
)
from skbayes_sgld.priors.noise import (
    Exponential,
    FlatNoise,
    GammaPrior,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    InverseGamma,
    LogNormal,
    NoisePrior,
)

PRIORS: Registry[CoefficientPrior] = Registry(
    CoefficientPrior,
    normal=Normal,
    conjugate_normal=ConjugateNormal,
    laplace=Laplace,
    student_t=StudentT,
    cauchy=Cauchy,
    flat=Flat,
)

HIERARCHICAL_PRIORS: Registry[HierarchicalPrior] = Registry(
    HierarchicalPrior, hierarchical_normal=HierarchicalNormal, horseshoe=Horseshoe
)

GROUP_PRIORS: Registry[GroupPrior] = Registry(GroupPrior, half_student_t=GroupPrior)

NOISE_PRIORS: Registry[NoisePrior] = Registry(
    NoisePrior,
    inverse_gamma=InverseGamma,
    half_normal=HalfNormal,
    half_student_t=HalfStudentT,
    half_cauchy=HalfCauchy,
    exponential=Exponential,
    log_normal=LogNormal,
    gamma=GammaPrior,
    flat=FlatNoise,
)

__all__ = [
    "GROUP_PRIORS",
    "HIERARCHICAL_PRIORS",
    "NOISE_PRIORS",
    "PRIORS",
    "Cauchy",
    "CoefficientPrior",
    "ConjugateNormal",
    "Exponential",
    "Flat",
    "FlatNoise",
    "GammaPrior",
    "GroupPrior",
    "HalfCauchy",
    "HalfNormal",
    "HalfStudentT",
    "HierarchicalNormal",
    "HierarchicalPrior",
    "Horseshoe",
    "InverseGamma",
    "Laplace",
    "LocationScale",
    "LogNormal",
    "NoisePrior",
    "Normal",
    "Prior",
    "StudentT",
]
