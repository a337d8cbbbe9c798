"""Recording: every torch operation of a forward pass, with the place in the user's code that called it.

In: the running model, through a torch function mode. Out: a table of operations as columns of numbers.

    recorder        the mode that records
    operation       one call as it was recorded
    op_table        all calls as columns: place, arguments, results
    owners          the module that a frame of the user's code belongs to
    source_names    names of variables from the user's statements
    buffers         states that are in one preallocated tensor
"""
