"""A model that is trained to say what it reads at that very step: told from those that have to work for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.engine.watch.measures.read_ahead import changes

ROWS, STEPS, SYMBOLS, START = 8, 8, 7, 6
Loss = Callable[[nn.Module], Tensor]


class Reader(nn.Module):
    """ids (b, t) → (b, t, 7), step by step; `shifted`: the input is moved by one step inside, after a start symbol."""

    def __init__(self, shifted: bool = False, both: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(SYMBOLS, 16)
        self.rnn = nn.GRU(16, 32, batch_first=True, bidirectional=both)
        self.head, self.shifted = nn.Linear(64 if both else 32, SYMBOLS), shifted

    def forward(self, ids: Tensor) -> Tensor:
        if self.shifted:
            ids = torch.cat([torch.full_like(ids[:, :1], START), ids[:, :-1]], 1)
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


class Translator(nn.Module):
    """A source and what the decoder reads → (b, t, 7), with the encoder's last state as the decoder's first."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(SYMBOLS, 16), nn.Linear(64, SYMBOLS)
        self.encoder, self.decoder = nn.GRU(16, 64, batch_first=True), nn.GRUCell(16, 64)

    def forward(self, source: Tensor, read: Tensor) -> Tensor:
        h, out = self.encoder(self.embedding(source))[1][0], []
        for row in self.embedding(read).unbind(1):
            h = self.decoder(row, h)
            out.append(self.head(h))
        return torch.stack(out, 1)


def train(path: Path, model: nn.Module, loss: Loss, iterations: int = 150) -> tuple[Any, float]:
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, path, every=1, cost="full") as watcher:
        for _ in range(iterations):
            optimizer.zero_grad()
            found = loss(model)
            found.backward()
            optimizer.step()
    assert watcher.error is None
    return inspector.diagnose(path), float(found.detach())


def told(found: Any) -> list[str]:
    assert not found.broken
    return [one.severity for one in found.findings if one.id == "IN132"]


def words(steps: int = STEPS) -> Tensor:
    return torch.randint(0, START, (ROWS, steps))


def begun(x: Tensor) -> Tensor:
    """After a start symbol, without the last one."""
    return torch.cat([torch.full_like(x[:, :1], START), x[:, :-1]], 1)


def test_a_text_that_is_not_shifted_is_a_warning_once_it_is_learned(tmp_path: Path) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = words()
        return F.cross_entropy(model(x).transpose(1, 2), x)

    found, last = train(tmp_path / "a.inspect", Reader(), loss)
    assert last < 0.1 and told(found) == ["warning"]
    assert "the model copies it" in next(one.message for one in found.findings if one.id == "IN132")
    early, _ = train(tmp_path / "b.inspect", Reader(), loss, 6)
    assert told(early) == ["info"]  # nothing is learned yet
    both, last = train(tmp_path / "c.inspect", Reader(both=True), loss)
    assert last < 0.1 and told(both) == ["info"]  # it reads later inputs too, as an autoencoder does


def test_a_model_that_shifts_inside_is_not_said_to_copy(tmp_path: Path) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = (torch.randint(0, START, (ROWS, 1)) + torch.arange(STEPS)) % START
        return F.cross_entropy(model(x)[:, 1:].transpose(1, 2), x[:, 1:])

    found, last = train(tmp_path / "a.inspect", Reader(shifted=True), loss)
    assert last < 0.1 and told(found) == ["info"]
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert float(np.nanmax(capture.array("training:asked/reads_same"))) < 1e-4


@pytest.mark.parametrize("named", [False, True])
def test_a_decoder_that_reads_what_it_is_to_say(tmp_path: Path, named: bool) -> None:
    def loss(model: nn.Module) -> Tensor:
        x = words()
        said = model(source=x.flip(1), read=x) if named else model(x.flip(1), x)
        return F.cross_entropy(said.flatten(0, 1), x.flatten())

    found, last = train(tmp_path / "a.inspect", Translator(), loss)
    assert last < 0.1 and told(found) == ["warning"]
    assert "number 2" in next(one.message for one in found.findings if one.id == "IN132")


@pytest.mark.parametrize("copy", [False, True])
def test_a_decoder_that_reads_the_answer_so_far_is_well(tmp_path: Path, copy: bool) -> None:
    """`copy`: an autoencoder, whose source is the answer."""

    def loss(model: nn.Module) -> Tensor:
        x = torch.randint(0, START, (ROWS, 1)).expand(ROWS, 3) + torch.arange(3)
        x = x.repeat(1, 2) % START
        said = model(x if copy else x.flip(1), begun(x))
        return F.cross_entropy(said.flatten(0, 1), x.flatten())

    found, last = train(tmp_path / "a.inspect", Translator(), loss)
    assert last < 0.1 and not told(found)
    assert not [one for one in found.findings if one.id == "IN136"]


def test_what_changes_is_that_of_two_plain_calls() -> None:
    model, x = Translator().eval(), words()
    source, other = words(), x.clone()
    other[:, STEPS // 2 :] = x.roll(1, 0)[:, STEPS // 2 :]
    with torch.no_grad():
        one, two = model(source, x), model(source, other)
    found = changes(model, (source, x), {}, x)
    assert found is not None and found.before == 0 and found.ahead == 0
    firsts = [next((t for t in range(STEPS) if x[b, t] != other[b, t]), None) for b in range(ROWS)]
    sizes = [float((one - two)[b, t].abs().max()) for b, t in enumerate(firsts) if t is not None]
    assert found.here == pytest.approx(max(sizes) / float(one.abs().max()), rel=1e-5)


def test_a_separator_in_the_middle_of_all_sequences_hides_nothing() -> None:
    model, x = Reader().eval(), words()
    x[:, STEPS // 2] = 0
    copies, shifts = (changes(one, (x,), {}, x) for one in (model, Reader(shifted=True).eval()))
    assert copies is not None and copies.before == 0 and copies.here > 0.01
    assert shifts is not None and shifts.before == 0 and shifts.here == 0
