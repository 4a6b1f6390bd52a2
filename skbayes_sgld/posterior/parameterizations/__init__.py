"""Parameterizations in which a model is easier to sample."""
