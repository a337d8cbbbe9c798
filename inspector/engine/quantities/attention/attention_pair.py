"""q·k by dimension, of one query and one key."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.attention.own_scores import UNKNOWN, as_queries_and_keys, products_of
from inspector.engine.attention.map_pages import method
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.products import call_of
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Option
from inspector.records.catalogue import ATTENTION

NAME = "attention/pair"
ABOUT = Describe(
    kind="attention_head", title="q·k by dimension", formula="scale · q_d k_d of one query and one key; the score is "
    "their sum, and a bias where there is one", source="Vaswani et al. 2017, eq. 1", scale="diverging",
)  # fmt: skip
ADDITIVE = replace(
    ABOUT, title="score by hidden unit", formula="w_d u_d, where u is computed from one query and one key together "
    "(additive score: u = tanh(W q + U k)); the score is their sum, and a bias where there is one",
    source="Bahdanau et al. 2015, appendix A.1.2",
)  # fmt: skip
ADDED = "the score is their sum and, head by head, {}"
MOST_HEADS = 16
NO_PAIR = "{} has {} queries and {} keys; there is no pair ({}, {})."


@QUANTITIES.register(NAME)
@per_run(
    summary="the score of one query and one key, dimension by dimension", order=60, default=False,
    needs=(ATTENTION,), cost="a row of each map, and one call of a model that computes its weights itself",
    work=lambda run: run.call * 2,
    options=(
        Option(name="query", type="int", default=-1, low=-1, help="The query; −1 is the last one."),
        Option(name="key", type="int", default=-1, low=-1, help="The key; −1 is each head's strongest one."),
    ),
)  # fmt: skip
def pair(trace: Trace, emit: Emitter, query: int = -1, key: int = -1) -> None:
    """Write `PLACE:attention/pair` (head, component) and `PLACE:attention/pair_key` (head,), the key of each head.

    Of attention that a model computes itself the two vectors are those whose product its scores are, read off
    autograd's graph in one more call. Of an additive score, w · tanh(W q + U k), they are w and the hidden units.
    """
    for attention in trace.attentions:
        name, reason = f"{attention.place}:{NAME}", refusal(attention)
        rows = Rows(attention, trace.look_at)
        if reason is None and (query >= rows.queries or key >= rows.keys):
            reason = NO_PAIR.format(attention.place, rows.queries, rows.keys, query, key)
        if reason is None:
            try:
                _write(trace, emit, attention, rows, query if query >= 0 else rows.queries - 1, key)
            except Unsupported as fault:
                reason = str(fault)
        if reason is not None:
            emit.refuse(name, reason)


def _write(trace: Trace, emit: Emitter, attention: Attention, rows: Rows, query: int, key: int) -> None:
    """Raises Unsupported where queries and keys are not known."""
    block = rows.block(query, query + 1)
    strongest = block.weights[:, 0].nan_to_num(nan=0.0).argmax(-1)
    keys = strongest if key < 0 else torch.full_like(strongest, key)
    products, about, plus = _products(trace, attention, query, keys)
    which = f"query {query}, key {key}" if key >= 0 else f"query {query}, each head's strongest key"
    which += f"; {plus}" if plus else ""
    more = {"module": attention.module, "method": method(attention, f"exact; {which}")}
    channel = about.channel(
        f"{attention.place}:{NAME}", ("head", "component"), tuple(products.shape), "float32", **more
    )
    emit.array(channel, products.float())
    about = Describe(kind="attention_head", title="key of the pair", formula="the key whose product is shown")
    channel = about.channel(
        f"{attention.place}:{NAME}_key", ("head",), (rows.heads,), "int32", value_domain=attention.keys_from, **more
    )
    emit.array(channel, keys.to(torch.int32))


def _of_queries_and_keys(trace: Trace, attention: Attention) -> bool:
    """Whether the second vector is that of the key alone. Of a single call with one query nothing shows that; of
    several, as of a decoder, it is seen from whether they have the same keys."""
    try:
        as_queries_and_keys(trace, attention)
    except Unsupported:
        return False
    return True


def _products(trace: Trace, attention: Attention, query: int, keys: Tensor) -> tuple[Tensor, Describe, str]:
    """((a, d) scale · q_d k_d, what they are, what is added as text) of a query and a key of each head (a,).

    Raises Unsupported.
    """
    if attention.weights is None:
        heads = torch.arange(len(keys), device=keys.device)
        return attention.scale * attention.query[0, :, query] * attention.key[0, heads, keys], ABOUT, ""
    made = products_of(trace, attention)
    call, row = call_of(made, query)
    if int(keys.max()) >= call.at_left.shape[2]:
        raise Unsupported(UNKNOWN.format(attention.place, f"query {query} has no key {int(keys.max())}"))
    about = ABOUT if _of_queries_and_keys(trace, attention) else ADDITIVE
    found = call.of_pair(row, keys)
    rest = call.scores[torch.arange(len(keys), device=keys.device), row, keys] - found.sum(-1)
    more = ", ".join(f"{number:.4g}" for number in rest[:MOST_HEADS].tolist())
    return found, about, ADDED.format(more) if call.plus else ""
