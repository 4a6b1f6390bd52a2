"""The parts of a plan that strategies share: the task, rows, lengths and starts of a run."""
