"""Variational inference: approximations of any posterior, by optimisation or by sampling."""

from skbayes_sgld.variational.backprop import BayesByBackprop
from skbayes_sgld.variational.elbo import VariationalPosterior
from skbayes_sgld.variational.families import (
    FAMILIES,
    Family,
    FullRank,
    GammaFamily,
    Isotropic,
    MeanField,
)

__all__ = [
    "FAMILIES",
    "BayesByBackprop",
    "Family",
    "FullRank",
    "GammaFamily",
    "Isotropic",
    "MeanField",
    "VariationalPosterior",
]
