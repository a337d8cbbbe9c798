"""The largest score before the softmax, of each head and query."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.head_maps import write_rows
from inspector.engine.attention.rows import FORBIDDEN, RowBlock
from inspector.engine.attention.statistics import per_attention_row, refusal, statistics
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe
from inspector.engine.trace.trace import Trace

NAME = "attention/largest_logit"
ABOUT = Describe(
    kind="attention_statistic", title="largest score before the softmax", scale="diverging",
    formula="max over allowed k of scale·q·k + bias", source="Dehghani et al. 2023; Wortsman et al. 2024",
)  # fmt: skip
OWN = (
    "{} computes its weights itself, so its scores are not known: no softmax was seen, or one that is written over "
    "them, or of which a part was copied before it was used."
)
NONE = "{} has no scores: what is shown is the map of a linear recurrence, which has no softmax."


@per_attention_row(ABOUT, signal=NAME, summary="largest score before the softmax of each head, per query", order=32)
def largest_logit(block: RowBlock) -> Tensor:
    """m[a, q] = max_k s[a, q, k] over the keys that the query may attend to, (a, q); NaN where there is none.

    Entropy that collapses, and softmax that saturates, begin with growing scores: 50 and more are a warning in float32
    trainings (Dehghani et al. 2023 saw 50,000). A large score alone is no fault: only differences within a row matter.
    """
    top = block.top
    if top is None:
        return torch.full_like(block.largest, torch.nan)
    return _allowed(top)


def _allowed(top: Tensor) -> Tensor:
    """NaN where no key is allowed."""
    return top.masked_fill(top <= FORBIDDEN / 2, torch.nan)


def run(trace: Trace, emit: Emitter) -> None:
    """Write `PLACE:attention/largest_logit` (head, query); where a model computes its weights itself, of what its
    softmax was given, and refused where none was seen."""
    for attention in trace.attentions:
        name, reason = f"{attention.place}:{NAME}", refusal(attention)
        if reason is None and attention.weights is not None and attention.highest is None:
            reason = (NONE if attention.equivalent else OWN).format(attention.place)
        if reason is not None:
            emit.refuse(name, reason)
            continue
        known = attention.highest
        values = (
            statistics(trace, attention, emit, signal=NAME).values[NAME]
            if known is None
            else _allowed(known[0].float().cpu())
        )
        write_rows(emit, attention, NAME, ABOUT, values)


QUANTITIES.register(NAME)(replace(largest_logit, run=run))
