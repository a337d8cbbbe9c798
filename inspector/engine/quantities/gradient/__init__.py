"""Quantities of gradients: what reaches each state, each step, each layer and each parameter, and from where."""
