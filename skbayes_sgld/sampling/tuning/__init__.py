"""Automatic settings: mode, curvature, step size, batch size, adaptation."""
