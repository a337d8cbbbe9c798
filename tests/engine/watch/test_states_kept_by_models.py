"""States that hand-written cells keep in attributes: those that the next call reads are seen, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from continued import ROWS, SYMBOLS, cut, fired, going_on, series, shuffled, train
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack

from inspector.engine.watch.states.state_sources import sources

WIDE = 6


class Cell(nn.Module):
    """h ← tanh(W [x, h]) with a state in an attribute; what happens to it is for the kinds below."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(SYMBOLS, 5), nn.Linear(5 + WIDE, WIDE), nn.Linear(WIDE, SYMBOLS)
        self.h: Any = None

    def first(self, ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), WIDE) if self.h is None else self.h

    def last(self, h: Tensor) -> None:
        self.h = h.detach()

    def forward(self, ids: Tensor, _: Any = None) -> Any:
        h, outs = self.first(ids), []
        for x in self.embed(ids).unbind(1):
            h = torch.tanh(self.cell(torch.cat([x, h], 1)))
            outs.append(h)
        self.last(h)
        return self.head(torch.stack(outs, 1)), None


class Buffered(Cell):
    """Written into a buffer, in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(ROWS, WIDE), persistent=False)

    def first(self, ids: Tensor) -> Tensor:
        return self.state.clone()  # type: ignore[no-any-return]

    def last(self, h: Tensor) -> None:
        self.state.copy_(h.detach())


class InRecord(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), WIDE) if self.h is None else self.h.kept["h"]  # type: ignore[no-any-return]

    def last(self, h: Tensor) -> None:
        self.h = SimpleNamespace(kept={"h": h.detach()})


class CutAtTheBeginning(Cell):
    """With its graph until the next call."""

    def first(self, ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), WIDE) if self.h is None else self.h.detach().clone()

    def last(self, h: Tensor) -> None:
        self.h = h


class Halved(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return 0.5 * super().first(ids)


class Dropped(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return nn.functional.dropout(super().first(ids), 0.2)


class Matrices(Cell):
    """Linear attention written out, whose state is (b, d, d)."""

    def forward(self, ids: Tensor, _: Any = None) -> Any:
        x, outs = self.embed(ids), []
        state = torch.zeros(len(ids), 5, 5) if self.h is None else self.h
        for one in x.unbind(1):
            state = 0.9 * state + one[:, :, None] * one[:, None, :]
            outs.append((state @ one[:, :, None])[..., 0])
        self.h = state.detach()
        return self.head(torch.nn.functional.pad(torch.stack(outs, 1), (0, 1))), None


READ = [Cell, Buffered, InRecord, CutAtTheBeginning, Halved, Dropped, Matrices]


@pytest.mark.parametrize("model", READ)
@pytest.mark.parametrize("batches", [going_on, shuffled])
def test_states_that_are_read_are_seen(tmp_path: Path, model: type[Cell], batches: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", model(), batches())
    rows = series(tmp_path / "a.inspect")["rows"]
    assert np.isfinite(rows).sum() >= 20 and (rows[np.isfinite(rows)] == 1).all()
    assert bool(fired(tmp_path / "a.inspect")) == (batches is shuffled)


class Remembered(Cell):
    """For a plot: nothing reads it."""

    def first(self, ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), WIDE)


class ShapeOnly(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), WIDE) if self.h is None else torch.zeros_like(self.h)


class MadeAnew(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return torch.zeros(len(ids), WIDE) if self.h is None else self.h.new_zeros(self.h.shape)


class WrittenOver(Buffered):
    def first(self, ids: Tensor) -> Tensor:
        self.state.zero_()
        return self.state.clone()  # type: ignore[no-any-return]


class SetToZero(Buffered):
    def first(self, ids: Tensor) -> Tensor:
        self.state[:] = 0
        return self.state + 0  # type: ignore[no-any-return]


class TimesZero(Cell):
    """As loops do that begin anew at a sign: every row has one here."""

    def first(self, ids: Tensor) -> Tensor:
        return super().first(ids) * (ids[:, :1] < 0)


class Chosen(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return torch.where(ids[:, :1] >= 0, torch.zeros(len(ids), WIDE) + 0.1, super().first(ids))


class Masked(Cell):
    def first(self, ids: Tensor) -> Tensor:
        return super().first(ids).masked_fill(ids[:, :1] >= 0, 0.0)


class RowsSet(Cell):
    def first(self, ids: Tensor) -> Tensor:
        h = super().first(ids).clone()
        h[ids[:, 0] >= 0] = 0
        return h


class Constant(Cell):
    """A table that happens to have as many rows as a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(ROWS, WIDE))

    def first(self, ids: Tensor) -> Tensor:
        return self.table * 1.0  # type: ignore[no-any-return]

    def last(self, h: Tensor) -> None:
        pass


