"""Parameterizations in which a generalised linear model is easier to sample."""
