"""What one run left in memory, and the one way from there to the capture.

In: what probes saw. Out: `Trace` with recurrences, attentions, outputs and losses, read by quantities; and channels and
pages through the `Emitter`.

    trace             Trace, Recurrence, Attention
    quantity          the decorators by which a file becomes a quantity
    emitter           declares channels, writes pages, reports progress, notices a cancel
    answer, step_axes, target_steps   answers and inputs that have steps of their own
    findings          what else is left in a trace, by its class
    axis_records, iteration_axis      what a capture says of every axis: steps, layers, patches, iterations
    embedding_calls   what an embedding looked up, call by call

Begin reading with `trace.py`.
"""
