"""All gradients that reach the parameters of a recurrence, some steps at a time, in the form in which they are summed.

The same sweep as in `itemised_bptt.py`, for quantities that need every pair of steps: everything is done with a tile of
rows while it is in the cache, and what a chunk of steps gives to the sums by lag is one product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.itemised_bptt import begin, cut_, pairs, row_norms
from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.linear import linear
from inspector.engine.cells.spread_block import SpreadBlock, tiles
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS
from inspector.engine.trace.trace import Recurrence


@dataclass(frozen=True, slots=True)
class Chunk:
    """Everything that reaches the parameters at n consecutive steps of a sequence of t, every loss for itself.

    Attributes:
        first: the first of the steps, in processing order; l = t − first lags end in it.
        norms: {signal: (n, t)} float64: the norm of the contribution of loss t; 0 at losses before the step.
        heads, totals: {signal: (n, g)}: the contribution of the step's own loss (lag 0), and of all losses together.
        rows: {signal: (n, l · q)}: the contribution of each loss, by lag, q entries each (those of the gradient, or its
            products with the probes); 0 beyond the end of the sequence.
        factors: {parameter: (signal, (n, r))}: contributions are outer products of the two (see Source).
    """

    first: int
    norms: dict[str, Tensor]
    heads: dict[str, Tensor]
    totals: dict[str, Tensor]
    rows: dict[str, Tensor]
    factors: dict[str, tuple[str, Tensor]]


def widths(recurrence: Recurrence, sample: int) -> dict[str, int]:
    """{signal: g}, from one gradient that is zero, at the last step."""
    *_, (_, block) = recurrence.blocks(sample, BLOCK_STEPS)
    t, _, s = block.shape
    found = block.pull_(block.following.new_zeros(1, s), t - 1)
    return {signal: rows.shape[1] for signal, rows in found.items()}


def chunks(
    recurrence: Recurrence, sample: int, emit: Emitter, text: str, probes: Mapping[str, Tensor], room: int
) -> Iterator[Chunk]:
    """All steps of the sample, the last first. Signals with `probes` (q, g) are projected; `room`: bytes for rows."""
    carried = begin(recurrence, sample).clone()
    length = len(carried)
    kept = {signal: len(probes[signal]) if signal in probes else g for signal, g in widths(recurrence, sample).items()}
    total, done = pairs(length, length), 0
    for start, block in reversed(list(recurrence.blocks(sample, BLOCK_STEPS))):
        row = (length - start) * sum(kept.values()) * carried.element_size()
        size = max(1, room // row)
        for stop in range(block.shape[0], 0, -size):
            emit.check()
            emit.progress(done / total, 1.0, text)
            steps = slice(max(0, stop - size), stop)
            filling = _Filling(recurrence, block, steps, start + steps.start, carried, kept, probes)
            done += sum(length - k for k in range(start + steps.start, start + stop))
            yield filling.chunk()


class _Filling:
    """A chunk as it grows, from its last step to its first."""

    def __init__(
        self,
        recurrence: Recurrence,
        block: StepBlock,
        steps: slice,
        first: int,
        carried: Tensor,
        kept: Mapping[str, int],
        probes: Mapping[str, Tensor],
    ) -> None:
        self.recurrence, self.block, self.steps, self.first, self.probes, self.kept = (
            recurrence,
            block,
            steps,
            first,
            probes,
            kept,
        )
        n, t, new = steps.stop - steps.start, len(carried), carried.new_zeros
        self.norms = {signal: new(n, t, dtype=torch.float64) for signal in kept}
        self.rows = {signal: new(n, t - first, q) for signal, q in kept.items()}
        self.heads: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}
        if isinstance(block, SpreadBlock) and block.spreads:
            self._spread(block, carried)
        else:
            self._dense(carried)

    def chunk(self) -> Chunk:
        """What has been gathered."""
        factors = {name: (signal, value[self.steps, 0]) for name, (signal, value) in self.block.factors().items()}
        rows = {signal: values.flatten(1) for signal, values in self.rows.items()}
        return Chunk(self.first, self.norms, self.heads, self.totals, rows, factors)

    def _spread(self, block: SpreadBlock, carried: Tensor) -> None:
        n, s = self.steps.stop - self.steps.start, carried.shape[1]
        heads, totals = carried.new_zeros(n, s), carried.new_zeros(n, s)
        weights = block.weights(self.probes)
        for j in range(n - 1, -1, -1):
            rows = carried[self.first + j :]
            matrix = block.folded(self.steps.start + j, weights)
            for tile in tiles(rows):
                block.open_(rows[tile], self.steps.start + j)
                if tile.start == 0:
                    heads[j] = rows[0]
                totals[j] += rows[tile].sum(0)
                self._tile(block, rows[tile], j, tile, matrix)
            cut_(self.recurrence, self.first + j, rows)
        for signal, spread in block.spreads.items():
            self.heads[signal], self.totals[signal] = spread.each(heads, self.steps), spread.each(totals, self.steps)

    def _tile(self, block: SpreadBlock, rows: Tensor, j: int, lags: slice, matrix: Tensor) -> None:
        """Norms, what is stored of the gradients, and the backward pass through the step, for one tile of rows."""
        at = self.steps.start + j
        shift = self.first + j
        for signal, spread in block.spreads.items():
            self.norms[signal][j, shift + lags.start : shift + lags.stop] = row_norms(rows * spread.lengths[at])
            if signal not in self.probes:
                spread.dense_(rows, at, self.rows[signal][j, lags])
        moved = linear(rows, matrix)
        order = sorted(self.probes, key=lambda signal: signal != block.recurrent)  # as in block.weights
        back, *projections = moved.split([len(block.w_back), *(len(self.probes[signal]) for signal in order)], dim=1)
        block.close_(rows, back, at)
        for signal, projection in zip(order, projections, strict=True):
            self.rows[signal][j, lags] = projection

    def _dense(self, carried: Tensor) -> None:
        n = self.steps.stop - self.steps.start
        for j in range(n - 1, -1, -1):
            k = self.first + j
            for signal, values in self.block.pull_(carried[k:], self.steps.start + j).items():
                if j == n - 1:
                    self.heads[signal] = values.new_zeros(n, values.shape[1])
                    self.totals[signal] = values.new_zeros(n, values.shape[1])
                self.heads[signal][j], self.totals[signal][j] = values[0], values.sum(0)
                self.norms[signal][j, k:] = row_norms(values)
                kept = linear(values, self.probes[signal]) if signal in self.probes else values
                self.rows[signal][j, : len(values)] = kept
            cut_(self.recurrence, k, carried[k:])
