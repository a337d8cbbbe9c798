"""What is attached to a user's model while it runs, and removed afterwards.

In: the model and the process' state. Out: calls to the probes. Nothing here changes an output, draws a random number or
raises into the user's code.

    module_stack    which module is being called, by hooks that are not visible on the modules
    function_mode   torch function modes that can be switched off in the middle of a run
    recorder        a base for the probes of recurrent modules: forward hooks that never raise
    isolation       random state, buffers and training flags as they were before the run
    attributes      what modules keep in attributes as it was

Begin reading with `recorder.py`.
"""
