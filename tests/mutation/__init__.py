"""Deliberate one-line breakages, and whether a test sees them: ``python -m tests.mutation``."""
