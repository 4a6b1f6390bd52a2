"""Few rows per parameter: centres and coordinates that suit them, and trajectories along rows."""
