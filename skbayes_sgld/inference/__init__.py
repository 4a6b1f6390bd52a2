"""Inference: settings and posterior to a plan, the plan to a result, the result to a diagnosis."""
