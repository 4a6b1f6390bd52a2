"""Priors of coefficients and of the noise, by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.posterior.priors.base import CoefficientPrior
from skbayes_sgld.posterior.priors.flat import Flat
from skbayes_sgld.posterior.priors.laplace import Laplace
from skbayes_sgld.posterior.priors.noise import (
    Exponential,
    FlatNoise,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    InverseGamma,
    NoisePrior,
)
from skbayes_sgld.posterior.priors.normal import ConjugateNormal, Normal
from skbayes_sgld.posterior.priors.student_t import Cauchy, StudentT


class _Priors(Registry[CoefficientPrior]):
    """A registry whose errors name the argument: the priors serve slopes and intercepts."""

    def check(self, component: CoefficientPrior, argument: str) -> None:
        component.check(argument=argument)


PRIORS: Registry[CoefficientPrior] = _Priors(
    CoefficientPrior,
    normal=Normal,
    conjugate_normal=ConjugateNormal,
    laplace=Laplace,
    student_t=StudentT,
    cauchy=Cauchy,
    flat=Flat,
)

NOISE_PRIORS: Registry[NoisePrior] = Registry(
    NoisePrior,
    inverse_gamma=InverseGamma,
    half_normal=HalfNormal,
    half_student_t=HalfStudentT,
    half_cauchy=HalfCauchy,
    exponential=Exponential,
    flat=FlatNoise,
)

__all__ = [
    "NOISE_PRIORS",
    "PRIORS",
    "Cauchy",
    "CoefficientPrior",
    "ConjugateNormal",
    "Exponential",
    "Flat",
    "FlatNoise",
    "HalfCauchy",
    "HalfNormal",
    "HalfStudentT",
    "InverseGamma",
    "Laplace",
    "NoisePrior",
    "Normal",
    "StudentT",
]
