"""The attention map of every head, streamed block by block: no more than one block of rows is ever in memory."""

from __future__ import annotations

from dataclasses import replace

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
from inspector.engine.attention.map_pages import described, free_bytes, map_bytes, method, page_writer
from inspector.engine.attention.mask_pages import write_mask
from inspector.engine.attention.one_pass import Statistics
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import map_places, refusal, statistics, with_map
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Quantity
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Log
from inspector.records.catalogue import ATTENTION

BUDGET_BYTES = 8 << 30
"""Maps of one run larger than this are not written."""

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
        too_much = f"The {heads} attention maps would take {size(needed)} and at most {size(limit)} may be written"
        _without_room(trace, shown, emit, limit, too_much)
        return
    emit.sink.write(Log(f"{heads} attention maps of {len(shown)} calls: {size(needed)} in the capture."))
    for number, attention in enumerate(shown):
        emit.progress(number, len(shown), f"attention of {attention.place}")
        _write(trace, attention, emit)


def _without_room(trace: Trace, shown: list[Attention], emit: Emitter, limit: int, too_much: str) -> None:
    """Keep queries and keys where a map can be computed from them; write the other maps where these fit. Maps that were
    begun while the model ran stay."""
    begun = map_places(trace)
    for attention in [one for one in shown if one.place in begun]:
        _write(trace, attention, emit)
        limit -= map_bytes(attention, trace.look_at)
    shown = [one for one in shown if one.place not in begun]
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
    emit.channel(replace(described(attention, rows), method=method(attention, about), fill=None, computed=RECIPE))
    write_checked_rows(emit, name, rows)
    _say_missing(emit, attention, rows, statistics(trace, attention, emit))


def budget(emit: Emitter) -> int:
    """Bytes that the maps of this run may take."""
    free = free_bytes(emit)
    return BUDGET_BYTES if free is None else min(BUDGET_BYTES, int(free * SHARE_OF_DISK))


def size(count: int) -> str:
    """Bytes as text: "302 MB"."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= 0.9995 * factor:  # 999,999 bytes are 1 MB, not 1e+03 kB
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"


def _write(trace: Trace, attention: Attention, emit: Emitter) -> None:
    """The map of every head, or only what is now known of one that was written while the model ran."""
    rows = Rows(attention, trace.look_at)
    channel = described(attention, rows)
    result = with_map(trace, attention)
    moved = emit.describe(channel)
    if result is None:
        result = statistics(trace, attention, emit, page_writer(emit, channel))
    elif moved:
        page_writer(emit, channel)(slice(0, rows.heads), rows.block(0, 1))
    write_mask(emit, channel.name, attention, rows)
    _say_missing(emit, attention, rows, result)


def _say_missing(emit: Emitter, attention: Attention, rows: Rows, result: Statistics) -> None:
    """Rows that are NaN, by why they are."""
    name = f"{attention.place}:attention"
    for count, what in ((result.empty_rows, "may attend to no key"), (result.broken_rows, "are not finite")):
        if count:
            emit.scalar(f"{name}/{'rows_without_keys' if what.startswith('may') else 'rows_not_finite'}", count)
            text = f"{attention.place}: {count} of {rows.heads * rows.queries} attention rows {what}; shown as NaN."
            emit.sink.write(Log(text, "warning"))


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
