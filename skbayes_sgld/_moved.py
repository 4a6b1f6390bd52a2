"""Classes that pickles of earlier versions name by a module they have since left."""

import sys
from importlib import import_module
from types import ModuleType

MOVED = {
    "_random.ChainStreams": "_components.ChainStreams",
    "posterior.likelihoods.bernoulli.Bernoulli": "posterior.likelihoods.base.Bernoulli",
    "posterior.priors.base.Normal": "posterior.priors.normal.Normal",
    "posterior.priors.normal.ConjugateNormal": "posterior.priors.conjugate.ConjugateNormal",
    "sampling.gradients.base.BoundGradient": "sampling.dynamics.BoundGradient",
    "sampling.gradients.base.Full": "sampling.protocol.Full",
    "sampling.preconditioners.components.Curvature": "sampling.protocol.Curvature",
    "sampling.preconditioners.components.Identity": "sampling.preconditioners.given.Identity",
    "sampling.preconditioners.components.Matrix": "sampling.preconditioners.given.Matrix",
    "sampling.preconditioners.metric.Curvature": "sampling.protocol.Curvature",
    "sampling.preconditioners.metric.Dense": "sampling.dynamics.Dense",
    "sampling.preconditioners.metric.Diagonal": "sampling.dynamics.Diagonal",
    "sampling.preconditioners.metric.Identity": "sampling.preconditioners.given.Identity",
    "sampling.preconditioners.metric.LowRank": "sampling.preconditioners.low_rank.LowRank",
    "sampling.preconditioners.metric.Matrix": "sampling.preconditioners.given.Matrix",
    "sampling.preconditioners.metric.Metric": "sampling.dynamics.Metric",
    "sampling.preconditioners.metric._RoundedRoot": "sampling.rounded_root.RoundedRoot",
    "sampling.samplers.sgld.SGLD": "sampling.protocol.SGLD",
    "sampling.schedules.Constant": "sampling.protocol.Constant",
    "sampling.schedules.Temperature": "inference.settings.Temperature",
}

for _old, _new in MOVED.items():
    _module, _, _name = f"{__package__}.{_old}".rpartition(".")
    _home, _, _now = f"{__package__}.{_new}".rpartition(".")
    _there = sys.modules.setdefault(_module, ModuleType(_module))
    setattr(_there, _name, getattr(import_module(_home), _now))
