"""The default settings against references that share no code with the package."""
