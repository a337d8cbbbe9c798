"""Attention of a decoder in a loop: one row a step, joined to one map; attention over the states so far."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn
from written_attention import SAMPLE, D, T, Written, chain, inputs, plain_softmax, ran

from inspector.engine.attention import live
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform
from inspector.records import Page

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS, H = 4, 5


class Decoder(nn.Module):
    """A recurrent decoder of four steps that attends to all states of a recurrent encoder at each.

    `score`: dot, general (bilinear), additive; `query`: the state before the step (Bahdanau) or after it (Luong).
    """

    def __init__(self, score: str, query: str, use: str, mask: Tensor | None = None) -> None:
        super().__init__()
        self.score, self.query, self.use, self.mask = score, query, use, mask
        self.encoder = nn.GRU(D, H, batch_first=True)
        self.cell = nn.GRUCell(H, H)
        self.attend = Attend(score, use)
        self.double()
        self.rows: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.rows = []
        memory, last = self.encoder(x)
        state, context, out = last[0], torch.zeros_like(last[0]), []
        for _ in range(STEPS):
            if self.query == "before":
                context = self.step(state, memory)
                state = self.cell(context, state)
            else:
                state = self.cell(context, state)
                context = self.step(state, memory)
            out.append(state + context)
        return torch.stack(out, 1)

    def step(self, state: Tensor, memory: Tensor) -> Tensor:
        context: Tensor = self.attend(state, memory, self.mask)
        self.rows.append(self.attend.scores(state, memory)[SAMPLE].detach())
        return context

    def expected(self, may: Tensor | None = None) -> Tensor:
        """(1, steps, keys) by the definition, from the scores that the test computed itself."""
        return torch.stack([plain_softmax(row, may) for row in self.rows])[None]


class Attend(nn.Module):
    def __init__(self, score: str, use: str) -> None:
        super().__init__()
        self.score, self.use = score, use
        self.W, self.U, self.v = nn.Linear(H, H, bias=False), nn.Linear(H, H), nn.Linear(H, 1, bias=False)

    def scores(self, state: Tensor, memory: Tensor) -> Tensor:
        if self.score == "dot":
            return (memory * state[:, None]).sum(-1)
        if self.score == "general":
            return torch.bmm(memory, self.W(state)[..., None])[..., 0]
        if self.score == "concatenated":
            both = torch.cat([state[:, None].expand_as(memory), memory], -1)
            return self.v(torch.tanh(F.linear(both, torch.cat([self.W.weight, self.U.weight], 1)))).squeeze(2)
        return self.v(torch.tanh(self.W(state)[:, None] + self.U(memory)))[..., 0]

    def forward(self, state: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        scores = self.scores(state, memory)
        scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
        weights = F.softmax(scores, dim=1)
        if self.use == "bmm":
            return torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        if self.use == "einsum":
            return torch.einsum("bt,bth->bh", weights, memory)
        return (weights.unsqueeze(-1) * memory).sum(1)


@pytest.mark.parametrize("score", ["dot", "general", "additive", "concatenated"])
@pytest.mark.parametrize(("query", "use"), [("before", "sum"), ("after", "bmm"), ("before", "einsum")])
def test_a_decoder_in_a_loop_is_one_map(score: str, query: str, use: str) -> None:
    x = inputs()
    model = Decoder(score, query, use).eval()
    model(x)
    expected = model.expected()
    seen = chain(model, expected, x, place="attend", domains=("query", "step"))
    assert f"{STEPS} calls" in seen.method


def test_padding_of_the_source_is_masked_in_every_row() -> None:
    x, lengths = inputs(), [T, 4, T]
    may = torch.arange(T)[None] < torch.tensor(lengths)[:, None]
    model = Decoder("additive", "before", "sum", may).eval()
    model(x)
    seen = chain(model, model.expected(may[SAMPLE]), x, place="attend", domains=("query", "step"), lengths=lengths)
    assert seen.sink.array("attend:attention/allowed").tolist() == [[0] * STEPS, [3] * STEPS]


class Windowed(Decoder):
    """Each step may attend to the keys around its own number only; the first windows begin at the first key."""

    def step(self, state: Tensor, memory: Tensor) -> Tensor:
        self.mask = ((torch.arange(T) - len(self.rows)).abs() <= 1)[None]
        self.windows = [*getattr(self, "windows", [])[: len(self.rows)], self.mask[0]]
        return super().step(state, memory)


@pytest.mark.parametrize("use", ["sum", "bmm", "einsum"])
def test_a_window_that_moves_over_the_source_is_no_cache_that_grows(use: str) -> None:
    x = inputs()
    model = Windowed("dot", "before", use).eval()
    model(x)
    rows = [plain_softmax(row, may) for row, may in zip(model.rows, model.windows, strict=True)]
    seen = chain(model, torch.stack(rows)[None], x, place="attend", domains=("query", "step"))
    assert f"{STEPS} calls" in seen.method


class OverPast(nn.Module):
    """A hand-written recurrence whose step attends to all states before it."""

    def __init__(self, use: str) -> None:
        super().__init__()
        self.use = use
        self.W, self.U = nn.Linear(D, H).double(), nn.Linear(H, H).double()
        self.rows: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.rows = []
        states = [torch.tanh(self.W(x[:, 0]))]
        for t in range(1, x.shape[1]):
            past = torch.stack(states, 1)
            scores = (past @ self.U(states[-1])[..., None])[..., 0] / math.sqrt(H)
            self.rows.append(scores[SAMPLE].detach())
            weights = scores.softmax(-1)
            if self.use == "sum":
                context = (weights[..., None] * past).sum(1)
            elif self.use == "bmm":
                context = (weights[:, None] @ past)[:, 0]
            else:
                context = torch.einsum("bs,bsh->bh", weights, past)
            states.append(torch.tanh(self.W(x[:, t]) + context))
        return torch.stack(states, 1)


@pytest.mark.parametrize("use", ["sum", "bmm", "einsum"])
def test_attention_over_all_states_so_far(use: str) -> None:
    x = inputs()
    model = OverPast(use).eval()
    model(x)
    expected = torch.zeros(1, T - 1, T - 1, dtype=torch.float64)
    for row, scores in enumerate(model.rows):
        expected[0, row, : row + 1] = plain_softmax(scores)
    seen = chain(model, expected, x, place="model", domains=("position", "position"))
    assert seen.sink.array("model:attention/allowed").tolist() == [[0] * (T - 1), list(range(T - 1))]


class FromZeros(OverPast):
    """The same where the first state that is attended to is the initial one, of zeros: values, and not a mask."""

    def forward(self, x: Tensor) -> Tensor:
        self.rows = []
        states = [torch.zeros(len(x), H, dtype=x.dtype)]
        for t in range(x.shape[1]):
            past = torch.stack(states, 1)
            scores = (past * self.U(states[-1])[:, None]).sum(-1)
            self.rows.append(scores[SAMPLE].detach())
            context = (scores.softmax(-1).unsqueeze(-1) * past).sum(1)
            states.append(torch.tanh(self.W(x[:, t]) + context))
        return torch.stack(states[1:], 1)


def test_attention_over_an_initial_state_of_zeros() -> None:
    x = inputs()
    model = FromZeros("sum").eval()
    model(x)
    expected = torch.zeros(1, T, T, dtype=torch.float64)
    for row, scores in enumerate(model.rows):
        expected[0, row, : row + 1] = plain_softmax(scores)
    seen = ran(model, x, "model")
    assert not seen.sink.refusals()
    torch.testing.assert_close(seen.map, expected, atol=2**-25, rtol=2**-10)


class Buffered(OverPast):
    """The same with the states in a buffer that is filled, and a mask over what is not there yet."""

    def forward(self, x: Tensor) -> Tensor:
        self.rows = []
        past = torch.zeros(len(x), x.shape[1], H, dtype=x.dtype)
        state = torch.tanh(self.W(x[:, 0]))
        past = past.clone()
        past[:, 0] = state.detach()
        for t in range(1, x.shape[1]):
            scores = (past @ self.U(state)[..., None])[..., 0]
            self.rows.append(scores[SAMPLE, :t].detach())
            scores = scores.masked_fill(torch.arange(x.shape[1]) >= t, -math.inf)
            context = (scores.softmax(-1)[..., None] * past).sum(1)
            state = torch.tanh(self.W(x[:, t]) + context)
            past = past.clone()
            past[:, t] = state.detach()
        return past


def test_attention_over_a_buffer_that_fills() -> None:
    x = inputs()
    model = Buffered("sum").eval()
    model(x)
    expected = torch.zeros(1, T - 1, T - 1, dtype=torch.float64)
    for row, scores in enumerate(model.rows):
        expected[0, row, : row + 1] = plain_softmax(scores)
    chain(model, expected, x, place="model", domains=("position", "position"))


def test_self_attention_in_a_loop_over_all_steps() -> None:
    """A row a step over keys of the whole sequence: whose steps the rows are is not known (a decoder may have as many)."""
    W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)

    def forward(x: Tensor) -> Tensor:
        out = []
        for t in range(x.shape[1]):
            weights = torch.softmax((x @ W @ x[:, t, :, None])[..., 0], -1)
            out.append((weights[..., None] * x).sum(1))
        return torch.stack(out, 1)

    x = inputs()
    expected = plain_softmax((x[SAMPLE] @ W @ x[SAMPLE].T).T)[None]
    ways: list[Callable[[Tensor], Tensor]] = [forward]
    for way in ways:
        chain(way, expected, x, domains=("query", "step"))


def test_rows_are_written_while_the_decoder_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is in the capture before the next step begins; the map comes after the run under its own name."""
    monkeypatch.setattr(live, "SECONDS", -1.0)
    x = inputs()
    sink = Listed()
    model = Decoder("additive", "before", "sum").eval()
    step, there = model.step, []

    def counted(state: Tensor, memory: Tensor) -> Tensor:
        there.append(len([page for page in sink.of(Page) if page.channel == "attend:attention/rows"]))
        return step(state, memory)

    model.step = counted  # type: ignore[method-assign]
    perform(
        Subject(model), Batch(x, torch.tensor([T] * len(x)), look_at=SAMPLE), sink, RunOptions(only=["attention/maps"])
    )
    assert there == [0, 0, 2, 3], "a single row is no map yet"
    assert sink.channel("attend:attention/rows").domains["key"] == "step", "the encoder's tokens are named at once"
    rows = torch.from_numpy(sink.array("attend:attention/rows").astype("float64"))
    torch.testing.assert_close(rows, model.expected(), atol=1e-3, rtol=2**-10)
    torch.testing.assert_close(torch.from_numpy(sink.array("attend:attention").astype("float64")), rows)


def test_rows_of_a_place_that_begins_anew_are_not_written_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS", -1.0)

    def forward(x: Tensor) -> Tensor:
        out = []
        for keys in (3, 4, 5, 3, 4):
            own = x[:, :keys]
            out.append((torch.softmax(own @ x[:, 0, :, None], 1) * own).sum(1))
        return torch.stack(out, 1)

    seen = ran(Written(forward).eval(), inputs())
    assert seen.sink.array("inner:attention/rows").shape == (1, 3, 5)
    assert seen.sink.channel("inner:attention/rows").domains["key"] != "step", "keys that grow in number"


def test_a_place_with_one_row_writes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS", -1.0)
    seen = ran(Written(lambda x: (torch.softmax(x.sum(-1, keepdim=True), 1) * x).sum(1)).eval(), inputs())
    assert "inner:attention" in seen.sink.names() and "inner:attention/rows" not in seen.sink.names()
