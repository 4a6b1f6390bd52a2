"""Bayesian linear and logistic regression by stochastic gradient Langevin dynamics."""

from skbayes_sgld.linear_model import (
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "SGDMAPClassifier",
    "SGDMAPRegressor",
    "SGLDLinearRegression",
    "SGLDLogisticRegression",
]
