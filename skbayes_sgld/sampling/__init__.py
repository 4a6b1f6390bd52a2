"""How it is sampled: the shared NumPy backend of samplers and optimisers."""

from skbayes_sgld.sampling.averaging import Averaged
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
    SVRGDescent,
)
from skbayes_sgld.sampling.preconditioners import (
    PRECONDITIONERS,
    Curvature,
    Identity,
    Matrix,
    Preconditioner,
)
from skbayes_sgld.sampling.projections import (
    PROJECTIONS,
    Ball,
    BoundProjection,
    Box,
    Projected,
    Projection,
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
    "Averaged",
    "Ball",
    "BoundProjection",
    "Box",
    "ChainOverflowError",
    "Chains",
    "Clip",
    "Constant",
    "ControlVariate",
    "Curvature",
    "Cyclical",
    "Dynamics",
    "FlatDecayFlat",
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
    "ParallelTempering",
    "Polynomial",
    "Preconditioner",
    "Projected",
    "Projection",
    "RMSprop",
    "RandomWalk",
    "Run",
    "RunState",
    "SVRGDescent",
    "Sampler",
    "Schedule",
    "ValueClip",
    "find_mode",
    "run_chains",
]
