"""torch's fused recurrent modules, unpacked: the values inside a call, layer by layer and step by step.

In: what the forward hook stored of each call (input, initial state, output). Out: one `Recurrence` for each layer and
direction.

    calls       which calls are one sequence (chunks with the state passed on), and all of it in one memory layout
    layers      states and gates of every layer recomputed in one product, and checked
    gradients   from the gradient at the module's outputs to the total gradient at every state

Begin reading with `calls.py`.
"""
