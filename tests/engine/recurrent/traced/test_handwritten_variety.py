"""Loops in the many shapes in which people write them: all are found, nothing changes for the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Refusal


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(8, 4)

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.w(torch.cat((x, h), -1)))

    def zero(self, x: Tensor) -> Tensor:
        return x.new_zeros(x.shape[0], 4)


class Accumulate(Base):
    def forward(self, x: Tensor) -> Tensor:
        states = itertools.accumulate(x.unbind(1), lambda h, row: self.advance(row, h), initial=self.zero(x))
        return torch.stack(list(states)[1:], 1)


class Attribute(Base):
    def forward(self, x: Tensor) -> Tensor:
        self.memory = self.zero(x)
        out = []
        for row in x.unbind(1):
            self.memory = self.advance(row, self.memory)
            out.append(self.memory)
        return torch.stack(out, 1)


class Generated(Base):
    def states(self, x: Tensor) -> Iterator[Tensor]:
        h = self.zero(x)
        for row in x.unbind(1):
            h = self.advance(row, h)
            yield h

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(list(self.states(x)), 1)


class Checkpointed(Base):
    def forward(self, x: Tensor) -> Tensor:
        h = self.zero(x)
        out = []
        for row in x.unbind(1):
            h = checkpoint(self.advance, row, h, use_reentrant=False)
            out.append(h)
        return torch.stack(out, 1)


class BothWays(Base):
    def scan(self, rows: list[Tensor], h: Tensor) -> list[Tensor]:
        out = []
        for row in rows:
            h = self.advance(row, h)
            out.append(h)
        return out

    def forward(self, x: Tensor) -> Tensor:
        rows = list(x.unbind(1))
        there, back = self.scan(rows, self.zero(x)), self.scan(rows[::-1], self.zero(x))[::-1]
        return torch.stack(there, 1) + torch.stack(back, 1)


class RawWeights(nn.Module):
    """Three layers without modules, the layers inside the loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.ParameterList([nn.Parameter(torch.randn(4, 4) * 0.4) for _ in range(3)])
        self.w = nn.ParameterList([nn.Parameter(torch.randn(4, 4) * 0.4) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        h = [x.new_zeros(x.shape[0], 4) for _ in range(3)]
        out = []
        for row in x.unbind(1):
            for n in range(3):
                h[n] = row = torch.tanh(row @ self.u[n] + h[n] @ self.w[n])
            out.append(row)
        return torch.stack(out, 1)


class Decoder(nn.Module):
    """Attention written out over an encoder, its own output fed back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(4, 6, batch_first=True)
        self.score, self.v = nn.Linear(12, 6), nn.Linear(6, 1)
        self.cell, self.out = nn.Linear(4 + 6 + 6, 6), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        memory, _ = self.encoder(x)
        state, y, out = memory[:, -1], torch.zeros_like(x[:, 0]), []
        for _ in range(x.shape[1]):
            query = state[:, None].expand_as(memory)
            weights = torch.softmax(self.v(torch.tanh(self.score(torch.cat((memory, query), -1)))).squeeze(-1), -1)
            context = (weights[:, :, None] * memory).sum(1)
            state = torch.tanh(self.cell(torch.cat((y, context, state), -1)))
            y = self.out(state)
            out.append(y)
        return torch.stack(out, 1)


class Convolutional(nn.Module):
    """A ConvLSTM: its state is a picture."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 12, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        frames = x.view(*x.shape[:2], 1, 2, 2)
        h = c = x.new_zeros(x.shape[0], 3, 2, 2)
        out = []
        for t in range(x.shape[1]):
            i, f, g, o = self.conv(torch.cat((frames[:, t], h), 1)).chunk(4, 1)
            f = torch.sigmoid(f)
            c = f * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h.flatten(1))
        return torch.stack(out, 1)


class OneRow(Base):
    """One learned first state for all sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, 4))

    def begin(self, x: Tensor) -> Tensor:
        return self.first

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(x @ self.w.weight[:, :4].T + h @ self.w.weight[:, 4:].T)

    def forward(self, x: Tensor) -> Tensor:
        h, out = self.begin(x), []
        for row in x.unbind(1):
            h = self.advance(row, h)
            out.append(h)
        return torch.stack(out, 1)


class OneVector(OneRow):
    def begin(self, x: Tensor) -> Tensor:
        return self.first[0]


class Zeroes(OneRow):
    """The zeros are made inside the first iteration; what was there before had another shape."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = torch.zeros(0), []
        for row in x.unbind(1):
            if h.shape != row.shape:
                h = torch.zeros_like(row)
            h = self.advance(row, h)
            out.append(h)
        return torch.stack(out, 1)


CASES: dict[str, tuple[type[nn.Module], list[list[str]]]] = {
    "accumulate": (Accumulate, [["h"]]), "attribute": (Attribute, [["memory"]]), "generator": (Generated, [["h"]]),
    "checkpoint": (Checkpointed, [["h"]]), "both ways": (BothWays, [["h"], ["h"]]),
    "raw weights": (RawWeights, [["row"]] * 3), "decoder": (Decoder, [["h"], ["state", "y"]]),
    "one row": (OneRow, [["h"]]), "one vector": (OneVector, [["h"]]), "zeroes": (Zeroes, [["h"]]),
    "convolutional": (Convolutional, [["h", "c"]]),
}  # fmt: skip


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("case", sorted(CASES))
def test_every_way_of_writing_a_loop(case: str, b: int) -> None:
    kind, parts = CASES[case]
    torch.manual_seed(0)
    model, x = kind().eval(), torch.randn(b, 8, 4)
    plain = model(x)
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=4, loss=lambda out, batch: out.square().sum(-1))
    trace = perform(subject, Batch(x, torch.full((b,), 8)), kept)
    assert torch.equal(trace.output, plain)
    assert [list(item.cell.parts) for item in trace.recurrences] == parts
    assert all(item.check is None or item.check.passed for item in trace.recurrences)
    assert all(item.delta is not None or item.arriving is not None for item in trace.recurrences)
    assert not [r.reason for r in kept.records if isinstance(r, Refusal) and "Computing it failed" in r.reason]
    for item in trace.recurrences:
        assert "gate/weights" not in item.cell.gate_names, "attention over the source is no gate"
    if isinstance(model, OneRow):
        states = trace.recurrences[0].states
        torch.testing.assert_close(states[1:], plain.transpose(0, 1).detach())
        assert torch.equal(states[0, -1], torch.zeros(4) if case == "zeroes" else model.first[0])
    if case == "convolutional":
        assert trace.recurrences[0].cell.gate_names[0] == "gate/f"