UNREAD = [Remembered, ShapeOnly, MadeAnew, WrittenOver, SetToZero, TimesZero, Chosen, Masked, RowsSet, Constant]


@pytest.mark.parametrize("model", UNREAD)
def test_states_that_begin_anew_are_none(tmp_path: Path, model: type[Cell]) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", model(), shuffled())
    rows = series(tmp_path / "a.inspect")["rows"]
    assert not np.nansum(rows) and not fired(tmp_path / "a.inspect")


@pytest.mark.parametrize("model", [Cell, Buffered, Dropped, Matrices])
def test_watching_changes_no_bit(tmp_path: Path, model: type[Cell]) -> None:
    ended = []
    for path in (None, tmp_path / "a.inspect"):
        torch.manual_seed(0)
        net = model()
        losses = train(path, net, shuffled(iterations=20), every=1)
        ended.append((losses, [one.clone() for one in net.parameters()], torch.rand(3)))
    assert ended[0][0] == ended[1][0] and torch.equal(ended[0][2], ended[1][2])
    assert all(torch.equal(a, b) for a, b in zip(ended[0][1], ended[1][1], strict=True))


class Raising(Cell):
    """Every third call fails, and the loop goes on, as after an error of memory."""

    calls = 0

    def last(self, h: Tensor) -> None:
        super().last(h)
        self.calls += 1
        if self.calls % 3 == 2:
            raise ValueError("no memory")


def test_nothing_follows_operations_after_a_call_that_raised(tmp_path: Path) -> None:
    import inspector

    torch.manual_seed(0)
    model = Raising()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1):
        for ids in shuffled(iterations=12):
            try:
                logits, _ = model(ids)
            except ValueError:
                assert not _get_current_function_mode_stack()
                continue
            assert not _get_current_function_mode_stack()
            optimizer.zero_grad()
            logits.square().mean().backward()
            optimizer.step()
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


class Given(nn.Module):
    """A cell whose state the loop hands in, as (b, n)."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, ids: Tensor, state: Any = None) -> Any:
        self.cell.h = state
        logits, _ = self.cell(ids)
        return logits, self.cell.h


@pytest.mark.parametrize("case", ["scaled", "dropped", "mixed with the mean", "learned and kept", "noise"])
@pytest.mark.parametrize("batches", [going_on, shuffled])
def test_what_the_loop_does_to_a_state(tmp_path: Path, case: str, batches: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    begun = torch.randn(WIDE)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "scaled": lambda h: 0.7 * h,
        "dropped": lambda h: nn.functional.dropout(h, 0.2),
        "mixed with the mean": lambda h: 0.8 * h + 0.2 * h.mean(0),
        "learned and kept": lambda h: 0.6 * h + 0.4 * begun,
        "noise": lambda h: torch.randn_like(h),
    }
    train(tmp_path / "a.inspect", Given(), batches(), lambda state: None if state is None else ways[case](cut(state)))
    rows = series(tmp_path / "a.inspect")["rows"]
    rows = rows[np.isfinite(rows)]
    assert len(rows) >= 20 and (rows > 0.5).all() == (case != "noise")
    assert bool(fired(tmp_path / "a.inspect")) == (batches is shuffled and case != "noise")


def test_sources_by_their_definitions() -> None:
    make = torch.Generator().manual_seed(0)
    last = torch.randn(9, 8, generator=make)
    order = torch.randperm(9, generator=make)
    assert sources({"a": [last]}, {"a": [last[order]]}).tolist() == order.tolist()  # type: ignore[union-attr]
    assert sources({"a": [last]}, {"a": [-3 * last[order]]}).tolist() == order.tolist()  # type: ignore[union-attr]
    masked = last * (torch.arange(8) % 3 > 0)
    assert sources({"a": [last]}, {"a": [masked[order] / 0.6]}).tolist() == order.tolist()  # type: ignore[union-attr]
    near = last + 1e-3 * torch.randn(9, 8, generator=make)
    for begun in (near, torch.randn(9, 8, generator=make), 1e-3 * last, torch.ones(9, 8), torch.zeros(9, 8)):
        assert sources({"a": [last]}, {"a": [begun]}).tolist() == [-1] * 9  # type: ignore[union-attr]
    assert sources({"a": [last]}, {"a": [last / 4 + torch.arange(8)]}).tolist() == list(range(9))  # type: ignore[union-attr]
    assert sources({"a": [last[:, :3]]}, {"a": [2 * last[:, :3]]}).tolist() == [-1] * 9  # type: ignore[union-attr]


def test_more_rows_than_are_compared(tmp_path: Path) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", Cell(), shuffled(rows=70))
    assert np.isfinite(series(tmp_path / "a.inspect")["follows"]).sum() >= 20 and fired(tmp_path / "a.inspect")
