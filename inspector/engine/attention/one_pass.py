"""One pass over the rows of an attention: the weights of a block of rows serve every statistic."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.attention.rows import BLOCK_BYTES, RowBlock, Rows
from inspector.engine.trace.trace import Attention

Statistic = Callable[[RowBlock], Tensor]
BlockWriter = Callable[[slice, RowBlock], None]

STATISTICS: dict[str, tuple[Statistic, bool]] = {}
"""Signal → (function of a block of rows, whether it is defined for self-attention only)."""


@dataclass(slots=True)
class Statistics:
    """What one pass over an attention computed: {signal: (a, q)}, and how many of its rows are NaN."""

    values: dict[str, Tensor]
    empty_rows: int
    broken_rows: int


def one_pass(
    attention: Attention,
    sample: int,
    check: Callable[[], None],
    signals: Collection[str],
    write: BlockWriter | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Statistics:
    """The chosen statistics that are defined for this attention; `check` is called before each block, of about
    `block_bytes` in float32, and `write` with it."""
    rows = Rows(attention, sample)
    wanted = {
        signal: function
        for signal, (function, self_only) in STATISTICS.items()
        if signal in signals and (not self_only or attention.of_itself)
    }
    values = {signal: torch.empty(rows.heads, rows.queries) for signal in wanted}
    empty = broken = 0
    for heads, q0, q1 in rows.blocks(block_bytes):
        check()
        block = rows.block(q0, q1, heads)
        shares = block.shares() if attention.equivalent else block
        for signal, function in wanted.items():
            values[signal][heads, q0:q1] = function(shares)
        if write is not None:
            write(heads, block)
        none = int((block.count == 0).sum()) * (block.weights.shape[0] if block.count.shape[0] == 1 else 1)
        empty += none
        broken += int(block.largest.isnan().sum()) - none
    return Statistics(values, empty, broken)
