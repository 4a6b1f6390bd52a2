"""Preconditioners by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.preconditioners.given import Identity, Matrix
from skbayes_sgld.sampling.protocol import Curvature, Preconditioner

PRECONDITIONERS: Registry[Preconditioner] = Registry(
    Preconditioner,
    none=Identity,
    curvature=Curvature,
)

__all__ = ["PRECONDITIONERS", "Curvature", "Identity", "Matrix", "Preconditioner"]
