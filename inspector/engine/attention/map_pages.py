"""The pages of an attention's map, a block of rows each, and how their channel is described."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from inspector.engine.attention.one_pass import BlockWriter
from inspector.engine.attention.rows import ROUNDED, RowBlock, Rows
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention
from inspector.records import Channel
from inspector.records.catalogue import EQUIVALENT_MAP

OWN_WEIGHTS = "what the model multiplies values with"
SOFTMAX = "softmax over the allowed keys of scale·Q·Kᵀ + mask"
EQUIVALENT = "Katharopoulos et al. 2020, arXiv 2006.16236; Ali, Zimerman & Wolf 2024, arXiv 2403.01590"
"""Sources of the weights that a linear recurrence stands for."""
SHARES = "of |M| divided by the sum of its row"
"""Said of statistics of weights that have either sign."""


def described(attention: Attention, rows: Rows) -> Channel:
    """The channel of the map of every head (head, query, key); how a model made its own weights is in the method
    alone."""
    own = attention.weights is not None
    channel = Channel(
        name=f"{attention.place}:attention", kind="attention", dims=("head", "query", "key"),
        shape=(rows.heads, rows.queries, rows.keys), dtype="float16", limits=(0.0, 1.0), title="attention",
        module=attention.module,
        formula=OWN_WEIGHTS if own else SOFTMAX, source="" if own else "Vaswani et al. 2017",
        method=method(attention, "exact, stored as float16: weights below 3e-8 become 0"),
        domains={"query": attention.queries_from, "key": attention.keys_from}, fill=0.0,
    )  # fmt: skip
    if attention.equivalent:
        return replace(
            channel, dtype="float32", limits=None, scale="diverging", title=EQUIVALENT_MAP, source=EQUIVALENT,
            formula=attention.equivalent, method=f"exact; {attention.note}",
        )  # fmt: skip
    kind = beyond_shares(rows)
    if kind is None:
        return channel
    return replace(
        channel, dtype="float32", limits=None, scale=kind, source="", method=method(attention, "exact"),
        formula=OWN_WEIGHTS,
    )  # fmt: skip


def method(attention: Attention, exact: str = "exact") -> str:
    """How the numbers of this attention were computed, for the channel."""
    shares = SHARES if attention.equivalent and exact == "exact" else ""
    return "; ".join(filter(None, (exact, shares, attention.note)))


def beyond_shares(rows: Rows) -> Literal["sequential", "diverging"] | None:
    """The scale of weights that a model computed itself and that are no shares of 1; None where all lie in [0, 1]."""
    if rows.weights is None:
        return None
    finite = rows.weights[rows.weights.isfinite()]
    if not finite.numel() or (float(finite.min()) >= 0 and float(finite.max()) <= 1 + ROUNDED):
        return None
    return "diverging" if float(finite.min()) < 0 else "sequential"


def map_bytes(attention: Attention, sample: int) -> int:
    """Bytes of the maps of all heads as float16; as float32 where the weights are no shares of 1."""
    rows = Rows(attention, sample)
    wide = bool(attention.equivalent) or beyond_shares(rows) is not None
    return (4 if wide else 2) * rows.heads * rows.queries * rows.keys


def page_writer(emit: Emitter, channel: Channel) -> BlockWriter:
    """Writes each block of rows that it is given as a page of the channel of a map."""
    stored = torch.float32 if channel.dtype == "float32" else torch.float16

    def write(heads: slice, block: RowBlock) -> None:
        page = block.weights.to(stored)
        missing = block.keys - page.shape[2]
        if missing and block.first + page.shape[1] == channel.shape[1]:  # the last rows have the number of keys
            page = torch.nn.functional.pad(page, (0, missing))
        emit.page(channel.name, (heads.start, block.first, 0), page)

    return write


def free_bytes(emit: Emitter) -> int | None:
    """Bytes that are free on the disk of the capture; None where that is not known."""
    path = getattr(emit.sink, "path", None)
    if not isinstance(path, Path):
        return None
    there = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), None)
    return None if there is None else shutil.disk_usage(there).free
