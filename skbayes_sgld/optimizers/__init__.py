"""Optimizers, projections onto convex sets, the climb by them, and estimators of the mode."""

from skbayes_sgld.optimizers.find import find_mode
from skbayes_sgld.optimizers.projections import PROJECTIONS, Ball, Box, Projection
from skbayes_sgld.optimizers.rules import (
    GD,
    OPTIMIZERS,
    SGD,
    AdaGrad,
    Adam,
    Momentum,
    Newton,
    Optimizer,
    RMSprop,
    SVRGDescent,
)

__all__ = [
    "GD",
    "OPTIMIZERS",
    "PROJECTIONS",
    "SGD",
    "AdaGrad",
    "Adam",
    "Ball",
    "Box",
    "Momentum",
    "Newton",
    "Optimizer",
    "Projection",
    "RMSprop",
    "SVRGDescent",
    "find_mode",
]
