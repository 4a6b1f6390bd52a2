"""The samplers by name."""

from __future__ import annotations

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.samplers.hmc import HMC
from skbayes_sgld.sampling.samplers.independence import Independence
from skbayes_sgld.sampling.samplers.mala import MALA
from skbayes_sgld.sampling.samplers.metropolis import RandomWalk
from skbayes_sgld.sampling.samplers.parallel_tempering import ParallelTempering
from skbayes_sgld.sampling.samplers.psgld import PSGLD
from skbayes_sgld.sampling.samplers.sghmc import SGHMC
from skbayes_sgld.sampling.samplers.sgld import SGLD
from skbayes_sgld.sampling.samplers.sgnht import SGNHT

SAMPLERS: Registry[Sampler] = Registry(
    Sampler,
    sgld=SGLD,
    psgld=PSGLD,
    sghmc=SGHMC,
    sgnht=SGNHT,
    random_walk=RandomWalk,
    independence=Independence,
    mala=MALA,
    hmc=HMC,
    parallel_tempering=ParallelTempering,
)
