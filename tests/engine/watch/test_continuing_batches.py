"""States that are handed on from batch to batch: whether the sequences go on too, and the rule that judges it."""

from __future__ import annotations

import copy
import io
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from continued import NAMES, ROWS, STEPS, SYMBOLS, Batches, fired, going_on, series, shuffled, train
from torch import Tensor, nn

import inspector
from inspector.capture import open_capture


class Fused(nn.Module):
    """The loop hands the state in."""

    def __init__(self, kind: type[nn.RNNBase] = nn.GRU, first: bool = True) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(SYMBOLS, 5), kind(5, 7, num_layers=2, batch_first=first)  # type: ignore[arg-type]
        self.head = nn.Linear(7, SYMBOLS)

    def forward(self, ids: Tensor, state: Any = None) -> Any:
        out, state = self.rnn(self.embed(ids), state)
        return self.head(out), state


class Kept(nn.Module):
    """A loop over a cell that keeps the state in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(SYMBOLS, 5), nn.LSTMCell(5, 7), nn.Linear(7, SYMBOLS)
        self.state: Any = None

    def forward(self, ids: Tensor, fresh: Any = None) -> Any:
        state, outs = self.state, []
        for x in self.embed(ids).unbind(1):
            state = self.cell(x, state)
            outs.append(state[0])
        self.state = tuple(one.detach() for one in state)
        return self.head(torch.stack(outs, 1)), None


class Written(nn.Module):
    """A cell that torch does not know, whose state is an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(SYMBOLS, 5), nn.Linear(12, 7), nn.Linear(7, SYMBOLS)

    def forward(self, ids: Tensor, state: Any = None) -> Any:
        h = torch.zeros(len(ids), 7) if state is None else state
        outs = []
        for x in self.embed(ids).unbind(1):
            h = torch.tanh(self.cell(torch.cat([x, h], 1)))
            outs.append(h)
        return self.head(torch.stack(outs, 1)), h


class Memory(nn.Module):
    """Attention over the states of the piece before, as Transformer-XL has them: (b, t, n)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(SYMBOLS, 8), nn.Linear(8, SYMBOLS)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids: Tensor, memory: Any = None) -> Any:
        h = self.embed(ids)
        keys = h if memory is None else torch.cat([memory, h], 1)
        return self.head(h + self.attend(h, keys, keys, need_weights=False)[0]), h


class Learned(Fused):
    """A first state that is learned: the same for all."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.randn(2, 1, 7))

    def forward(self, ids: Tensor, state: Any = None) -> Any:
        out, _ = self.rnn(self.embed(ids), self.begin.expand(-1, len(ids), -1).contiguous())
        return self.head(out), None


MODELS = {"gru": Fused, "lstm": lambda: Fused(nn.LSTM), "cell kept": Kept, "written": Written, "memory": Memory}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batches", [going_on, shuffled])
def test_shuffled_pieces_are_named_and_a_text_that_goes_on_is_not(
    tmp_path: Path, model: str, batches: Callable[[], Batches]
) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", MODELS[model](), batches())
    found = series(tmp_path / "a.inspect")
    known = np.isfinite(found["follows"])
    assert known.sum() >= 20 and (found["rows"][np.isfinite(found["rows"])] == 1).all()
    assert bool(fired(tmp_path / "a.inspect")) == (batches is shuffled)


