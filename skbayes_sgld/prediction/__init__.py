"""Posterior predictions as functions of the draws."""
