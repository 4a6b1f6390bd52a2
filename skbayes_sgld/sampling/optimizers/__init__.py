"""Optimizers by name, averages of their iterates, and projections."""

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.optimizers.averaging import Averaged
from skbayes_sgld.sampling.optimizers.projections import (
    PROJECTIONS,
    Ball,
    BoundProjection,
    Box,
    Projected,
    Projection,
)
from skbayes_sgld.sampling.optimizers.rules import (
    GD,
    SGD,
    AdaGrad,
    Adam,
    Momentum,
    Newton,
    Optimizer,
    RMSprop,
    SVRGDescent,
)

OPTIMIZERS: Registry[Optimizer] = Registry(
    Optimizer,
    gd=GD,
    sgd=SGD,
    momentum=Momentum,
    svrg=SVRGDescent,
    adagrad=AdaGrad,
    rmsprop=RMSprop,
    adam=Adam,
    newton=Newton,
)

__all__ = [
    "GD",
    "OPTIMIZERS",
    "PROJECTIONS",
    "SGD",
    "AdaGrad",
    "Adam",
    "Averaged",
    "Ball",
    "BoundProjection",
    "Box",
    "Momentum",
    "Newton",
    "Optimizer",
    "Projected",
    "Projection",
    "RMSprop",
    "SVRGDescent",
]
