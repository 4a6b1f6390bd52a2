"""Models from the literature other than regressions."""
