"""What a weight moves: ‖A_qk v_k W_O‖, and what each head adds to the residual stream."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import values_again
from inspector.engine.analyses.attention.head_maps import (
    HeadRows,
    head_rows,
    known,
    with_heads,
    write_map,
    write_rows,
)
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.heads import Heads
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records.catalogue import ATTENTION

NORM, ADDED = "attention/weighted_norm", "attention/head_output"
EXACT = "exact; one more call of the model"
ALONE = "; a factor, gate or norm behind the projection is not in it"
BEFORE = "; no projection behind the heads was found, so values are taken as they are"
MAP = Describe(
    kind="attention_map", title="norm of the weighted values", formula="‖A_qk v_k W_O‖₂ of each head",
    source="Kobayashi et al. 2020, Attention is not only a weight", method=EXACT + ALONE,
)  # fmt: skip
OUTPUT = Describe(
    kind="attention_statistic", title="norm of what the head adds", formula="‖Σ_k A_qk v_k W_O‖₂ of each head",
    source="Kobayashi et al. 2020", method=EXACT + ALONE,
)  # fmt: skip


@QUANTITIES.register(NORM)
@per_run(
    summary="norm of what each weight moves, ‖A v W_O‖, and of what each head adds to the residual stream", order=60,
    default=False, needs=(ATTENTION,), cost="one more call of the model", work=lambda run: run.call * 2,
)  # fmt: skip
def weighted_norm(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:attention/weighted_norm` (head, query, key) and `PLACE:attention/head_output` (head, query).

    The bias of the projection belongs to no head and is left out, and so is what scales its result (a factor for each
    channel, a gate, a norm). Where no projection was found behind the heads the
    norms are those of A v, which the method says.
    """
    if not trace.attentions:
        return
    try:
        again = values_again(trace)
    except Unsupported as reason:
        emit.refuse(f"{trace.attentions[0].place}:{NORM}", str(reason))
        return
    for attention in with_heads(again, emit, NORM, gradient=False):
        _write(trace, emit, attention)


def _write(trace: Trace, emit: Emitter, attention: Attention) -> None:
    heads = known(attention)
    more = "" if heads.weight is not None else BEFORE
    norms = value_norms(heads)

    def moved(block: HeadRows) -> Tensor:
        parts = []
        for call, q0, q1 in heads.spans(block.first, block.rows.stop):
            rows = block.weights[:, q0 - block.first : q1 - block.first].abs()
            own = norms[id(call)][block.heads, None, : rows.shape[2]]
            parts.append(rows[..., : own.shape[2]] * own)
        widest = max(part.shape[2] for part in parts)
        return torch.cat([torch.nn.functional.pad(part, (0, widest - part.shape[2])) for part in parts], dim=1)

    write_map(emit, trace, attention, NORM, MAP if not more else _with(MAP, more), moved)
    rows = [(block.heads, block.rows, projected(heads, block.sums, block.heads).norm(dim=-1))
            for block in head_rows(attention, trace.look_at, gradient=False)]  # fmt: skip
    added = torch.zeros(max(which.stop for which, _, _ in rows), max(row.stop for _, row, _ in rows))
    for which, row, values in rows:
        added[which, row] = values.float().cpu()
    write_rows(emit, attention, ADDED, OUTPUT if not more else _with(OUTPUT, more), added)


def value_norms(heads: Heads) -> dict[int, Tensor]:
    """(a, k) ‖v_k W_O‖ by id of the call."""
    return {id(call): projected(heads, call.value, slice(None)).norm(dim=-1) for call in heads.calls}


def projected(heads: Heads, sums: Tensor, which: slice) -> Tensor:
    """(a, q, e) sums of values (a, q, d) in the residual stream; as they are where no projection was found."""
    return sums if heads.weight is None else torch.bmm(sums, heads.weight[which].to(sums.dtype))


def _with(about: Describe, more: str) -> Describe:
    return replace(about, method=about.method + more)
