"""Models of the literature that are no regressions."""
