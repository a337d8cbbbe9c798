"""Cells of hand-written recurrences: steps that are run again from the recording.

In: a program (`traced/program`). Out: the protocol of `engine/cells/base.py`, so that every quantity works unchanged.

    replayed     the recorded operations under torch.func: exact derivatives of many steps at once
    graph        the same through autograd's own graph, for steps that cannot be run again
    autonomous   one step as a map of its state alone, for fixed points
    gradients    gradients at the states, from the run's one backward pass
    base         what all of them share: they have no step on inputs that were not recorded
"""
