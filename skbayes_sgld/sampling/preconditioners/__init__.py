"""Preconditioners by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Preconditioner
from skbayes_sgld.sampling.preconditioners.curvature import Curvature
from skbayes_sgld.sampling.preconditioners.identity import Identity
from skbayes_sgld.sampling.preconditioners.matrix import Matrix

PRECONDITIONERS: Registry[Preconditioner] = Registry(
    Preconditioner,
    none=Identity,
    curvature=Curvature,
)

__all__ = ["PRECONDITIONERS", "Curvature", "Identity", "Matrix", "Preconditioner"]
