"""Quantities that are values as they were: inputs, states, outputs, and what training noted."""
