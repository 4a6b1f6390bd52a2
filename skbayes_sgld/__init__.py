"""Bayesian generalised linear models sampled by stochastic gradient Langevin dynamics."""

from importlib import import_module
from types import ModuleType

from skbayes_sgld._warnings import ModelMisfitWarning, gather_warnings
from skbayes_sgld.blocks import RowBlocks
from skbayes_sgld.criticism.comparison import compare_models
from skbayes_sgld.criticism.report import check_model
from skbayes_sgld.estimators.diagnose import diagnose
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.result import PosteriorDraws, SamplingResult
from skbayes_sgld.inference.sample import sample
from skbayes_sgld.linear_model import (
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.neural_network import (
    BayesByBackpropClassifier,
    BayesByBackpropRegressor,
    SGLDMLPClassifier,
    SGLDMLPRegressor,
)
from skbayes_sgld.prediction.effects import effects
from skbayes_sgld.prediction.wrappers import (
    predict_interval,
    predict_proba_interval,
    predict_quantiles,
    sample_y,
    summary,
)

__version__ = "0.1.0"

__all__ = [
    "BayesByBackpropClassifier",
    "BayesByBackpropRegressor",
    "ModelMisfitWarning",
    "Plan",
    "PosteriorDraws",
    "RowBlocks",
    "SGDMAPClassifier",
    "SGDMAPRegressor",
    "SGLDBetaBinomialRegressor",
    "SGLDGammaRegressor",
    "SGLDLinearRegression",
    "SGLDLogisticRegression",
    "SGLDMLPClassifier",
    "SGLDMLPRegressor",
    "SGLDNegativeBinomialRegressor",
    "SGLDOrdinalClassifier",
    "SGLDPoissonRegressor",
    "SamplingResult",
    "check_model",
    "compare_models",
    "diagnose",
    "effects",
    "gather_warnings",
    "predict_interval",
    "predict_proba_interval",
    "predict_quantiles",
    "sample",
    "sample_y",
    "summary",
]

_MODULES = ("datasets", "metrics", "plotting")  # imported where they are first used


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
