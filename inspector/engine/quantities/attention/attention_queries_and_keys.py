"""Queries and keys as the model used them, from which q·k of any pair is read dimension by dimension."""

from __future__ import annotations

from inspector.engine.analyses.attention.own_scores import as_queries_and_keys
from inspector.engine.attention.kept_scores import bias_of, write_bias, write_queries_and_keys
from inspector.engine.attention.mask_pages import write_mask
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records.catalogue import ATTENTION

NAME = "attention/queries_and_keys"
BIAS_BYTES = 1 << 30
"""With a bias of more bytes queries and keys are not kept: without it their products are not the scores."""
TOO_LARGE = "the bias of its scores has {:.2g} GB, and at most {:.2g} GB are written"


@QUANTITIES.register(NAME)
@per_run(
    summary="queries and keys as the model used them: q·k by dimension of any pair", order=60, default=False,
    needs=(ATTENTION,), work=lambda run: run.call * 2,
    cost="what queries and keys take on disk, and one call of a model that computes its weights itself",
)  # fmt: skip
def queries_and_keys(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:attention/queries` (head, query, component), times the scale, `…/keys` (group, key, component) and
    the bias of the scores, unless the maps are computed from them, which wrote them before.

    Positions that are rotated into queries and keys are in them. Where the model computes its weights itself they are
    what the product was given from which its scores come, read off autograd's graph in one more call.
    """
    for attention in trace.attentions:
        name = f"{attention.place}:attention"
        if f"{name}/queries" in emit.declared:
            continue
        reason = refusal(attention)
        if reason is None:
            reason = _write(trace, emit, name, attention)
        if reason:
            emit.refuse(f"{name}/queries", reason)


def _write(trace: Trace, emit: Emitter, name: str, attention: Attention) -> str:
    """Write what there is to keep; the reason where it is not known or too large."""
    if attention.weights is not None:
        try:
            attention = as_queries_and_keys(trace, attention)
        except Unsupported as reason:
            return str(reason)
    rows = Rows(attention, trace.look_at)
    bias = bias_of(rows)
    if bias.nbytes > BIAS_BYTES:
        why = TOO_LARGE.format(bias.nbytes / 1e9, BIAS_BYTES / 1e9)
        return f"Queries and keys of {attention.place} are not kept: {why}."
    write_queries_and_keys(emit, name, attention, rows)
    write_bias(emit, name, attention, bias)
    if f"{name}/allowed" not in emit.declared:
        write_mask(emit, name, attention, rows)
    return ""
