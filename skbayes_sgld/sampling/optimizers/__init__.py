"""Optimizers: rules, the climb by them, and projections onto convex sets."""
