"""Rows as one record: their checks, and the numbers that each row has beside its columns."""
