"""The attention map of every head, streamed block by block: no more than one block of rows is ever in memory."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from inspector.capture.computed_map import RECIPE
from inspector.engine.analyses.attention.attention_cost import foreseen
from inspector.engine.attention.kept_scores import (
    BIAS,
    bias_of,
    kept_bytes,
    reason_against,
    write_bias,
    write_checked_rows,
    write_queries_and_keys,
)
from inspector.engine.attention.mask_pages import write_mask
from inspector.engine.attention.one_pass import Statistics
from inspector.engine.attention.rows import ROUNDED, RowBlock, Rows
from inspector.engine.attention.statistics import method, refusal, statistics
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Quantity
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Channel, Log
from inspector.records.catalogue import ATTENTION, EQUIVALENT_MAP

BUDGET_BYTES = 8 << 30
"""Maps of one run larger than this are not written."""

OWN_WEIGHTS = "what the model multiplies values with"
SOFTMAX = "softmax over the allowed keys of scale·Q·Kᵀ + mask"
EQUIVALENT = "Katharopoulos et al. 2020, arXiv 2006.16236; Ali, Zimerman & Wolf 2024, arXiv 2403.01590"
"""Sources of the weights that a linear recurrence stands for."""
SHARE_OF_DISK = 0.5
"""Nor are maps larger than this share of the free disk."""


def run(trace: Trace, emit: Emitter) -> None:
    """A[a, q, k] = softmax_k(scale · Q[a, q] · K[a, k] + mask[a, q, k]), of the selected sample, as float16.

    Shape: (head, query, key); each row sums to 1 over the keys it may attend to, forbidden keys are 0, and a row that
    may attend to no key is NaN. Reports beforehand how many bytes all maps take; where that exceeds the budget or half
    of the free disk, queries and keys are kept instead, from which a map is computed when it is read. Maps of which
    that cannot be done are rejected with that number; their statistics are still computed then.
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
        _without_room(trace, shown, emit, limit, f"The {heads} attention maps would take {size(needed)} and at most "
                      f"{size(limit)} may be written")  # fmt: skip
        return
    emit.sink.write(Log(f"{heads} attention maps of {len(shown)} calls: {size(needed)} in the capture."))
    for number, attention in enumerate(shown):
        emit.progress(number, len(shown), f"attention of {attention.place}")
        _write(trace, attention, emit)


def _without_room(trace: Trace, shown: list[Attention], emit: Emitter, limit: int, too_much: str) -> None:
    """Keep queries and keys where a map can be computed from them; write the other maps where these fit."""
    kept: list[Attention] = []
    others: list[tuple[Attention, str]] = []
    left = limit
    for attention in shown:
        reason, bytes_of_it = _keeping(attention, trace.look_at, left)
        if reason:
            others.append((attention, reason))
        else:
            kept.append(attention)
            left -= bytes_of_it
    if kept:
        text = (
            f"{too_much}: queries and keys of {len(kept)} calls are kept instead, {size(limit - left)}, and a map is "
        )
        emit.sink.write(Log(f"{text}computed from them when it is looked at."))
    for number, attention in enumerate(kept):
        emit.progress(number, len(kept), f"queries and keys of {attention.place}")
        _keep(trace, attention, emit)
    if kept and sum(map_bytes(attention, trace.look_at) for attention, _ in others) <= left:
        for attention, _ in others:
            _write(trace, attention, emit)
        return
    for attention, reason in others:
        text = f"{too_much}; run a shorter sequence or free space on the disk. Their statistics are shown."
        emit.refuse(f"{attention.place}:attention", f"{text} Nor is a map computed from queries and keys: {reason}.")
    if others:
        emit.sink.write(Log(f"{too_much}; of {len(others)} calls only statistics are shown.", "warning"))


def _keeping(attention: Attention, sample: int, room: int) -> tuple[str, int]:
    """(why queries and keys are not kept instead of the map, their bytes)."""
    reason = reason_against(attention)
    if reason:
        return reason, 0
    rows = Rows(attention, sample)
    bias = bias_of(rows)
    needed = kept_bytes(attention, rows, bias)
    if needed <= room:
        return "", needed
    if bias.values is not None and bias.nbytes > needed // 2:
        return BIAS.format(shape=" × ".join(map(str, bias.values.shape)), size=size(bias.nbytes)), needed
    return f"they would take {size(needed)}, of which {size(max(0, room))} may be written", needed


def _keep(trace: Trace, attention: Attention, emit: Emitter) -> None:
    """Everything that a map is computed from, and the rows by which that is tested when it is read."""
    name, rows = f"{attention.place}:attention", Rows(attention, trace.look_at)
    write_mask(emit, name, attention, rows)
    write_queries_and_keys(emit, name, attention, rows)
    write_bias(emit, name, attention, bias_of(rows))
    about = (
        "computed from kept queries and keys when it is read; rows that were compared with the run come out the same"
    )
    emit.channel(replace(_described(attention, rows), method=method(attention, about), fill=None, computed=RECIPE))
    write_checked_rows(emit, name, rows)
    _say_missing(emit, attention, rows, statistics(trace, attention, emit))


