"""Breakages of one line, and whether a test sees them: ``python -m tests.maintainer.mutation``."""
