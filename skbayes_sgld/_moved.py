"""Classes that pickles of earlier versions name by a module they have since left."""

import sys
from importlib import import_module
from types import ModuleType

MOVED = {
    "_random.ChainStreams": "_components",
    "posterior.likelihoods.bernoulli.Bernoulli": "posterior.likelihoods.base",
    "posterior.priors.base.Normal": "posterior.priors.normal",
    "posterior.priors.normal.ConjugateNormal": "posterior.priors.conjugate",
    "sampling.gradients.base.BoundGradient": "sampling.dynamics",
    "sampling.gradients.base.Full": "sampling.protocol",
    "sampling.preconditioners.components.Curvature": "sampling.protocol",
    "sampling.preconditioners.components.Identity": "sampling.preconditioners.given",
    "sampling.preconditioners.components.Matrix": "sampling.preconditioners.given",
    "sampling.preconditioners.metric.Curvature": "sampling.protocol",
    "sampling.preconditioners.metric.Dense": "sampling.dynamics",
    "sampling.preconditioners.metric.Diagonal": "sampling.dynamics",
    "sampling.preconditioners.metric.Identity": "sampling.preconditioners.given",
    "sampling.preconditioners.metric.LowRank": "sampling.preconditioners.low_rank",
    "sampling.preconditioners.metric.Matrix": "sampling.preconditioners.given",
    "sampling.preconditioners.metric.Metric": "sampling.dynamics",
    "sampling.preconditioners.metric._RoundedRoot": "sampling.rounded_root",
    "sampling.samplers.sgld.SGLD": "sampling.protocol",
    "sampling.schedules.Constant": "sampling.protocol",
    "sampling.schedules.Temperature": "inference.settings",
}

for _old, _new in MOVED.items():
    _module, _, _name = f"{__package__}.{_old}".rpartition(".")
    _there = sys.modules.setdefault(_module, ModuleType(_module))
    setattr(_there, _name, getattr(import_module(f"{__package__}.{_new}"), _name))
