"""The samplers by name."""

from __future__ import annotations

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.protocol import SGLD, Sampler
from skbayes_sgld.sampling.samplers.hmc import HMC, MALA
from skbayes_sgld.sampling.samplers.metropolis import RandomWalk
from skbayes_sgld.sampling.samplers.psgld import PSGLD
from skbayes_sgld.sampling.samplers.tempering import ParallelTempering
from skbayes_sgld.sampling.samplers.underdamped import SGHMC, SGNHT

SAMPLERS: Registry[Sampler] = Registry(
    Sampler,
    sgld=SGLD,
    psgld=PSGLD,
    sghmc=SGHMC,
    sgnht=SGNHT,
    random_walk=RandomWalk,
    mala=MALA,
    hmc=HMC,
    parallel_tempering=ParallelTempering,
)

__all__ = [
    "HMC",
    "MALA",
    "PSGLD",
    "SAMPLERS",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "ParallelTempering",
    "RandomWalk",
]
