"""q·k by dimension, of one query and one key."""

from __future__ import annotations

import torch

from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import method, refusal
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Option
from inspector.records.catalogue import ATTENTION

NAME = "attention/pair"
ABOUT = Describe(
    kind="attention_head", title="q·k by dimension", formula="scale · q_d k_d of one query and one key; the score is "
    "their sum, and a bias where there is one", source="Vaswani et al. 2017, eq. 1", scale="diverging",
)  # fmt: skip
OWN = "{} computes its weights itself: which queries and keys they come from is not known."
NO_PAIR = "{} has {} queries and {} keys; there is no pair ({}, {})."


@QUANTITIES.register(NAME)
@per_run(
    summary="the score of one query and one key, dimension by dimension", order=60, default=False,
    needs=(ATTENTION,), cost="nothing but a row of each map", work=lambda run: run.call,
    options=(
        Option(name="query", type="int", default=-1, low=-1, help="The query; −1 is the last one."),
        Option(name="key", type="int", default=-1, low=-1, help="The key; −1 is each head's strongest one."),
    ),
)  # fmt: skip
def pair(trace: Trace, emit: Emitter, query: int = -1, key: int = -1) -> None:
    """Write `PLACE:attention/pair` (head, component) and `PLACE:attention/pair_key` (head,), the key of each head."""
    for attention in trace.attentions:
        name, reason = f"{attention.place}:{NAME}", refusal(attention)
        if reason is None and attention.weights is not None:
            reason = OWN.format(attention.place)
        rows = Rows(attention, trace.look_at)
        if reason is None and (query >= rows.queries or key >= rows.keys):
            reason = NO_PAIR.format(attention.place, rows.queries, rows.keys, query, key)
        if reason is not None:
            emit.refuse(name, reason)
            continue
        _write(emit, attention, rows, query if query >= 0 else rows.queries - 1, key)


def _write(emit: Emitter, attention: Attention, rows: Rows, query: int, key: int) -> None:
    block = rows.block(query, query + 1)
    strongest = block.weights[:, 0].nan_to_num(nan=0.0).argmax(-1)
    keys = strongest if key < 0 else torch.full_like(strongest, key)
    heads = torch.arange(rows.heads, device=keys.device)
    products = attention.scale * attention.query[0, :, query] * attention.key[0, heads, keys]
    which = f"query {query}, key {key}" if key >= 0 else f"query {query}, each head's strongest key"
    more = {"module": attention.module, "method": method(attention, f"exact; {which}")}
    channel = ABOUT.channel(
        f"{attention.place}:{NAME}", ("head", "component"), tuple(products.shape), "float32", **more
    )
    emit.array(channel, products.float())
    about = Describe(kind="attention_head", title="key of the pair", formula="the key whose product is shown")
    channel = about.channel(
        f"{attention.place}:{NAME}_key", ("head",), (rows.heads,), "int32", value_domain=attention.keys_from, **more
    )
    emit.array(channel, keys.to(torch.int32))
