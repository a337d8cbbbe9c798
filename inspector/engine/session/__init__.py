"""What is done with each request, in the worker and in the caller's own process.

In: `records.Load`, `records.Run`. Out: records on the pipe (Loaded, Progress, Finished, Failure) and a capture.

    service      the worker's side: holds the model that is open, runs it, ends every capture properly
    in_process   `inspector.run`: the same in the caller's process
    batches      from what was asked for to the batch that is run

Begin reading with `service.py`.
"""
