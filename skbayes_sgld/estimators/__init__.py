"""Classes that the public estimators are composed of."""
