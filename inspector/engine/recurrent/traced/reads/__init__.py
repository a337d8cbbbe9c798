"""Which steps of the model's inputs every iteration of a loop, and every step of a fused module, reads.

In: the table of recorded operations and the loops that were found. Out: `Reads` (engine/trace/reads.py) by place.

    spans       the steps of an input that the entries of a tensor come from, through one operation
    tracking    the same through all operations of a run, loops and fused modules included
"""
