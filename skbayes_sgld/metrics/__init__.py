"""Scores of distributions, intervals and probabilities, scorers, and leave-one-out."""

from skbayes_sgld.metrics.distributions import crps, log_predictive_density
from skbayes_sgld.metrics.intervals import (
    interval_coverage,
    interval_score,
    interval_width,
    pinball_loss,
    quantile_calibration_error,
)
from skbayes_sgld.metrics.leave_one_out import LeaveOneOut, loo
from skbayes_sgld.metrics.probabilities import brier_score, calibration_error
from skbayes_sgld.metrics.scorers import Scorer, get_scorer, get_scorer_names

__all__ = [
    "LeaveOneOut",
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
    "loo",
    "pinball_loss",
    "quantile_calibration_error",
]
