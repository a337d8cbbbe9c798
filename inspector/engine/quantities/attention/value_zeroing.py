"""Value zeroing: which inputs a layer's output depends on, its feed-forward part and residual connection included."""

from __future__ import annotations

import torch

from inspector.engine.analyses.attention.attended import values_again
from inspector.engine.analyses.attention.head_maps import with_heads
from inspector.engine.analyses.attention.residual_stream import streams
from inspector.engine.analyses.attention.value_zeroing import LONGEST, distances
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import ATTENTION

NAME = "attention/value_zeroing"
ABOUT = Describe(
    kind="attention_map", title="value zeroing", limits=(0.0, 1.0),
    formula="C_ij = 1 − cos(x̃_i, x_i), x̃ the layer's output without the value of j in all heads; rows scaled to sum "
    "to 1",
    source="Mohebbi et al. 2023, Quantifying context mixing in transformers",
    method="exact; each layer is called again for each position",
)  # fmt: skip
TOO_LONG = "A layer is called once for each position: up to {:,} positions, not {:,}."


def refused(trace: Trace) -> str:
    """Why it is not given, from the length; "" where it may be."""
    length = trace.batch.length
    return TOO_LONG.format(LONGEST, length) if length > LONGEST else ""


@QUANTITIES.register(NAME)
@per_run(
    summary="value zeroing: how far a layer's output moves without the value of one input", order=63, default=False,
    needs=(ATTENTION,), cost="each layer is called again for every position",
    work=lambda run: run.call * (run.steps + 2), limit=refused,
)  # fmt: skip
def value_zeroing(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:attention/value_zeroing` (query, key) of every layer that attends within one sequence."""
    if not trace.attentions:
        return
    reason = refused(trace)
    try:
        if reason:
            raise Unsupported(reason)
        again, (_, found) = values_again(trace), streams(trace)
    except Unsupported as fault:
        emit.refuse(f"{trace.attentions[0].place}:{NAME}", str(fault))
        return
    for number, attention in enumerate(with_heads(again, emit, NAME, gradient=False)):
        emit.progress(number, len(again), f"value zeroing of {attention.place}")
        name = f"{attention.place}:{NAME}"
        pairs = ((stream, stream.layer_of(attention)) for stream in found)
        where = next(((stream, layer) for stream, layer in pairs if layer is not None), None)
        try:
            if where is None or not attention.of_itself or attention.first_query:
                raise Unsupported(f"{attention.place} is not the attention of a layer to its own sequence.")
            with undisturbed(trace.subject.model, trace.seed):
                values = distances(trace, *where, attention, emit)
        except Unsupported as fault:
            emit.refuse(name, str(fault))
            continue
        channel = ABOUT.channel(
            name, ("query", "key"), tuple(values.shape), "float32", module=attention.module,
            domains={"query": attention.queries_from, "key": attention.keys_from},
        )  # fmt: skip
        emit.array(channel, values.to(torch.float32))
