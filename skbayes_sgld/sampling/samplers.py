"""The samplers by name."""

from __future__ import annotations

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.hmc import HMC, MALA
from skbayes_sgld.sampling.metropolis import RandomWalk
from skbayes_sgld.sampling.psgld import PSGLD
from skbayes_sgld.sampling.sgld import SGLD
from skbayes_sgld.sampling.tempering import ParallelTempering
from skbayes_sgld.sampling.underdamped import SGHMC, SGNHT

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
