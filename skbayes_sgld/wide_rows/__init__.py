"""Few rows a parameter: centres and coordinates that suit them, and trajectories along rows."""
