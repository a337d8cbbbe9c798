"""Callbacks of training libraries that attach `inspector.watch`: one file for each library, imported from there.

    lightning     from inspector.integrations.lightning import InspectorCallback      Trainer(callbacks=[…])
    huggingface   from inspector.integrations.huggingface import InspectorCallback    Trainer(…, callbacks=[…])
    accelerate    from inspector.integrations.accelerate import InspectorTracker      Accelerator(log_with=…)

None of the libraries is needed but by the file of its name.
"""
