"""A run of many sequences: numbers of each, and what is said of units from all of them.

    run            goes through the sequences: reads, groups equally long ones, checks that a batch changes nothing
    calls          one call of the model with its backward pass, and the gradient norm of each sequence
    gradient_uses  where a loss uses each parameter, and the gradient of each sequence of a batch from it
    numbers        the numbers of each sequence, from a trace
    pooled         moments and counts of units over all steps of all sequences
    table          the numbers as channels along the axis "sequence", written as they arrive

In: a subject and the spec of a data set (records.data_spec). Out: one frame of a capture.

Begin reading with `run.py`.
"""

from inspector.engine.data_set.run import run_data_set

__all__ = ["run_data_set"]
