"""Linear attention with decay, computed chunk by chunk: within a chunk as one product, states passed on between chunks.

In the layout of Mamba-2's reference (Dao & Gu 2024, arXiv 2405.21060): queries C and keys B (b, c, l, a, n), values X
and the output (b, c, l, a, e), logarithms of decays (b, a, c, l); b sequence, c chunk, l step of a chunk, a head. The
parts are found by trying y_t = Σ_{s≤t} (C_t · B_s) exp(Σ_{s<j≤t} A_j) X_s on one head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call, given_to, results_of
from inspector.engine.scans.decayed import Decayed
from inspector.engine.scans.mixing import calls_named
from inspector.engine.scans.values import Flow, rounding, wide

BEFORE, AFTER = 16, 64
"""Operations before and after the running sum within a chunk among which the parts are looked for."""
TRIED = 96
"""Steps by which an equation is tried: some chunks, so that what is passed on between them counts."""


Part = tuple[Tensor, Tensor]
"""A tensor, and the rows of its first head."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The sizes of one such computation."""

    batch: int
    chunks: int
    length: int
    heads: int


def chunked_products(flow: Flow, steps: int, batch: int, sample: int) -> list[Decayed]:
    """Those of a run, whose sequences have `steps` steps."""
    found: list[Decayed] = []
    for n in calls_named(flow.table, "cumsum".__eq__):
        grid = _grid(flow.table.calls[n], steps, batch)
        if grid is None or any(n <= one.made for one in found):
            continue
        one = _of_grid(flow, n, grid, steps, sample)
        if one is not None:
            found.append(one)
    return found


def _grid(call: Call, steps: int, batch: int) -> Grid | None:
    """(b, a, c, l) with as many steps in all chunks as the sequence has, the last chunk padded."""
    given = call[1][0] if call[1] else None
    if not isinstance(given, Tensor) or given.dim() != 4 or not given.is_floating_point():
        return None
    b, a, c, length = given.shape
    fits = b == batch and steps <= c * length < steps + length
    return Grid(b, c, length, a) if fits else None


def _of_grid(flow: Flow, n: int, grid: Grid, steps: int, sample: int) -> Decayed | None:
    whole = _between(flow.table, n)
    logs = [one for one in whole if tuple(one.shape) == (grid.batch, grid.heads, grid.chunks, grid.length)]
    shape = (grid.batch, grid.chunks, grid.length, grid.heads)
    parts = {
        id(one): (one, _rows(one, sample, steps)) for one in whole if tuple(one.shape[:4]) == shape and one.dim() == 5
    }
    for decay in logs:
        between = _decays(wide(decay.detach()[sample, 0].flatten())[: min(TRIED, steps)])
        for query, key in _pairs(parts.values()):
            weights = query[1] @ key[1].T * between
            for value, y in _pairs(parts.values()):
                size = float(y[1].abs().max())
                error = float((weights @ value[1] - y[1]).abs().max())
                if size and y[0] is not value[0] and error <= rounding(y[0].dtype) * size:
                    arranged = partial(_arranged, steps)
                    own = [arranged(one[0].detach()) for one in (query, key, value)]
                    gains = decay.detach().exp().flatten(2)[..., :steps]
                    return Decayed(flow.value(y[0]).made, flow.value(y[0]), arranged, gains, *own)
    return None


def _arranged(steps: int, tensor: Tensor) -> Tensor:
    """(b, a, t, ·) from (b, c, l, a, ·), without what pads the last chunk."""
    return tensor.permute(0, 3, 1, 2, 4).flatten(2, 3)[:, :, :steps]


def _between(table: Table, n: int) -> list[Tensor]:
    """The tensors that operations around a running sum were given and made, once; the last ones made come first."""
    numbers = range(max(0, n - BEFORE), min(len(table.calls), n + AFTER))
    every = [one for k in reversed(numbers) for one in (*results_of(table.calls[k][3]), *given_to(table.calls[k]))]
    return [one for one in {id(one): one for one in every}.values() if one.is_floating_point()]


def _pairs(parts: Iterable[Part]) -> Iterator[tuple[Part, Part]]:
    for one in parts:
        for other in parts:
            if one[0].shape == other[0].shape:
                yield one, other


def _rows(tensor: Tensor, sample: int, steps: int) -> Tensor:
    """(t, ·) of the first head, the first steps, in double precision."""
    return wide(tensor.detach()[sample, :, :, 0].flatten(0, 1)[: min(TRIED, steps)])


def _decays(logs: Tensor) -> Tensor:
    """(t, s) Π_{s<j≤t} exp(logs_j), 0 above the diagonal."""
    total = logs.cumsum(0)
    between = total[:, None] - total
    return between.exp().tril() if bool(between.tril().isfinite().all()) else torch.zeros_like(between)
