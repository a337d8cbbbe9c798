"""Queries and keys of an attention in the capture, from which its map is computed when it is looked at.

They have q·d and k·d numbers for each head where the map has q·k. What is read from them is in
inspector/capture/computed_map.py, which says what each channel holds.

Index letters: a head, g group of heads with the same keys, q query, k key, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.attention.calls import WITHOUT_DROPOUT, picked_rows
from inspector.engine.attention.mask_pages import mask_bytes
from inspector.engine.attention.rows import Rows
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import dtype_name
from inspector.engine.trace.trace import Attention
from inspector.records import Channel

BY_MODEL = "the model computes its weights itself, so its queries and keys are not known"
DROPPED = "dropout was applied to its weights, which a map that is computed again does not have"
UNCHECKED = "nothing that the call returned could be compared with a map that is computed again"
BIAS = "its scores have a bias of {shape} numbers, {size}, that does not depend on key − query alone"


@dataclass(frozen=True, slots=True)
class Bias:
    """What is added to the scores, as it is kept: (a or 1, q or 1, k or 1), or by key − query (a or 1, q + k − 1)."""

    values: Tensor | None = None
    by_distance: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of it."""
        return 0 if self.values is None else self.values.nbytes


def reason_against(attention: Attention) -> str:
    """Why a map cannot be computed from queries and keys as the run had it; "" where it can."""
    if attention.weights is not None:
        return BY_MODEL
    if WITHOUT_DROPOUT in attention.note:
        return DROPPED
    return UNCHECKED if attention.check is None else ""


def bias_of(rows: Rows) -> Bias:
    """What is added to the scores where keys are allowed; 0 where they are masked."""
    given = rows.bias
    if given is None:
        return Bias()
    if 1 in given.shape[1:]:
        return Bias(given.where(given > rows.forbidding, 0.0))
    table = _by_distance(given, rows)
    return Bias(given.where(given > rows.forbidding, 0.0)) if table is None else Bias(table, by_distance=True)


def _by_distance(given: Tensor, rows: Rows) -> Tensor | None:
    """(a or 1, q + k − 1) the bias of each key − query, from −(q − 1) on; None where it depends on more.

    Relative positions and slopes (ALiBi) have one number for each distance. Numbers of masked keys do not count.
    """
    table = given.new_full((given.shape[0], rows.queries + rows.keys - 1), torch.nan)
    for query in range(rows.queries):
        row = given[:, query]
        counts = row > rows.forbidding
        known = table[:, rows.queries - 1 - query :][:, : rows.keys]
        if bool((counts & ~known.isnan() & (known != row)).any()):
            return None
        known[counts] = row[counts]
    return table.nan_to_num(nan=0.0)


def kept_bytes(attention: Attention, rows: Rows, bias: Bias) -> int:
    """Bytes of everything that is written of an attention whose map is computed from it."""
    groups = groups_of(attention, rows.sample)
    numbers = rows.heads * rows.queries + groups * rows.keys
    width = 8 if attention.query.dtype == torch.float64 else 4
    return numbers * attention.query.shape[-1] * width + bias.nbytes + mask_bytes(rows)


def groups_of(attention: Attention, sample: int) -> int:
    """How many heads have keys of their own: heads side by side may share them."""
    keys = attention.key[sample]
    for groups in range(1, len(keys)):
        if len(keys) % groups == 0:
            each = keys.unflatten(0, (groups, -1))
            if bool((each == each[:, :1]).all()):
                return groups
    return len(keys)


def write_queries_and_keys(emit: Emitter, name: str, attention: Attention, rows: Rows) -> None:
    """`NAME/queries` (head, query, component), each times the scale, and `NAME/keys` (group, key, component)."""
    assert rows.scaled is not None
    queries, keys = rows.scaled
    groups = groups_of(attention, rows.sample)
    keys = keys.transpose(-1, -2)[:: rows.heads // groups]
    for values, part, dims, title, along in (
        (queries, "queries", ("head", "query", "component"), "queries times the scale", attention.queries_from),
        (keys, "keys", ("group", "key", "component"), "keys", attention.keys_from),
    ):
        channel = Channel(
            name=f"{name}/{part}", kind="attention_pair", dims=dims, shape=tuple(values.shape),
            dtype=dtype_name(values), title=title, scale="diverging", module=attention.module,
            formula="a row of the scores is q·k over all keys", domains={dims[1]: along}, method="exact, as the model "
            "used them: positions that are rotated into them are there",
        )  # fmt: skip
        emit.channel(channel)
        for head, one in enumerate(values):
            emit.page(channel.name, (head, 0, 0), one[None])


def write_bias(emit: Emitter, name: str, attention: Attention, bias: Bias) -> None:
    """`NAME/bias` (mask, query, key), or `NAME/bias_by_distance` (mask, distance)."""
    if bias.values is None:
        return
    part, dims = ("bias_by_distance", ("mask", "distance")) if bias.by_distance else ("bias", ("mask", "query", "key"))
    channel = Channel(
        name=f"{name}/{part}", kind="attention", dims=dims, shape=tuple(bias.values.shape),
        dtype=dtype_name(bias.values), title="bias of the scores", scale="diverging",
        method="exact; 0 where keys are masked" + ("; from key − query = −(queries − 1) on" * bias.by_distance),
        module=attention.module,
    )  # fmt: skip
    emit.channel(channel)
    for head, one in enumerate(bias.values):
        emit.page(channel.name, (head, *(0 for _ in one.shape)), one[None])


def write_checked_rows(emit: Emitter, name: str, rows: Rows) -> None:
    """The rows of the map whose product with the values was compared with what the call returned."""
    for query in picked_rows(rows.queries):
        emit.page(name, (0, query, 0), rows.block(query, query + 1).full().half())
