"""A model at many checkpoints on one input: each checkpoint becomes a frame of one capture, in the order of training.

In: `records.Sweep`. Out: a capture, whose frames have the numbers that a run of each checkpoint alone has.

    candidates   which files and folders are checkpoints
    name_numbers, ordering   the training step of each, by what it tells itself or by its name, and their order
    listing      both together, for a list before anything is run
    identity     whether a checkpoint, and what else decides the numbers, is what it was when its frame was computed
    one_frame    one checkpoint, computed into a spool
    spool        records in a file of their own, until they are merged into the capture in order
    runners, cluster   where frames are computed: here, in several processes, on a cluster of dask's
    frames       the capture: frames that exist already, finished ones, those that failed
    following    checkpoints that appear while the sweep goes on
    conduct      all of it together: what is computed next, progress, cancel
    here         `inspector.sweep`

Begin reading with `conduct.py`.
"""
