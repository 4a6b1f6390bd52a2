"""Samplers, optimizers and their parts, and kernels for loops of your own.

Gradients, schedules, preconditioners, clips and projections, the registries that hold them by name,
and `find_mode`.
"""

from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.clipping import CLIPS, Clip, NormClip, ValueClip
from skbayes_sgld.sampling.gradients import (
    GRADIENTS,
    SAGA,
    SVRG,
    ControlVariate,
    Full,
    Gradient,
    Minibatch,
)
from skbayes_sgld.sampling.kernel import Kernel, KernelState
from skbayes_sgld.sampling.optimizers.find import find_mode
from skbayes_sgld.sampling.optimizers.projections import PROJECTIONS, Ball, Box, Projection
from skbayes_sgld.sampling.optimizers.rules import (
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
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.preconditioners import (
    PRECONDITIONERS,
    Curvature,
    Identity,
    Matrix,
    Preconditioner,
)
from skbayes_sgld.sampling.samplers import (
    HMC,
    MALA,
    PSGLD,
    SAMPLERS,
    SGHMC,
    SGLD,
    SGNHT,
    ParallelTempering,
    RandomWalk,
)
from skbayes_sgld.sampling.schedules import (
    SCHEDULES,
    Constant,
    Cooling,
    Cyclical,
    FlatDecayFlat,
    Harmonic,
    Polynomial,
    Schedule,
)
from skbayes_sgld.sampling.tuning.mode import NoModeError

__all__ = [
    "CLIPS",
    "GD",
    "GRADIENTS",
    "HMC",
    "MALA",
    "OPTIMIZERS",
    "PRECONDITIONERS",
    "PROJECTIONS",
    "PSGLD",
    "SAGA",
    "SAMPLERS",
    "SCHEDULES",
    "SGD",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "SVRG",
    "AdaGrad",
    "Adam",
    "Ball",
    "Box",
    "ChainOverflowError",
    "Clip",
    "Constant",
    "ControlVariate",
    "Cooling",
    "Curvature",
    "Cyclical",
    "FlatDecayFlat",
    "Full",
    "Gradient",
    "Harmonic",
    "Identity",
    "Kernel",
    "KernelState",
    "Matrix",
    "Minibatch",
    "Momentum",
    "Newton",
    "NoModeError",
    "NormClip",
    "Optimizer",
    "ParallelTempering",
    "Polynomial",
    "Preconditioner",
    "Projection",
    "RMSprop",
    "RandomWalk",
    "SVRGDescent",
    "Sampler",
    "Schedule",
    "ValueClip",
    "find_mode",
]
