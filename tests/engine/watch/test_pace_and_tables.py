"""How often is recorded, and how rows become pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept

from inspector.engine.watch.in_cache import PIECE, differences, quotients
from inspector.engine.watch.now_and_then import BINS, exponents
from inspector.engine.watch.pace import Pace
from inspector.engine.watch.sums import not_finite, squares
from inspector.engine.watch.tables import About, Tables, blocks
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
    a, b = ([torch.randn(n) for n in (3, PIECE, 2 * PIECE + 7)] for _ in range(2))
    moved, held = differences(a, b)
    assert torch.allclose(
        moved, torch.stack([(x - y).double().square().sum() for x, y in zip(a, b, strict=True)]), rtol=1e-5
    )
    assert torch.allclose(held, torch.stack([y.double().square().sum() for y in b]), rtol=1e-5)
    v = [x.square() for x in a]
    total, relative = quotients(v, b, [0.5, 0.6, 0.6])
    whole = torch.stack([x.double().sum() for x in v])  # of large tensors pieces stand for the rest
    assert torch.allclose(total[:1], whole[:1], rtol=1e-5) and torch.allclose(total, whole, rtol=0.05)
    expected = [
        (y.double().square() / x.double().clamp_min(s * s)).sum() for x, y, s in zip(v, b, (0.5, 0.6, 0.6), strict=True)
    ]
    whole = torch.stack(expected)
    assert torch.allclose(relative[:1], whole[:1], rtol=1e-4) and torch.allclose(relative, whole, rtol=0.05)


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
