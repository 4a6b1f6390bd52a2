"""Bayesian generalised linear models sampled by stochastic gradient Langevin dynamics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from skbayes_sgld._warnings import ModelMisfitWarning, gather_warnings
from skbayes_sgld.estimators.diagnose import diagnose
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.result import PosteriorDraws, SamplingResult
from skbayes_sgld.linear_model import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.prediction.effects import effects
from skbayes_sgld.prediction.functions import (
    predict_interval,
    predict_proba_interval,
    predict_proba_quantiles,
    predict_quantiles,
    sample_y,
    summary,
)

if TYPE_CHECKING:  # the lazy imports of _LATER
    from skbayes_sgld.blocks import RowBlocks
    from skbayes_sgld.criticism.comparison import compare_models
    from skbayes_sgld.criticism.report import check_model
    from skbayes_sgld.mixed.smooth import Smooth
    from skbayes_sgld.neural_network import (
        BayesByBackpropClassifier,
        BayesByBackpropRegressor,
        SGLDMLPClassifier,
        SGLDMLPRegressor,
    )
    from skbayes_sgld.optimizers.estimators import SGDMAPClassifier, SGDMAPRegressor
    from skbayes_sgld.own_models.sample import sample

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
    "Smooth",
    "check_model",
    "compare_models",
    "diagnose",
    "effects",
    "gather_warnings",
    "predict_interval",
    "predict_proba_interval",
    "predict_proba_quantiles",
    "predict_quantiles",
    "sample",
    "sample_y",
    "summary",
]

_LATER = {
    "RowBlocks": "blocks",
    "compare_models": "criticism.comparison",
    "check_model": "criticism.report",
    "Smooth": "mixed.smooth",
    "sample": "own_models.sample",
    **dict.fromkeys(("SGLDMLPClassifier", "SGLDMLPRegressor"), "neural_network"),
    **dict.fromkeys(("BayesByBackpropClassifier", "BayesByBackpropRegressor"), "neural_network"),
    **dict.fromkeys(("SGDMAPClassifier", "SGDMAPRegressor"), "optimizers.estimators"),
}
_MODULES = (
    "datasets",
    "kernels",
    "metrics",
    "neural_network",
    "optimizers",
    "own_models",
    "plotting",
)


def __getattr__(name: str) -> Any:
    """Import a name of ``_LATER``, or one of the ``_MODULES``, when it is first asked for."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _LATER:
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
