"""Quantities of gradients: the gradient at each state, step, layer and parameter, and the losses from which it
comes."""
