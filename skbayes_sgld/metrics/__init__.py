"""Scores of distributions, intervals and probabilities, and scorers for searches."""

from skbayes_sgld.metrics.distributions import crps, log_predictive_density
from skbayes_sgld.metrics.intervals import (
    interval_coverage,
    interval_score,
    interval_width,
    pinball_loss,
    quantile_calibration_error,
)
from skbayes_sgld.metrics.probabilities import brier_score, calibration_error
from skbayes_sgld.metrics.scorers import Scorer, get_scorer, get_scorer_names

__all__ = [
    "Scorer",
    "brier_score",
    "calibration_error",
    "crps",
    "get_scorer",
    "get_scorer_names",
    "interval_coverage",
    "interval_score",
    "interval_width",
    "log_predictive_density",
    "pinball_loss",
    "quantile_calibration_error",
]
