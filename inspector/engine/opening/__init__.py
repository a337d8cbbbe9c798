"""From a name and a checkpoint file to a model that is ready to run.

In: `records.Load`: a sample's name, `file.py:callable` or `module:callable`, arguments, a checkpoint. Out: a Subject
with its weights loaded, and a report of what the checkpoint holds that the model does not have, and the reverse.

    open_subject           imports the code, calls it, reads the checkpoint by the first loader that knows the file
    checkpoint_matching    prefixes removed where that makes the checkpoint fit; missing, unexpected, misshapen tensors
    parametrizations       weight norm and spectral norm folded into plain weights

Begin reading with `open_subject.py`.
"""
