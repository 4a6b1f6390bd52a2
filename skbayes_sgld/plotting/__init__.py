"""Displays of draws and predictions, in scikit-learn's manner; they need the extra ``plot``."""

from skbayes_sgld.plotting.criticism import ModelCheckDisplay, ModelComparisonDisplay
from skbayes_sgld.plotting.draws import (
    AutocorrelationDisplay,
    DensityDisplay,
    ForestDisplay,
    RankDisplay,
    TraceDisplay,
)
from skbayes_sgld.plotting.groups import GroupEffectsDisplay, ShrinkageDisplay
from skbayes_sgld.plotting.prediction_displays import (
    CoverageDisplay,
    PartialDependenceDisplay,
    PredictiveIntervalDisplay,
    ProbabilityContourDisplay,
    ReliabilityDisplay,
)

__all__ = [
    "AutocorrelationDisplay",
    "CoverageDisplay",
    "DensityDisplay",
    "ForestDisplay",
    "GroupEffectsDisplay",
    "PartialDependenceDisplay",
    "ModelCheckDisplay",
    "ModelComparisonDisplay",
    "PredictiveIntervalDisplay",
    "ProbabilityContourDisplay",
    "RankDisplay",
    "ReliabilityDisplay",
    "ShrinkageDisplay",
    "TraceDisplay",
]
