"""Samplers and their parts: gradients, preconditioners, schedules, clips and their registries."""

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
    Independence,
    ParallelTempering,
    RandomWalk,
)
from skbayes_sgld.sampling.samplers.metropolis import Adjusted
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
    "GRADIENTS",
    "HMC",
    "MALA",
    "PRECONDITIONERS",
    "PSGLD",
    "SAGA",
    "SAMPLERS",
    "SCHEDULES",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "SVRG",
    "Adjusted",
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
    "Independence",
    "Matrix",
    "Minibatch",
    "NoModeError",
    "NormClip",
    "ParallelTempering",
    "Polynomial",
    "Preconditioner",
    "RandomWalk",
    "Sampler",
    "Schedule",
    "ValueClip",
]
