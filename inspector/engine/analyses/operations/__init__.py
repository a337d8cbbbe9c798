"""Every tensor operation of a computation, forward and backward, with numbers by which two runs can be compared.

In: a running model, through a torch dispatch mode. Out: channels of the place "operations".

    recorder    the mode that records
    response    what one unit of rounding in an operation's inputs does to its outputs
    places      the user's line and the module that an operation belongs to, also in the backward pass
    channels    what was recorded as channels

Begin reading with `recorder.py`.
"""