def test_the_numbers_are_those_of_counting(tmp_path: Path) -> None:
    """Every iteration recorded: calls 1 and 2 are compared, 3 and 4, …; written out with whole counts."""
    torch.manual_seed(0)
    pieces = list(shuffled(iterations=13, rows=5))
    train(tmp_path / "a.inspect", Fused(), iter(pieces), every=1)
    found = series(tmp_path / "a.inspect")
    pairs: Counter[tuple[int, int]] = Counter()
    firsts: list[int] = []
    expected = []

    def score(a: int, b: int) -> float:
        total, before = sum(pairs.values()), sum(n for (x, _), n in pairs.items() if x == a)
        after = sum(n for (_, y), n in pairs.items() if y == b)
        if not before:
            return 0.0
        share = (after + 1) / (total + len({y for _, y in pairs}) + 1)
        return math.log((pairs[a, b] + share) / (before + 1) / share)

    for here, there in zip(pieces[0::2], pieces[1::2], strict=False):
        last, first = here[:, -1].tolist(), there[:, 0].tolist()
        follows = [score(a, b) for a, b in zip(last, first, strict=True)]
        others = []
        for n, a in enumerate(last):
            rest = [first[(n + k) % 5] for k in range(1, 5)] + firsts[-8:]
            others += [score(a, b) for b in rest[:8]]
        steps = [(int(row[t]), int(row[t + 1])) for row in here for t in range(STEPS - 1)]
        expected.append([np.mean(follows), np.mean(others), np.mean([score(a, b) for a, b in steps])])
        pairs.update(steps)
        firsts += first
    values = np.stack([found[name] for name in NAMES[1:]], 1)
    np.testing.assert_allclose(values[np.isfinite(values[:, 0])], np.array(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", ["reset", "learned", "zeroed", "half of the rows"])
def test_a_state_that_is_not_the_last_one_is_none(tmp_path: Path, case: str) -> None:
    torch.manual_seed(0)
    model = Learned() if case == "learned" else Fused()

    def keeps(state: Any) -> Any:
        if case == "reset":
            return None
        if case == "zeroed":
            return state.detach().zero_()
        if case == "half of the rows":
            return state.detach() * (torch.arange(ROWS) < 5)[:, None]
        return state

    train(tmp_path / "a.inspect", model, shuffled(), keeps)
    found = series(tmp_path / "a.inspect")
    rows = found["rows"][np.isfinite(found["rows"])]
    if case != "reset":  # nothing to compare there
        assert len(rows) and np.allclose(rows, 5 / ROWS if case == "half of the rows" else 0)
    assert not fired(tmp_path / "a.inspect")


def test_rows_that_change_places_are_followed(tmp_path: Path) -> None:
    """A loader that sorts its rows anew, and sorts the states with them."""
    torch.manual_seed(0)
    orders = [torch.from_numpy(np.random.default_rng(n).permutation(ROWS)) for n in range(61)]
    number = iter(range(1, 61))
    batches = (ids[orders[n]] for n, ids in enumerate(going_on()))

    def keeps(state: Tensor) -> Tensor:
        n = next(number)
        return state.detach()[:, torch.argsort(orders[n - 1])][:, orders[n]]

    train(tmp_path / "a.inspect", Fused(), batches, keeps)
    found = series(tmp_path / "a.inspect")
    assert np.nanmin(found["rows"]) == 1 and not fired(tmp_path / "a.inspect")
    gone = np.nanmean(found["follows"][5:] - found["others"][5:])
    assert gone > 0.5 * np.nanmean(found["within"][5:] - found["others"][5:])


def test_steps_that_tell_nothing_of_each_other_are_not_judged(tmp_path: Path) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", Fused(), shuffled(told=0.0))
    assert np.isfinite(series(tmp_path / "a.inspect")["follows"]).sum() >= 20
    assert not fired(tmp_path / "a.inspect")


def test_too_few_batches_are_not_judged(tmp_path: Path) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", Fused(), shuffled(iterations=12))
    assert not fired(tmp_path / "a.inspect")


@pytest.mark.parametrize("batches", [going_on, shuffled])
def test_time_before_batch_and_as_many_steps_as_rows(tmp_path: Path, batches: Callable[..., Batches]) -> None:
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", Fused(first=False), batches(rows=STEPS), turn=True)
    assert bool(fired(tmp_path / "a.inspect")) == (batches is shuffled)


class Series(nn.Module):
    """Vectors (b, t, 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 6, batch_first=True), nn.Linear(6, SYMBOLS)

    def forward(self, x: Tensor, state: Any = None) -> Any:
        out, state = self.rnn(x, state)
        return self.head(out), state


@pytest.mark.parametrize("mixed", [False, True])
def test_series_of_vectors(tmp_path: Path, mixed: bool) -> None:
    torch.manual_seed(0)
    walk = torch.randn(6, 60 * STEPS, 3).mul(0.3).cumsum(1)
    walk = walk - walk.mean(1, keepdim=True)
    pieces = list(walk.split(STEPS, 1))
    order = np.random.default_rng(0).permutation(60) if mixed else range(60)
    model = Series()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    state = None
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=2):
        for n in order:
            out, state = model(pieces[n], state)
            state = state.detach()
            optimizer.zero_grad()
            out.square().mean().backward()
            optimizer.step()
    found = series(tmp_path / "a.inspect")
    assert np.isfinite(found["follows"]).sum() >= 20
    assert bool(fired(tmp_path / "a.inspect")) == mixed


def test_evaluation_copies_and_checkpoints_between_change_nothing(tmp_path: Path) -> None:
    def between(model: nn.Module) -> None:
        torch.save(model, io.BytesIO())
        copy.deepcopy(model)(torch.zeros(ROWS, STEPS, dtype=torch.long))
        model.eval()
        with torch.no_grad():
            model(torch.zeros(ROWS, STEPS, dtype=torch.long))
        model.train()

    losses = []
    for path in (None, tmp_path / "a.inspect"):
        torch.manual_seed(0)
        losses.append(train(path, Fused(), shuffled(), between=between))
    assert losses[0] == losses[1]
    assert np.nanmin(series(tmp_path / "a.inspect")["rows"]) == 1 and fired(tmp_path / "a.inspect")


def test_no_hook_is_left(tmp_path: Path) -> None:
    model = Fused()
    train(tmp_path / "a.inspect", model, shuffled(iterations=7))
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


def test_what_cannot_be_compared_ends_these_series_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("no rows here")

    monkeypatch.setattr("inspector.engine.watch.states.continuing.sources", broken)
    torch.manual_seed(0)
    train(tmp_path / "a.inspect", Fused(), shuffled(iterations=12))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.array("training:loss").shape[0] == 7 and capture.status == "done"
        assert [log.text for log in capture.logs] == [
            "Whether states go on with their sequences is not compared any more (RuntimeError: no rows here)."
        ]


def test_a_model_that_is_a_recurrent_module_itself(tmp_path: Path) -> None:
    """Its hook is put on while it is called, and taken off before torch comes to it."""
    torch.manual_seed(0)
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1):
        for _ in range(8):
            model(torch.randn(2, 4, 2))[0].square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    with open_capture(tmp_path / "a.inspect") as capture:
        assert not [line.text for line in capture.logs if "not compared any more" in line.text]
