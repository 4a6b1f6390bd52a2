"""Bayesian linear, logistic and Poisson regression by stochastic gradient Langevin dynamics."""

from skbayes_sgld.inference.sample import PosteriorSample, sample
from skbayes_sgld.linear_model import (
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld.neural_network import (
    BayesByBackpropClassifier,
    BayesByBackpropRegressor,
    SGLDMLPClassifier,
    SGLDMLPRegressor,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "BayesByBackpropClassifier",
    "BayesByBackpropRegressor",
    "PosteriorSample",
    "SGDMAPClassifier",
    "SGDMAPRegressor",
    "SGLDLinearRegression",
    "SGLDLogisticRegression",
    "SGLDMLPClassifier",
    "SGLDMLPRegressor",
    "SGLDPoissonRegressor",
    "sample",
]
