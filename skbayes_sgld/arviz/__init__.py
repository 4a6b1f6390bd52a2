"""Fits as ArviZ data: draws of parameters, and predictions and log likelihoods of rows."""
