"""Predictions as functions of the draws."""
