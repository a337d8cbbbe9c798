"""Chunks of a sweep against the same sweep step by step, whatever the lengths, tiles and rooms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from families import FAMILIES, make, numbers, walk
from kept import Kept
from torch import Tensor

from inspector.engine.analyses import itemised_bptt as itemised
from inspector.engine.analyses import itemised_tiles as items
from inspector.engine.cells import spread_block as spread
from inspector.engine.cells.base import Cell
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.quantities.gradient import bptt as bptt_file
from inspector.engine.quantities.gradient.gradient_map import gradient_map
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence

D = torch.float64
CLOSE = {"rtol": 1e-10, "atol": 1e-13}
KINDS = [*FAMILIES, "own"]


def own_step() -> FunctionStep:
    given = {"U": numbers(4, 3), "W": numbers(4, 4), "gain": torch.rand((), dtype=D)}

    def function(x: Tensor, state: Tensor, U: Tensor, W: Tensor, gain: Tensor) -> Tensor:
        return gain * torch.tanh(x @ U.T + state @ W.T)

    return FunctionStep(function, {"h": slice(0, 4)}, parameters=given)


def recurrence(cell: Cell, lengths: tuple[int, ...], *, reverse: bool = False) -> Recurrence:
    """Samples of different lengths, padded, with gradients at every real state."""
    t, b = max(lengths), len(lengths)
    x = numbers(t, b, 3)
    arriving = numbers(t, b, cell.state_size)
    arriving[torch.arange(t)[:, None] >= torch.tensor(lengths)] = 0
    return Recurrence("p", "Own", cell, x, walk(cell, x), torch.tensor(lengths), reverse, arriving=arriving)


def every(item: Recurrence, sample: int, probes: dict[str, Tensor], room: int) -> list[items.Chunk]:
    return list(items.chunks(item, sample, Emitter(Kept()), "", probes, room))


def compare(item: Recurrence, sample: int, probed: bool, room: int) -> int:
    """Every chunk against the sources of its steps; the number of chunks."""
    length = item.length(sample)
    widths = items.widths(item, sample)
    probes = {signal: numbers(3, g) for signal, g in widths.items()} if probed else {}
    sources = {source.step: source for source in itemised.sweep(item, sample, Emitter(Kept()), "")}
    chunks = every(item, sample, probes, room)
    seen = []
    for chunk in chunks:
        n = len(next(iter(chunk.norms.values())))
        for j, k in enumerate(range(chunk.first, chunk.first + n)):
            seen.append(k)
            source = sources[k]
            assert set(source.rows) == set(chunk.norms) == set(chunk.rows) == set(chunk.heads) == set(chunk.totals)
            for signal, rows in source.rows.items():
                norms = torch.zeros(length, dtype=D)
                norms[k:] = rows.norm(dim=1)
                torch.testing.assert_close(chunk.norms[signal][j], norms, **CLOSE)
                torch.testing.assert_close(chunk.heads[signal][j], rows[0], **CLOSE)
                torch.testing.assert_close(chunk.totals[signal][j], rows.sum(0), **CLOSE)
                wanted = rows @ probes[signal].T if probed else rows
                by_lag = chunk.rows[signal][j].view(length - chunk.first, -1)
                torch.testing.assert_close(by_lag[: length - k], wanted, **CLOSE)
                assert bool((by_lag[length - k :] == 0).all())
            for name, (signal, factor) in source.factors.items():
                assert chunk.factors[name][0] == signal
                torch.testing.assert_close(chunk.factors[name][1][j], factor)
    assert sorted(seen) == list(range(length)), "every step once"
    return len(chunks)


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_hold_what_the_steps_give(monkeypatch: pytest.MonkeyPatch, kind: str, probed: bool) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(spread, "TILE_BYTES", 5 * 10 * 8)
    item = recurrence(own_step() if kind == "own" else make(kind), (20, 13, 1))
    for sample in range(3):
        compare(item, sample, probed, 1 << 30)
    assert compare(item, 0, probed, 1) == 20
    row = 20 * 8 * sum(3 if probed else g for g in items.widths(item, 0).values())
    assert compare(item, 0, probed, 3 * row) == 7


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 130])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_chunks_end_where_blocks_do(kind: str, length: int) -> None:
    torch.manual_seed(1)
    item = recurrence(make(kind), (length,))
    assert compare(item, 0, True, 1 << 30) == -(-length // 64)


@pytest.mark.parametrize("room", [1 << 30, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_of_a_parameter_is_made_of_its_items(
    monkeypatch: pytest.MonkeyPatch, kind: str, reverse: bool, room: int
) -> None:
    """Map, both curves by lag and the scalars, from outer products that are written down one by one."""
    torch.manual_seed(2)
    item, kept = recurrence(own_step() if kind == "own" else make(kind), (70, 67), reverse=reverse), Kept()
    length = 67
    monkeypatch.setattr(bptt_file, "chunks", lambda *given: items.chunks(*given[:-1], room))
    assert bptt_file.bptt.function is not None
    bptt_file.bptt.function(item, Emitter(kept), 1)
    assert not kept.refusals()
    found: dict[str, Tensor] = {}
    for source in itemised.sweep(item, 1, Emitter(Kept()), ""):
        for name, (signal, factor) in source.factors.items():
            one = torch.einsum("ng,r->ngr", source.rows[signal], factor).flatten(1)
            store = found.setdefault(name, torch.zeros(length, length, one.shape[1], dtype=D))
            store[source.step :, source.step] = one
    for name, own in found.items():
        base, shown = f"p:bptt/{name}", own.norm(dim=2)
        np.testing.assert_allclose(kept.array(base), shown.flip(0, 1) if reverse else shown, rtol=1e-9, atol=1e-13)
        lag = kept.array(f"{base}/lag")
        for distance in range(length):
            own_lag = torch.stack([own[k + distance, k] for k in range(length - distance)])
            np.testing.assert_allclose(lag[0, distance], float(own_lag.sum(0).norm()), rtol=1e-8, atol=1e-13)
            np.testing.assert_allclose(lag[1, distance], float(own_lag.norm(dim=1).sum()), rtol=1e-9, atol=1e-13)
        assert kept.scalar(f"{base}/total_norm") == pytest.approx(float(own.sum((0, 1)).norm()), rel=1e-9)
        first = own[torch.arange(length), torch.arange(length)].sum(0)
        assert kept.scalar(f"{base}/immediate_norm") == pytest.approx(float(first.norm()), rel=1e-9)


def long_decay() -> tuple[Recurrence, Recurrence]:
    """One LSTM in float32 and in float64: gradients shrink to a third at every step."""
    torch.manual_seed(3)
    h = 8
    bias = torch.cat((torch.zeros(h), torch.full((h,), -0.7), torch.zeros(2 * h))).double()
    weights = [numbers(4 * h, 3), numbers(4 * h, h, scale=0.05), bias, torch.zeros(4 * h, dtype=D)]
    x, arriving = numbers(110, 1, 3), numbers(110, 1, 2 * h)
    states = walk(LstmStep(*weights), x)
    found = []
    for dtype in (torch.float32, D):
        cell = LstmStep(*(value.to(dtype) for value in weights))
        given = (x.to(dtype), states.to(dtype), torch.tensor([110]))
        found.append(Recurrence("p", "LSTM", cell, *given, arriving=arriving.to(dtype)))
    return found[0], found[1]


def test_entries_keep_their_relative_precision_down_to_the_end_of_float32() -> None:
    for quantity, name in ((bptt_file.bptt, "p:bptt/weight_hh"), (gradient_map, "p:gradient/lag_map")):
        shown = []
        for item in long_decay():
            kept = Kept()
            assert quantity.function is not None
            quantity.function(item, Emitter(kept), 0)
            shown.append(kept.array(name).astype(float))
        found, truth = shown
        tiny = (truth < 1e-24) & (truth > 1e-35)
        assert tiny.sum() > 100, "squares of these vanish in float32"
        np.testing.assert_allclose(found[truth > 1e-35], truth[truth > 1e-35], rtol=1e-4)


def test_the_norm_of_a_row_neither_overflows_nor_vanishes() -> None:
    for size in (1e-37, 1e-25, 1.0, 1e25, 1e37):
        rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [torch.nan, 1.0]]) * size
        norms = itemised.row_norms(rows)
        assert norms.dtype == D and float(norms[0]) == pytest.approx(5 * size, rel=1e-6)
        assert float(norms[1]) == 0 and bool(norms[2].isnan())
