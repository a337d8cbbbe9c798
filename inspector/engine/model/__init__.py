"""A model and how to feed it: the object that probes, inputs and runs share.

In: what the user's callable returned (an nn.Module or an object with some of the documented attributes), and sequences.
Out: a `Subject` with every convention filled in, and padded `Batch` objects.

    subject           Subject, and how an nn.Module becomes one
    batch             Batch: named inputs, each with its lengths and its step axis
    declared_inputs   what a subject declares about each of its inputs
    batching          encoding, checking and labelling of the sequences of one input
    named_batches     several named inputs as one batch
    joining           sequences of one length as one batch
    call              how a model is called on a batch
    model_output      scores and a loss in what a model returns
    distributed_metadata  what `.metadata` says of a torch.distributed checkpoint, read without running any of it
    training_log      `history.json` beside a checkpoint: what training logged at every step

Begin reading with `subject.py`.
"""
