"""How each request is handled, in the worker and in the caller's own process.

In: `records.Load`, `records.Run`. Out: records on the pipe (Loaded, Progress, Finished, Failure) and a capture.

    service      the worker's side: has the open model, runs it, ends every capture properly
    in_process   `inspector.run`: the same in the caller's process
    batches      from a request to the batch that is run
    sweep        a model at many checkpoints, as frames of one capture
    checkpoint_tensors   the tensors of a checkpoint without a model

Begin reading with `service.py`.
"""
