"""Rows of a fit in one record, and its target: how they are read, checked, encoded and bound."""