class OneByOne(Base):
    """A loop over the sequences of the batch around that over the steps; states have no axis of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        rows = []
        for i in range(x.shape[0]):
            h = x.new_zeros(4)
            out = []
            for t in range(x.shape[1]):
                h = self.advance(x[i, t], h)
                out.append(h)
            rows.append(torch.stack(out))
        return torch.stack(rows)


class OneByOneInCalls(OneByOne):
    """The same with the inner loop in a function."""

    def one(self, row: Tensor) -> Tensor:
        h = row.new_zeros(4)
        out = []
        for x in row:
            h = self.advance(x, h)
            out.append(h)
        return torch.stack(out)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.one(row) for row in x])


@pytest.mark.parametrize("b", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", [OneByOne, OneByOneInCalls])
def test_sequences_one_by_one_are_shown_alone_and_refused_in_a_batch(kind: type[nn.Module], b: int) -> None:
    kept = Kept()
    subject = Subject(model=kind(), kind="vectors", width=4)
    trace = perform(subject, Batch(torch.randn(b, 8, 4), torch.full((b,), 8)), kept, RunOptions(only=("states",)))
    reasons = [r.reason for r in kept.records if isinstance(r, Refusal)]
    if b == 1:
        (found,) = trace.recurrences
        assert found.steps == 8 and list(found.cell.parts) == ["h"] and not reasons
        assert found.check is not None and found.check.passed
        return
    assert not trace.recurrences and reasons
    assert all("a run with one sequence alone shows it" in reason for reason in reasons)


class Ahead(nn.Module):
    """Gates of all steps at once, before the loop (Bradbury et al. 2017, Quasi-Recurrent Neural Networks)."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 12)

    def gates(self, x: Tensor) -> tuple[Tensor, ...]:
        z, rest = self.map(x).split([4, 8], -1)
        f, o = torch.sigmoid(rest).chunk(2, -1)
        return z.tanh(), f, o

    def forward(self, x: Tensor) -> Tensor:
        z, f, o = self.gates(x)
        c, out = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            c = f[:, t] * c + (1 - f[:, t]) * z[:, t]
            out.append(o[:, t] * c)
        return torch.stack(out, 1)


class AheadZipped(Ahead):
    """The same, taken apart before; its first step is another."""

    def forward(self, x: Tensor) -> Tensor:
        z, f, o = self.gates(x)
        c, out = None, []
        for zt, ft, ot in zip(z.unbind(1), f.unbind(1), o.unbind(1), strict=True):
            c = (1 - ft) * zt if c is None else ft * c + (1 - ft) * zt
            out.append(ot * c)
        return torch.stack(out, 1)


class NoGate(Ahead):
    """A sigmoid that is an input and scales nothing."""

    def forward(self, x: Tensor) -> Tensor:
        features = torch.sigmoid(x)
        c, out = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            c = torch.tanh(self.map(c)[:, :4] + features[:, t])
            out.append(c)
        return torch.stack(out, 1)


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("kind", [Ahead, AheadZipped, NoGate])
def test_gates_that_are_computed_ahead_of_the_loop(kind: type[Ahead], b: int) -> None:
    torch.manual_seed(0)
    model, x = kind(), torch.randn(b, 7, 4)
    trace = perform(Subject(model=model, kind="vectors", width=4), Batch(x, torch.full((b,), 7)), Kept())
    (found,) = trace.recurrences
    if kind is NoGate:
        assert found.cell.gate_names == ("tanh",) or found.cell.gate_names == ("c",) or not found.cell.gate_names
        return
    assert found.cell.gate_names == ("gate/f", "gate/o") and found.cell.output_gates == ("gate/o",)
    for shown, made in zip(found.known, model.gates(x)[1:], strict=True):
        torch.testing.assert_close(shown, made.transpose(0, 1).detach())
