"""Optimizers and projections by name."""

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.optimizers.projections import (
    PROJECTIONS,
    Ball,
    Box,
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
    "Ball",
    "Box",
    "Momentum",
    "Newton",
    "Optimizer",
    "Projection",
    "RMSprop",
    "SVRGDescent",
]
