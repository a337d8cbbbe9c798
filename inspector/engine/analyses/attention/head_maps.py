"""Maps (head, query, key) made of attention weights and of what the heads pass on, written block by block.

Index letters: a head, q query, k key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.attention.map_pages import method
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.heads import Heads
from inspector.engine.trace.quantity import Describe
from inspector.engine.trace.trace import Attention, Trace

MAPS_BYTES = 1 << 30
"""Maps of one channel larger than this are not written: they are float32, and computed on request."""
TOO_LARGE = "The map of {} heads takes {:.2g} GB and at most {:.2g} GB are written; its sums are shown."
UNKNOWN = "What the heads of {} pass on is not known ({}), so this is not shown."
NOT_SEEN = "its values were not seen when the model was called again"
FOLLOWED = "through the values that the weights multiply; not through weights that the model returns"


@dataclass(frozen=True, slots=True)
class HeadRows:
    """Consecutive rows of some heads.

    Attributes:
        heads: which; first: the first query.
        weights: (a, q, k') without the keys at the end that no row may attend to; 0 in rows without a key.
        gradient: (a, q, k') ∂L/∂A, 0 where masked; None where it was not taken.
        sums: (a, q, d) z = A V.
    """

    heads: slice
    first: int
    weights: Tensor
    gradient: Tensor | None
    sums: Tensor

    @property
    def rows(self) -> slice:
        """The queries."""
        return slice(self.first, self.first + self.weights.shape[1])


def with_heads(attentions: Sequence[Attention], emit: Emitter, signal: str, *, gradient: bool) -> list[Attention]:
    """Those whose heads are known, with their gradient where it is needed; the others are refused under `signal`."""
    found = []
    for attention in attentions:
        reason = refusal(attention)
        heads = attention.heads
        if reason is None and (heads is None or not heads.calls):
            reason = UNKNOWN.format(attention.place, heads.incomplete if heads is not None else NOT_SEEN)
        elif reason is None and heads is not None and gradient and (heads.incomplete or heads.delta is None):
            reason = UNKNOWN.format(attention.place, heads.incomplete or "no gradient reaches it")
        if reason is None:
            found.append(attention)
        else:
            emit.refuse(f"{attention.place}:{signal}", reason)
    return found


def head_rows(attention: Attention, sample: int, *, gradient: bool) -> Iterator[HeadRows]:
    """All rows of an attention whose heads are known, in blocks."""
    rows, heads = Rows(attention, sample), known(attention)
    for which, q0, q1 in rows.blocks():
        weights = rows.block(q0, q1, which).weights.nan_to_num(nan=0.0)
        found = None
        if gradient:
            allowed = rows.allowed(q0, q1, which)[..., : weights.shape[2]]
            found = heads.gradient(q0, q1, weights.shape[2], which).to(weights.dtype).where(allowed, 0.0)
        yield HeadRows(which, q0, weights, found, heads.sums(weights, q0, which))


def known(attention: Attention) -> Heads:
    """The heads of an attention that has them."""
    assert attention.heads is not None
    return attention.heads


Map = Callable[[HeadRows], Tensor]


def write_map(emit: Emitter, trace: Trace, attention: Attention, signal: str, about: Describe, value: Map) -> None:
    """A channel PLACE:signal (head, query, key) of (a, q, k') for each block of rows; 0 at masked keys at the end."""
    rows = Rows(attention, trace.look_at)
    name, needed = f"{attention.place}:{signal}", 4 * rows.heads * rows.queries * rows.keys
    if needed > MAPS_BYTES:
        emit.refuse(name, TOO_LARGE.format(rows.heads, needed / 1e9, MAPS_BYTES / 1e9))
        return
    emit.channel(
        about.channel(
            name, ("head", "query", "key"), (rows.heads, rows.queries, rows.keys), "float32", fill=0.0,
            module=attention.module, method=method(attention, about.method),
            domains={"query": attention.queries_from, "key": attention.keys_from},
        )
    )  # fmt: skip
    for block in head_rows(attention, trace.look_at, gradient=known(attention).delta is not None):
        values = value(block).float()
        if block.rows.stop == rows.queries:  # the last rows have the number of keys
            values = torch.nn.functional.pad(values, (0, rows.keys - values.shape[2]))
        emit.page(name, (block.heads.start, block.first, 0), values)


def write_rows(emit: Emitter, attention: Attention, signal: str, about: Describe, values: Tensor) -> None:
    """A channel PLACE:signal (head, query)."""
    channel = about.channel(
        f"{attention.place}:{signal}", ("head", "query"), tuple(values.shape), "float32", module=attention.module,
        domains={"query": attention.queries_from}, method=method(attention, about.method),
    )  # fmt: skip
    emit.array(channel, values.float())


def write_heads(
    emit: Emitter, attention: Attention, signal: str, about: Describe, values: Tensor, statistics: tuple[str, ...]
) -> None:
    """A channel PLACE:signal (head, statistic) of (statistic, head) values."""
    values = values.T
    channel = about.channel(
        f"{attention.place}:{signal}", ("head", "statistic"), tuple(values.shape), "float64",
        labels={"statistic": statistics}, module=attention.module, method=method(attention, about.method),
    )  # fmt: skip
    emit.array(channel, values.double())
