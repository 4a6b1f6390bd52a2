"""Inference: from settings and posterior to a plan, a result and a diagnosis."""
