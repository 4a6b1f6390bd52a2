"""The samplers by name."""

from __future__ import annotations

from skbayes_sgld._components import Registry
from skbayes_sgld.sampling.base import Sampler
from skbayes_sgld.sampling.hmc import HMC, MALA
from skbayes_sgld.sampling.sgld import SGLD

SAMPLERS: Registry[Sampler] = Registry(Sampler, sgld=SGLD, mala=MALA, hmc=HMC)
