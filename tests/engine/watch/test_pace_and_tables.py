"""How often is recorded, and how rows become pages."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept

from inspector.engine.analyses.fingerprints import projections, projections_at
from inspector.engine.watch.measure import Moment
from inspector.engine.watch.measures.activations import MOST_ENTRIES, _Copies
from inspector.engine.watch.measures.attending import entropies, largest_logits
from inspector.engine.watch.measures.in_cache import PIECE, SMALL, differences, quotients
from inspector.engine.watch.measures.now_and_then import BINS, exponents
from inspector.engine.watch.pace import Pace
from inspector.engine.watch.processes.shards import Block
from inspector.engine.watch.sums import not_finite, squares
from inspector.engine.watch.tables import About, Tables, blocks
from inspector.engine.watch.turns import Turns
from inspector.records import Channel, Labels, Page


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("inspector.engine.watch.pace.time", found)
    return found


def recorded(pace: Pace, clock: Clock, iterations: int, seconds: Any, cost: float) -> list[int]:
    """The iterations that are recorded where each takes `seconds` (a number, or by iteration) and a recording `cost`."""
    found, following = [], 1
    for n in range(1, iterations + 1):
        clock.now += seconds(n) if callable(seconds) else seconds
        if n >= following:
            clock.now += cost
            pace.spent += cost
            found.append(n)
            following = pace.after(n)
    return found


@pytest.mark.parametrize(("cost", "share"), [(0.001, 0.02), (0.05, 0.02), (0.5, 0.1), (0.0001, 0.5)])
def test_watching_takes_its_share_and_not_more(cost: float, share: float, clock: Clock) -> None:
    pace = Pace(None, share)
    found = recorded(pace, clock, 5000, 0.01, cost)
    assert found[0] == 1 and pace.cost <= share * 1.05 + cost / pace.seconds
    expected = min(5000, share * pace.seconds / cost)
    assert len(found) >= 0.8 * expected


def test_a_pause_is_not_followed_by_a_burst(clock: Clock) -> None:
    pace = Pace(None, 0.02)
    found = recorded(pace, clock, 3000, lambda n: 1000.0 if n == 1500 else 0.01, 0.005)
    assert sum(1500 <= n < 1520 for n in found) <= 8


def test_a_number_that_is_given_is_kept(clock: Clock) -> None:
    assert recorded(Pace(7, 0.02), clock, 30, 0.01, 10.0) == [1, 7, 14, 21, 28]


def test_rows_become_few_rectangles() -> None:
    rows = [{0: 1.0, 1: 2.0, 3: 4.0}, {0: 5.0, 1: 6.0, 3: 8.0}, {0: 9.0}, {}, {1: 7.0}]
    found = [(start, values.tolist()) for start, values in blocks(rows)]
    assert found == [
        ((0, 0), [[1.0, 2.0], [5.0, 6.0]]), ((0, 3), [[4.0], [8.0]]), ((2, 0), [[9.0]]), ((4, 1), [[7.0]]),
    ]  # fmt: skip


def test_a_page_a_table_a_flush_not_one_a_value() -> None:
    sink = Kept()
    tables = Tables(sink)
    tables.declare(About(name="a:curve", title="curve"))
    tables.declare(About(name="a:table", title="table", column=("module", "module")))
    for n in range(50):
        cells = {"a:curve": {0: float(n)}, "a:table": {tables.column("module", name): n for name in ("x", "y")}}
        tables.row("iteration", n, 0.1 * n, cells)
        if n == 24:
            tables.flush()
            tables.column("module", "z")
    tables.flush()
    pages = [(page.channel, page.offset, page.array.shape) for page in sink.of(Page)]
    assert sorted(pages) == sorted(
        (name, (start, 0)[:width], (25, 2)[:width])
        for start in (0, 25)
        for name, width in (("a:curve", 1), ("a:table", 2), ("training:iteration", 1), ("training:time", 1))
    )
    assert [channel.name for channel in sink.of(Channel)][:2] == ["training:iteration", "training:time"]
    assert [(one.names, one.start) for one in sink.of(Labels)] == [(("x", "y"), 0), (("z",), 2)]


def test_sums_piece_by_piece_are_those_of_the_whole() -> None:
    torch.manual_seed(0)
    a, b = ([torch.randn(n) for n in (3, PIECE, 2 * PIECE + 7, SMALL, SMALL + 1)] for _ in range(2))
    moved, held = differences(a, b)
    assert torch.allclose(
        moved, torch.stack([(x - y).double().square().sum() for x, y in zip(a, b, strict=True)]), rtol=1e-5
    )
    assert torch.allclose(held, torch.stack([y.double().square().sum() for y in b]), rtol=1e-5)


def test_second_moments_of_a_large_parameter_are_those_of_evenly_spaced_pieces() -> None:
    """Of more than 8,192 entries four pieces of 2,048, the first and the last among them, stand for all."""
    torch.manual_seed(0)
    g, v = ([torch.rand(n) + 0.1 for n in (3, 8192, 50_007)] for _ in range(2))
    least = (0.6, 1e-8, 1e-8)
    starts = [n * (50_007 - 2048) // 3 for n in range(4)]
    assert starts[0] == 0 and starts[-1] + 2048 == 50_007
    taken = [torch.arange(3), torch.arange(8192), torch.cat([torch.arange(n, n + 2048) for n in starts])]
    total, relative = quotients(v, g, least)
    for n, (here, second, gradient) in enumerate(zip(taken, v, g, strict=True)):
        large = second.double()[here].clamp_min(least[n] ** 2)
        share = len(second) / len(here)
        assert float(total[n]) == pytest.approx(float(second.double()[here].sum()) * share, rel=1e-5)
        expected = float((gradient.double()[here].square() / large).sum()) * share
        assert float(relative[n]) == pytest.approx(expected, rel=1e-5)


def test_sums_of_squares_of_any_size_and_dtype() -> None:
    tensors = [
        torch.full((5,), 1e-30),
        torch.zeros(3),
        torch.full((4,), 1e30),
        torch.tensor([1.0, torch.nan, torch.inf]),
    ]
    found = squares(tensors)
    assert found[:3].tolist() == pytest.approx([5e-60, 0, 4e60], rel=1e-5) and not bool(found[3].isfinite())
    assert not_finite(tensors, found).tolist() == [0, 0, 0, 2]
    half = torch.full((1000,), 0.1, dtype=torch.bfloat16)
    assert float(squares([half])[0]) == pytest.approx(float(half.double().square().sum()), rel=1e-5)


def test_exponents_of_every_sort_of_number() -> None:
    values = torch.tensor([0.0, -0.0, 1.0, -1.5, 2.0, 1e-30, 1e-42, 1e30, torch.inf, torch.nan])
    found = {name: int(n) for name, n in zip(BINS, exponents(values), strict=True) if n}
    assert found == {"0": 2, "2^-40 or less": 2, "2^0": 2, "2^1": 1, "2^15 or more": 1, "not finite": 2}
    assert np.sum(list(found.values())) == len(values)


def test_modules_are_read_in_iterations_that_are_apart_or_in_all_where_numbers_decide() -> None:
    turns = Turns(4)
    assert [n for n in range(1, 12) if turns.has(Moment(n), False)] == [1, 5, 9]
    assert turns.has(Moment(12), True) and turns.has(Moment(12), False), "accumulated passes are of one iteration"
    assert not turns.has(Moment(15), False) and turns.has(Moment(16), False)
    tens = Turns(4)
    assert all(tens.has(Moment(n), False) for n in (1, 10, 20, 30))
    assert all(Turns(1).has(Moment(n), False) for n in (1, 2, 3))


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_entropy_by_rows_is_that_of_the_weights(scale: float) -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 5, 7) * scale
    shift = torch.zeros(3, 5, 7)
    shift[:, :, 5:] = -torch.inf
    shift[:, :, 0] = -2.0
    hidden = shift == -torch.inf
    weights = torch.softmax((scores + shift).double(), -1)
    expected = -(weights * weights.clamp_min(1e-300).log()).sum(-1).mean(-1)
    assert entropies(scores + shift).double() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert largest_logits(scores, shift).tolist() == scores.masked_fill(hidden, 0).abs().amax((1, 2)).tolist()
    assert largest_logits(scores, None).tolist() == scores.abs().amax((1, 2)).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("broken", [False, True])
def test_shares_of_activations_are_those_of_the_entries(dtype: torch.dtype, broken: bool) -> None:
    torch.manual_seed(0)
    rooms: list[torch.Tensor] = []
    parts = [torch.randn(n).relu().neg().to(dtype) for n in (1, 100, MOST_ENTRIES)]
    if broken:
        parts[1][3:5] = torch.tensor([torch.nan, -torch.inf])
    for _ in range(2):  # the room is used again
        copies = _Copies(rooms)
        for n, part in enumerate(parts):
            copies.take(str(n), part)
        names, shares = copies.shares()
    assert names == ["0", "1", "2"]
    for part, (zeros, mean, bad) in zip(parts, shares.tolist(), strict=True):
        assert zeros == pytest.approx(float((part == 0).double().mean()))
        assert bad == pytest.approx(float((~part.isfinite()).double().mean()))
        assert mean == pytest.approx(float(part.double().abs().mean()), rel=1e-3, nan_ok=True)


@pytest.mark.parametrize("whole", [(7,), (5, 3), (1, 9000), (9, 1, 70), (40, 3000)])
def test_projections_of_parts_add_up_to_those_of_the_whole(whole: tuple[int, ...]) -> None:
    """Cut along each axis into three pieces as torch.chunk does; the last may be smaller, or empty."""
    torch.manual_seed(0)
    values = torch.randn(whole, dtype=torch.float64)
    expected = projections(values.reshape(-1))
    for dim in range(len(whole)):
        total, begin, following = torch.zeros(16, dtype=torch.float64), 0, 0
        for part in values.tensor_split([-(-whole[dim] // 3) * n for n in (1, 2)], dim):
            shape, offset = tuple(part.shape), tuple(begin if n == dim else 0 for n in range(len(whole)))
            block, flat = Block(whole, shape, offset), part.reshape(-1)
            begin += shape[dim]
            start = block.start
            following += start is not None
            if not flat.numel():
                continue
            anywhere = projections_at(flat, partial(block.positions, device=flat.device))
            assert start is None or torch.allclose(projections(flat, start), anywhere, rtol=1e-9, atol=1e-9)
            total += anywhere
        assert torch.allclose(total, expected, rtol=1e-9, atol=1e-9)
        assert following == (3 if dim == 0 or set(whole[:dim]) == {1} else int(whole[dim] == 1))
