"""Quantities of the step Jacobian and of products of step Jacobians."""
