"""The parts of the panel of weights: the list of tensors, what of one is drawn, and the plots beside its map."""
