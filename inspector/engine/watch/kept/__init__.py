"""Iterations that are kept with all that is needed to run them again, and what a model was called with."""
