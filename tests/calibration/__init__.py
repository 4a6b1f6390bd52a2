"""Proofs over many data sets drawn from the model: ``pytest -m truth tests/calibration -s``.

No single posterior can show that intervals are right on average; data drawn from the model can.
"""
