"""Proofs over many data sets drawn from the model: ``python -m tests.calibration`` runs them all.

No single posterior can show that intervals are right on average; data drawn from the model can.
"""
