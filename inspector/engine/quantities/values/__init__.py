"""Quantities that are recorded values: inputs, states, outputs, and the training log."""
