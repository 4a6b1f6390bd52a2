"""Inference: every automatic setting is resolved, the chains are run, the draws are judged."""
