"""Where a model takes positions from: what it adds to its tokens, and what its scores make of a distance.

Both are read off runs on a sequence of one token at every step, which differs from step to step by its positions alone,
so that neither names nor kinds of encodings have to be known.
"""
