"""Variational inference: normal approximations of any posterior, optimised or sampled."""

from skbayes_sgld.variational.backprop import BayesByBackprop
from skbayes_sgld.variational.elbo import VariationalPosterior
from skbayes_sgld.variational.families import FAMILIES, Family, FullRank, Isotropic, MeanField

__all__ = [
    "FAMILIES",
    "BayesByBackprop",
    "Family",
    "FullRank",
    "Isotropic",
    "MeanField",
    "VariationalPosterior",
]
