"""How much the loss of a run depends on each token that was read: the gradient at its embedding."""

from __future__ import annotations

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.embedding_calls import EmbeddingCalls, length_over, sequences
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, STEP_DOMAIN
from inspector.records.catalogue import LOSS

SIGNAL = "gradient/embedding_norm"
CHANGED = "The model changed what {} returned in place, so the gradient that reached it is not known."
NORM = Describe(
    kind="gradient", compare="ratio",
    unit=LOSS_UNIT, title="‖∂L/∂e(xₜ)‖", scale="log", source="Simonyan, Vedaldi & Zisserman 2014",
    formula="‖∂L/∂e_t‖₂, e_t the embedding read at step t (decoder: of the token before), L = Σ_t ℓ_t of the sample",
)  # fmt: skip


@QUANTITIES.register("gradients/embedding")
@per_run(summary="‖∂L/∂e(xₜ)‖, the gradient at the embedding of every token", order=26, needs=(LOSS,))
def embedding_gradients(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:gradient/embedding_norm`, (step,), of the selected sample; further calls of a place get `#2`, `#3`,
    ….

    Only of embeddings that read the tokens of the input, or those of an output with a step axis of its own.
    """
    for place, calls in trace.findings.of(EmbeddingCalls).by_place.items():
        for count, (domain, call) in enumerate(sequences(trace, calls), 1):
            name = place if count == 1 else f"{place}#{count}"
            if call.changed:
                emit.refuse(f"{name}:{SIGNAL}", CHANGED.format(place))
                continue
            if call.norms is None:
                continue
            length = length_over(trace, domain)
            values = call.norms[trace.look_at, :length]
            channel = NORM.channel(f"{name}:{SIGNAL}", ("step",), (length,), dtype_name(values), module="Embedding")
            emit.array(channel if domain == STEP_DOMAIN else channel.over(domain), values)
