"""The engine: the only package with torch. It opens models, runs them under hooks, and computes quantities.

It runs in a worker process (`worker.py`), which the window and the command line start; `inspector.run` uses the same
code in the caller's own process (`session/in_process.py`).

In: requests (`records.Load`, `records.Run`). Out: a capture, written page by page, and answers on the pipe.

A run goes through these packages, top down:
    session        what is done with each request
    opening        from a name and a checkpoint file to a model ready to run
    inputs         from text, ids, files or a generated signal to a batch
    sources        many sequences, one after the other: a folder, a file of lines, the subject's own data
    data_set       a run of many: numbers of each, and statistics of units from all
    pipeline       attach probes, call the model, one backward pass, then every quantity
    probes         hooks that record what the model computes while it runs, one file for each kind of module
    recurrent, attention   what the probes recorded, arranged by step and verified
    trace          what a run recorded in memory; quantities read it
    quantities     one file each: from the trace to channels of the capture
    cells          equations and derivatives of one recurrent step

Begin reading with `pipeline/own_run.py`.
"""
