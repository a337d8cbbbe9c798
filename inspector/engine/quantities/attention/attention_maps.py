"""The attention map of every head, streamed block by block: no more than one block of rows is ever in memory."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from inspector.engine.attention.mask_pages import write_mask
from inspector.engine.attention.rows import RowBlock, Rows
from inspector.engine.attention.statistics import method, refusal, statistics
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Quantity
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Channel, Log
from inspector.records.catalogue import ATTENTION

BUDGET_BYTES = 8 << 30
"""Maps of one run larger than this are not written."""

SHARE_OF_DISK = 0.5
"""Nor are maps larger than this share of the free disk."""


def run(trace: Trace, emit: Emitter) -> None:
    """A[a, q, k] = softmax_k(scale · Q[a, q] · K[a, k] + mask[a, q, k]), of the selected sample, as float16.

    Shape: (head, query, key); each row sums to 1 over the keys it may attend to, forbidden keys are 0, and a row that
    may attend to no key is NaN. Reports beforehand how many bytes all maps take, and rejects them with that number when
    it exceeds the budget or half of the free disk; statistics are still computed then.
    Reference: Vaswani et al. (2017), Attention is all you need.
    """
    shown = [attention for attention in trace.attentions if refusal(attention) is None]
    for attention in trace.attentions:
        reason = refusal(attention)
        if reason is not None:
            emit.refuse(f"{attention.place}:attention", reason)
    if not shown:
        return
    needed = sum(map_bytes(attention, trace.look_at) for attention in shown)
    heads = sum(Rows(attention, trace.look_at).heads for attention in shown)
    limit = budget(emit)
    if needed > limit:
        too_much = (
            f"The {heads} attention maps would take {size(needed)} and at most {size(limit)} may be written; run a "
            "shorter sequence or free space on the disk. Their statistics are shown."
        )
        for attention in shown:
            emit.refuse(f"{attention.place}:attention", too_much)
        emit.sink.write(Log(too_much, "warning"))
        return
    emit.sink.write(Log(f"{heads} attention maps of {len(shown)} calls: {size(needed)} in the capture."))
    for number, attention in enumerate(shown):
        emit.progress(number, len(shown), f"attention of {attention.place}")
        _write(trace, attention, emit)


def map_bytes(attention: Attention, sample: int) -> int:
    """Bytes of the maps of all heads as float16."""
    rows = Rows(attention, sample)
    return 2 * rows.heads * rows.queries * rows.keys


def budget(emit: Emitter) -> int:
    """Bytes that the maps of this run may take."""
    limit = BUDGET_BYTES
    path = getattr(emit.sink, "path", None)
    if isinstance(path, Path):
        there = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), None)
        if there is not None:
            limit = min(limit, int(shutil.disk_usage(there).free * SHARE_OF_DISK))
    return limit


def size(count: int) -> str:
    """Bytes as text: "302 MB"."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= 0.9995 * factor:  # 999,999 bytes are 1 MB, not 1e+03 kB
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"


def _write(trace: Trace, attention: Attention, emit: Emitter) -> None:
    name = f"{attention.place}:attention"
    rows = Rows(attention, trace.look_at)
    emit.channel(
        Channel(
            name=name, kind="attention", dims=("head", "query", "key"), shape=(rows.heads, rows.queries, rows.keys),
            dtype="float16", limits=(0.0, 1.0), title="attention", module=attention.module,
            formula="softmax over the allowed keys of scale·Q·Kᵀ + mask", source="Vaswani et al. 2017",
            method=method(attention, "exact, stored as float16: weights below 3e-8 become 0"),
            domains={"query": attention.queries_from, "key": attention.keys_from}, fill=0.0,
        )
    )  # fmt: skip

    def write(heads: slice, block: RowBlock) -> None:
        page = block.weights.to(torch.float16)
        missing = block.keys - page.shape[2]
        if missing and block.first + page.shape[1] == rows.queries:  # the last rows have the number of keys
            page = torch.nn.functional.pad(page, (0, missing))
        emit.page(name, (heads.start, block.first, 0), page)

    result = statistics(trace, attention, emit, write)
    write_mask(emit, name, attention, rows)
    for count, what in ((result.empty_rows, "may attend to no key"), (result.broken_rows, "are not finite")):
        if count:
            emit.scalar(f"{name}/{'rows_without_keys' if what.startswith('may') else 'rows_not_finite'}", count)
            text = f"{attention.place}: {count} of {rows.heads * rows.queries} attention rows {what}; shown as NaN."
            emit.sink.write(Log(text, "warning"))


QUANTITIES.register("attention/maps")(
    Quantity(summary="the full attention map of every head", order=30, function=run, run=run, needs=(ATTENTION,))
)
