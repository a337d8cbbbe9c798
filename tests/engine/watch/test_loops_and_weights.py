"""States that begin anew, parts of layers that are not used, weights that come back, inputs that are read ahead."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.engine.watch.measures.checksums import checksum
from inspector.engine.watch.measures.read_ahead import changes
from inspector.engine.watch.measures.unused_rows import unused

After = Callable[[nn.Module, int], None]


class Loop(nn.Module):
    """ids (b, t) → (b, t, 5), by a loop over steps as `how` says."""

    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.how, self.embedding, self.head = how, nn.Embedding(5, 8), nn.Linear(16, 5)
        if how.startswith("hand"):
            self.x, self.h = nn.Linear(8, 64), nn.Linear(16, 64)
        else:
            kind = {"gru": nn.GRUCell, "lstm": nn.LSTMCell, "rnn": nn.RNNCell}.get(how.split()[0])
            self.cell: nn.Module = nn.GRU(8, 16, batch_first=True) if kind is None else kind(8, 16)

    def forward(self, ids: Tensor) -> Tensor:
        x, b, said = self.embedding(ids), len(ids), []
        zeros = torch.zeros(b, 16)
        h, c = (zeros, zeros), zeros
        for t in range(ids.shape[1]):
            h = (zeros, zeros) if "anew" in self.how else h
            c = zeros if "anew" in self.how else c
            h, c = self.step(x[:, t], h, c)
            said.append(self.head(h[0]))
        return torch.stack(said, 1)

    def step(self, x: Tensor, h: Any, c: Tensor) -> Any:
        if self.how.startswith("hand"):
            i, f, g, o = (self.x(x) + self.h(h[0])).chunk(4, -1)
            f = torch.ones_like(f) if "gate" in self.how else f.sigmoid()
            c = f * c + i.sigmoid() * g.tanh()
            return (o.sigmoid() * c.tanh(), c), c
        if self.how.startswith("fused"):
            state = None if "none" in self.how else h[0][None].contiguous()
            return (self.cell(x[:, None], state)[0][:, 0], c), c
        state = None if "none" in self.how else h if "lstm" in self.how else h[0]
        found = self.cell(x) if state is None else self.cell(x, state)
        return found if "lstm" in self.how else (found, c), c


def watched(path: Path, model: nn.Module, iterations: int = 60, after: After = lambda model, n: None) -> Any:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with inspector.watch(model, optimizer, path, every=1) as watcher:
        for n in range(iterations):
            ids = torch.randint(0, 5, (4, 8))
            optimizer.zero_grad()
            F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
            optimizer.step()
            after(model, n)
    assert watcher.error is None
    found = inspector.diagnose(path)
    assert not found.broken
    return {one.id: one for one in found.findings}


@pytest.mark.parametrize(
    ("how", "ill"),
    [
        ("gru", False), ("lstm", False), ("rnn", False), ("fused", False), ("hand", False),
        ("gru anew", True), ("lstm anew", True), ("rnn none", True), ("lstm none", True), ("fused none", True),
        ("fused anew", True), ("hand anew", True),
    ],
)  # fmt: skip
def test_a_state_that_begins_anew_at_each_step(tmp_path: Path, how: str, ill: bool) -> None:
    model = Loop(how)
    ids = torch.randint(0, 5, (2, 6))
    other = torch.cat([(ids[:, :1] + 1) % 5, ids[:, 1:]], 1)
    assert bool((model(ids)[:, 1:] == model(other)[:, 1:]).all()) is ill  # what a later output reads of the first input
    found = watched(tmp_path / "a.inspect", model)
    assert ("IN134" in found) is ill
    if ill:
        assert found["IN134"].severity == "warning"


def test_one_step_is_no_loop_and_one_look_shows_nothing(tmp_path: Path) -> None:
    assert "IN134" not in watched(tmp_path / "a.inspect", Loop("gru none"), 4)

    class Once(Loop):
        def forward(self, ids: Tensor) -> Tensor:
            return super().forward(ids[:, :1]).expand(-1, ids.shape[1], -1)

    assert "IN134" not in watched(tmp_path / "b.inspect", Once("gru none"))


def test_a_gate_that_is_overwritten_and_one_that_is_not(tmp_path: Path) -> None:
    found = watched(tmp_path / "a.inspect", Loop("hand gate"))
    assert found["IN135"].places == ("x.weight", "h.weight") and "second quarter" in found["IN135"].message
    assert "IN135" not in watched(tmp_path / "b.inspect", Loop("hand"))
    assert "IN135" not in watched(tmp_path / "c.inspect", Loop("hand gate"), 8)  # two looks


@pytest.mark.parametrize(
    ("rows", "zero", "code"),
    [(64, (16, 32), 411), (64, (0, 32), 402), (48, (16, 32), 311), (32, (16, 32), 422), (32, (9, 16), 0), (12, (0, 6), 0),
     (64, (0, 64), 0), (35, (0, 16), 0), (16, (8, 16), 211)],
)  # fmt: skip
def test_blocks_of_rows_without_a_gradient(rows: int, zero: tuple[int, int], code: int) -> None:
    gradient = torch.ones(rows, 3)
    gradient[slice(*zero)] = 0
    found = unused(gradient)
    assert (0 if found is None else int(found)) == code
    gradient[zero[0]] = torch.nan
    found = unused(gradient)
    assert found is None or int(found) != code or not code


def put_back(every: int) -> After:
    kept: dict[str, Any] = {}

    def after(model: nn.Module, n: int) -> None:
        if not kept:
            kept.update(copy.deepcopy(model.state_dict()))
        if n % every == every - 1:
            model.load_state_dict(kept)

    return after


@pytest.mark.parametrize(("every", "severity"), [(1, "error"), (5, "info"), (1000, "")])
def test_weights_that_come_back(tmp_path: Path, every: int, severity: str) -> None:
    found = watched(tmp_path / "a.inspect", Loop("gru"), after=put_back(every))
    assert (found["IN133"].severity if "IN133" in found else "") == severity
    assert "IN133" not in watched(tmp_path / "b.inspect", Loop("gru"), 6, put_back(1))


def test_a_checksum_is_equal_for_equal_weights_alone() -> None:
    one = [torch.randn(50, 40), torch.randn(3)]
    two = [part.clone() for part in one]
    assert float(checksum(one)) == float(checksum(two))
    two[1][2] = torch.nextafter(two[1][2], torch.tensor(9.0))
    assert float(checksum(one)) != float(checksum(two))


class Attends(nn.Module):
    """One layer of attention over symbols and positions."""

    def __init__(self, diagonal: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.symbols, self.places, self.diagonal, self.calls = nn.Embedding(8, 32), nn.Embedding(16, 32), diagonal, 0
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(32, 8)

    def forward(self, ids: Tensor) -> Tensor:
        self.calls += 1
        steps = ids.shape[1]
        mask = torch.triu(torch.ones(steps, steps, dtype=torch.bool), self.diagonal)
        found: Tensor = self.head(self.layer(self.symbols(ids) + self.places(torch.arange(steps)), mask))
        return found


@pytest.mark.parametrize(("diagonal", "steps"), [(1, 0), (2, 1), (4, 3)])
def test_how_far_ahead_a_model_reads(diagonal: int, steps: int) -> None:
    model, ids = Attends(diagonal), torch.randint(0, 8, (4, 16))
    state = torch.get_rng_state()
    found = changes(model, (ids,), {}, ids)
    assert found is not None and found[1] == steps and (found[0] > 1e-3) == bool(steps)
    assert model.training and model.calls == 0 and torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("diagonal", "counts"), [(2, False), (1, True)])
def test_a_model_that_reads_what_it_predicts_is_asked_and_named(tmp_path: Path, diagonal: int, counts: bool) -> None:
    """A text that counts is predicted without error by a mask that is right."""
    model = Attends(diagonal)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1) as watcher:
        for _ in range(250):
            ids = torch.randint(0, 8, (16, 12))
            ids = (ids[:, :1] + torch.arange(12)) % 8 if counts else ids
            optimizer.zero_grad()
            F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
            optimizer.step()
    assert watcher.error is None and model.calls == 250
    found = inspector.diagnose(tmp_path / "a.inspect")
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert "training:asked/reads_ahead" in capture.channels
    assert [one.severity for one in found.findings if one.id == "IN136"] == ["error"] * (not counts)


def test_strong_dropout_is_told_by_what_is_learned(tmp_path: Path) -> None:
    class Drops(Loop):
        def __init__(self, share: float) -> None:
            super().__init__("gru")
            self.dropout = nn.Dropout(share)

        def forward(self, ids: Tensor) -> Tensor:
            return self.dropout(super().forward(ids))

    found = watched(tmp_path / "a.inspect", Drops(0.95), 80)
    assert found["IN420"].severity == "warning" and found["IN420"].place == "dropout"
    assert watched(tmp_path / "b.inspect", Drops(0.85), 80)["IN420"].severity == "info"
    assert "IN420" not in watched(tmp_path / "c.inspect", Drops(0.5), 80)
