"""What one run recorded in memory, and the only path from there to the capture.

In: what probes recorded. Out: `Trace` with recurrences, attentions, outputs and losses, read by quantities; and
channels and pages through the `Emitter`.

    trace             Trace, Recurrence, Attention
    quantity          the decorators by which a file becomes a quantity
    emitter           declares channels, writes pages, reports progress, notices a cancel
    answer, step_axes, target_steps   outputs and inputs that have a step axis of their own
    findings          other values stored in a trace, by their class
    axis_records, iteration_axis      the record of every axis in a capture: steps, layers, patches, iterations
    embedding_calls   the ids that an embedding looked up, call by call

Begin reading with `trace.py`.
"""
