"""How it is sampled: the shared NumPy backend of samplers and optimisers."""

from skbayes_sgld.sampling.base import Dynamics, Sampler
from skbayes_sgld.sampling.chains import ChainOverflowError, Chains, Run, RunState, run_chains
from skbayes_sgld.sampling.clipping import CLIPS, Clip, NormClip, ValueClip
from skbayes_sgld.sampling.gradients import GRADIENTS, ControlVariate, Full, Gradient, Minibatch
from skbayes_sgld.sampling.hmc import HMC, MALA
from skbayes_sgld.sampling.metropolis import RandomWalk
from skbayes_sgld.sampling.mode import Mode, NoModeError, find_mode
from skbayes_sgld.sampling.optimizers import (
    GD,
    OPTIMIZERS,
    SGD,
    AdaGrad,
    Adam,
    Momentum,
    Optimizer,
    RMSprop,
)
from skbayes_sgld.sampling.preconditioners import (
    PRECONDITIONERS,
    Curvature,
    Identity,
    Matrix,
    Preconditioner,
)
from skbayes_sgld.sampling.psgld import PSGLD
from skbayes_sgld.sampling.samplers import SAMPLERS
from skbayes_sgld.sampling.schedules import (
    SCHEDULES,
    Constant,
    Cyclical,
    FlatDecayFlat,
    Harmonic,
    Polynomial,
    Schedule,
)
from skbayes_sgld.sampling.sgld import SGLD
from skbayes_sgld.sampling.tempering import ParallelTempering
from skbayes_sgld.sampling.underdamped import SGHMC, SGNHT
from skbayes_sgld.sampling.variance_reduction import SAGA, SVRG

__all__ = [
    "CLIPS",
    "GD",
    "GRADIENTS",
    "PSGLD",
    "ParallelTempering",
    "SAGA",
    "SGHMC",
    "SGNHT",
    "SVRG",
    "RandomWalk",
    "HMC",
    "MALA",
    "OPTIMIZERS",
    "PRECONDITIONERS",
    "SAMPLERS",
    "SCHEDULES",
    "SGD",
    "SGLD",
    "AdaGrad",
    "Adam",
    "ChainOverflowError",
    "Chains",
    "Clip",
    "Constant",
    "ControlVariate",
    "Curvature",
    "Cyclical",
    "FlatDecayFlat",
    "Dynamics",
    "Full",
    "Gradient",
    "Harmonic",
    "Identity",
    "Matrix",
    "Minibatch",
    "Mode",
    "Momentum",
    "NoModeError",
    "NormClip",
    "Optimizer",
    "Polynomial",
    "Preconditioner",
    "RMSprop",
    "Run",
    "RunState",
    "Sampler",
    "Schedule",
    "ValueClip",
    "find_mode",
    "run_chains",
]
