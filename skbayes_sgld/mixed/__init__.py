"""Mixed models: effects that vary by group, and smooth curves, whose scales are learned."""