def map_bytes(attention: Attention, sample: int) -> int:
    """Bytes of the maps of all heads as float16; as float32 where the weights are no shares of 1."""
    rows = Rows(attention, sample)
    wide = bool(attention.equivalent) or _beyond_shares(attention, sample) is not None
    return (4 if wide else 2) * rows.heads * rows.queries * rows.keys


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


def _beyond_shares(attention: Attention, sample: int) -> Literal["sequential", "diverging"] | None:
    """The scale of weights that a model computed itself and that are no shares of 1; None where all lie in [0, 1]."""
    weights = Rows(attention, sample).weights
    if weights is None:
        return None
    finite = weights[weights.isfinite()]
    if not finite.numel() or (float(finite.min()) >= 0 and float(finite.max()) <= 1 + ROUNDED):
        return None
    return "diverging" if float(finite.min()) < 0 else "sequential"


def _write(trace: Trace, attention: Attention, emit: Emitter) -> None:
    rows = Rows(attention, trace.look_at)
    channel = _described(attention, rows)
    name = channel.name
    if attention.equivalent:
        channel = replace(
            channel, dtype="float32", limits=None, scale="diverging", title=EQUIVALENT_MAP, source=EQUIVALENT,
            formula=attention.equivalent, method=f"exact; {attention.note}",
        )  # fmt: skip
    elif (kind := _beyond_shares(attention, trace.look_at)) is not None:
        channel = replace(
            channel, dtype="float32", limits=None, scale=kind, source="", method=method(attention, "exact"),
            formula=OWN_WEIGHTS,
        )  # fmt: skip
    emit.channel(channel)
    stored = torch.float32 if channel.dtype == "float32" else torch.float16

    def write(heads: slice, block: RowBlock) -> None:
        page = block.weights.to(stored)
        missing = block.keys - page.shape[2]
        if missing and block.first + page.shape[1] == rows.queries:  # the last rows have the number of keys
            page = torch.nn.functional.pad(page, (0, missing))
        emit.page(name, (heads.start, block.first, 0), page)

    result = statistics(trace, attention, emit, write)
    write_mask(emit, name, attention, rows)
    _say_missing(emit, attention, rows, result)


def _say_missing(emit: Emitter, attention: Attention, rows: Rows, result: Statistics) -> None:
    """Rows that are NaN, by why they are."""
    name = f"{attention.place}:attention"
    for count, what in ((result.empty_rows, "may attend to no key"), (result.broken_rows, "are not finite")):
        if count:
            emit.scalar(f"{name}/{'rows_without_keys' if what.startswith('may') else 'rows_not_finite'}", count)
            text = f"{attention.place}: {count} of {rows.heads * rows.queries} attention rows {what}; shown as NaN."
            emit.sink.write(Log(text, "warning"))


def _described(attention: Attention, rows: Rows) -> Channel:
    """The channel of the maps of an attention; how a model made its own weights is in the method alone."""
    own = attention.weights is not None
    return Channel(
        name=f"{attention.place}:attention", kind="attention", dims=("head", "query", "key"),
        shape=(rows.heads, rows.queries, rows.keys), dtype="float16", limits=(0.0, 1.0), title="attention",
        module=attention.module,
        formula=OWN_WEIGHTS if own else SOFTMAX, source="" if own else "Vaswani et al. 2017",
        method=method(attention, "exact, stored as float16: weights below 3e-8 become 0"),
        domains={"query": attention.queries_from, "key": attention.keys_from}, fill=0.0,
    )  # fmt: skip


def told(subject: Subject, batch: Batch) -> str:
    """That maps will not fit, with the sizes that the model's modules foresee; "" where they fit, or nothing is
    foreseen. The free disk counts once the model has run."""
    shapes, steps = list(foreseen(subject.model).values()), batch.length
    maps = sum(2 * one.heads * steps * steps for one in shapes)
    if maps <= BUDGET_BYTES:
        return ""
    kept = sum(4 * (one.heads + one.groups) * steps * one.key for one in shapes)
    return (
        f"The attention maps of {sum(one.heads for one in shapes)} heads over {steps:,} steps would take about "
        f"{size(maps)}, and at most {size(BUDGET_BYTES)} are written: where queries and keys are known, these are "
        f"kept instead, about {size(kept)}, and a map is computed from them when it is looked at."
    )


QUANTITIES.register("attention/maps")(
    Quantity(
        summary="the full attention map of every head", order=30, function=run, run=run, needs=(ATTENTION,), before=told
    )
)
