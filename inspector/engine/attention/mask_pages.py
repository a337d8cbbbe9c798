"""What a mask forbids, for the capture: the first and last key of every query, and the whole mask where it is more.

Causal masks, padding and windows are one span of keys for each query, the same in every head. Others (dilated, random,
by head) are written as they are.
"""

from __future__ import annotations

import torch

from inspector.engine.attention.rows import Rows
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention
from inspector.records import Channel

ENTRIES = 1 << 20
"""Entries of a page."""


def write_mask(emit: Emitter, name: str, attention: Attention, rows: Rows) -> None:
    """`NAME/allowed` (statistic, query), and `NAME/mask` (mask, query, key) where a mask is no span of keys."""
    reach = rows.reach()
    domains = {"query": attention.queries_from}
    emit.array(
        Channel(
            name=f"{name}/allowed", kind="attention", dims=("statistic", "query"), shape=(2, rows.queries),
            dtype="int32", title="first and last key that a query may attend to",
            labels={"statistic": ("first", "last")}, method="over all heads; -1 where there is none",
            module=attention.module, domains=domains, value_domain=attention.keys_from,
        ),
        reach,
    )  # fmt: skip
    if _is_span(rows, reach):
        return
    heads = rows.allowed(0, 1).shape[0]
    emit.channel(
        Channel(
            name=f"{name}/mask", kind="attention", dims=("mask", "query", "key"),
            shape=(heads, rows.queries, rows.keys), dtype="uint8", title="masked keys", fill=0.0,
            method="1 where a query may not attend to a key; one mask for all heads, or one for each",
            module=attention.module, domains={**domains, "key": attention.keys_from},
        )
    )  # fmt: skip
    for q0, q1 in _parts(rows):
        emit.page(f"{name}/mask", (0, q0, 0), (~rows.allowed(q0, q1)).to(torch.uint8))


def mask_bytes(rows: Rows) -> int:
    """Bytes of what `write_mask` writes of the masks."""
    reach = rows.reach()
    heads = 0 if _is_span(rows, reach) else rows.allowed(0, 1).shape[0]
    return int(reach.nbytes) + heads * rows.queries * rows.keys


def _is_span(rows: Rows, reach: torch.Tensor) -> bool:
    """Whether every head of every query may attend to all keys from the first to the last."""
    if rows.unmasked:
        return True
    keys = torch.arange(rows.keys, device=reach.device)
    first, last = reach.to(torch.int64)
    for q0, q1 in _parts(rows):
        span = (keys >= first[q0:q1, None]) & (keys <= last[q0:q1, None]) & (first[q0:q1, None] >= 0)
        if not bool((rows.allowed(q0, q1) == span).all()):
            return False
    return True


def _parts(rows: Rows) -> list[tuple[int, int]]:
    """Rows in parts of about as many entries as a page has."""
    step = max(1, ENTRIES // max(1, rows.keys * rows.allowed(0, min(1, rows.queries)).shape[0]))
    return [(q0, min(q0 + step, rows.queries)) for q0 in range(0, rows.queries, step)]
