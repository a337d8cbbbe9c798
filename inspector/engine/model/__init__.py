"""A model and how to feed it: the object that probes, inputs and runs share.

In: what the user's callable returned (an nn.Module or an object with some of the documented attributes), and sequences.
Out: a `Subject` with every convention filled in, and padded `Batch` objects.

    subject        Subject, Batch, and how an nn.Module becomes a subject
    batching       encoding, checking and labelling of sequences
    training_log   `history.json` beside a checkpoint: what training noted at every step

Begin reading with `subject.py`.
"""
