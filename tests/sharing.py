"""Runs that processes share, however short they are."""

from dataclasses import replace

from skbayes_sgld.sampling import workers
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS


def share_after(seconds, monkeypatch):
    """Let jobs share every run that has ``seconds`` left after its first stretch."""
    monkeypatch.setattr(workers, "THRESHOLDS", replace(THRESHOLDS, shared_seconds=seconds))
