"""torch's fused recurrent modules, opened up: what happened inside a call, layer by layer and step by step.

In: what the forward hook kept of each call (input, initial state, output). Out: one `Recurrence` a layer and direction.

    calls       which calls are one sequence (chunks with the state handed on), and all of it in one memory layout
    layers      states and gates of every layer recomputed in one product, and checked
    gradients   from the gradient at the module's outputs to the total gradient at every state

Begin reading with `calls.py`.
"""
