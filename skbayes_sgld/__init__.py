"""Bayesian linear and logistic regression by stochastic gradient Langevin dynamics."""

__version__ = "0.1.0.dev0"
