"""Criticism of a fitted model: leave-one-out distributions, checks, remedies and the report."""
