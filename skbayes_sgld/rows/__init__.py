"""Rows as one record, whose target is an object: how they are read, checked, encoded and bound."""
