"""The numbers of each sequence against plain float64 loops over one sequence at a time, which share no code with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.analysis.sequence_table import as_records, table_of
from inspector.capture import Capture

CLASSES = 7


class OwnLstm(nn.Module):
    """An LSTM written out, two states, one product for all gates."""

    def __init__(self, hidden: int = 2) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding, self.gates = nn.Embedding(CLASSES, 3), nn.Linear(3 + hidden, 4 * hidden)
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, CLASSES)

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, o, g = self.gates(torch.cat((x, h), -1)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        h = c = x.new_zeros(len(ids), self.hidden)
        out = []
        for t in range(ids.shape[1]):
            h, c = self.step(x[:, t], h, c)
            out.append(h)
        return self.head(self.norm(torch.stack(out, 1)))


class TwoGru(nn.Module):
    """Two fused layers, time first inside."""

    def __init__(self, hidden: int = 4) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(CLASSES, 3), nn.GRU(3, hidden, 2)
        self.head = nn.Linear(hidden, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(ids.T))[0]).transpose(0, 1)


def next_loss(logits: Tensor, batch: Any) -> Tensor:
    found = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(found, (0, 1), value=torch.nan)


def made(model: nn.Module, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(model=model.double().eval(), loss=next_loss, next_token=True, vocabulary="abcdefg", **more)


def some(count: int, *lengths: int) -> list[Tensor]:
    random = torch.Generator().manual_seed(3)
    return [torch.randint(0, CLASSES, (lengths[n % len(lengths)],), generator=random) for n in range(count)]


def mean_loss(model: nn.Module, ids: Tensor) -> Tensor:
    scores = model(ids[None])[0]
    return -torch.stack([scores[t].log_softmax(-1)[ids[t + 1]] for t in range(len(ids) - 1)]).mean()


def gradient_norm(model: nn.Module, loss: Tensor) -> float:
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return math.sqrt(sum(float((one * one).sum()) for one in gradients))


def jacobian_horizon(step: Callable[[Tensor, Tensor], Tensor], xs: list[Tensor], size: int) -> float:
    """The first lag at which the product of the last Jacobians passes 10⁻³ or 10³, each by autograd."""
    state, jacobians = torch.zeros(size, dtype=torch.float64), []
    for x in xs:
        jacobians.append(torch.autograd.functional.jacobian(lambda s, x=x: step(x, s), state))  # type: ignore[misc]
        state = step(x, state).detach()
    product = torch.eye(size, dtype=torch.float64)
    for lag, matrix in enumerate(reversed(jacobians), 1):
        product = product @ matrix
        norm = float(product.norm()) / math.sqrt(size)
        if not 1e-3 <= norm <= 1e3:
            return float(lag)
    return math.nan


def own_step(model: OwnLstm) -> Callable[[Tensor, Tensor], Tensor]:
    def step(x: Tensor, state: Tensor) -> Tensor:
        h, c = state.chunk(2)
        return torch.cat(model.step(x, h, c))

    return step


@pytest.mark.parametrize("make", [OwnLstm, TwoGru])
def test_numbers_of_own_models(make: type[Any]) -> None:
    torch.manual_seed(1)
    model = make()
    data = some(40, 12, 5, 12, 30)
    capture = inspector.run(made(model), data=data)
    expected = [mean_loss(model, ids) for ids in data]
    assert np.allclose(capture.array("sequences:loss"), [float(one.detach()) for one in expected], rtol=1e-10)
    assert np.allclose(capture.array("sequences:perplexity"), np.exp(capture.array("sequences:loss")), rtol=1e-12)
    norms = [gradient_norm(model, one) for one in expected]
    assert np.allclose(capture.array("sequences:gradient_norm"), norms, rtol=1e-8)
    assert capture.array("sequences:length").tolist() == [len(ids) for ids in data]
    assert not capture.array("sequences:nonfinite").any()
    assert "batches" in capture.channels["sequences:loss"].method


def test_horizon_and_gradients_by_layer() -> None:
    torch.manual_seed(1)
    model = OwnLstm()
    data = some(24, 40, 9)
    capture = inspector.run(made(model), data=data)
    (place,) = {c.place for c in capture.channels.values() if c.signal == "sequences/horizon"}
    found = capture.array(f"{place}:sequences/horizon")
    expected = [jacobian_horizon(own_step(model), list(model.embedding(ids).detach()), 4) for ids in data]
    assert np.array_equal(found, expected, equal_nan=True) and 5 < np.isfinite(found).sum() < 24
    first, reach = [], []
    for ids in data:
        x = model.embedding(ids[None])
        states = [torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)]
        for t in range(len(ids)):
            states.append(torch.cat(model.step(x[:, t], *states[-1].chunk(2, -1)), -1))
        scores = model.head(model.norm(torch.stack([s[:, :2] for s in states[1:]], 1)))
        loss = next_loss(scores, SimpleNamespace(inputs=ids[None])).nanmean()
        norms = [float(one.norm()) for one in torch.autograd.grad(loss, states[1:])]
        first.append(norms[0])
        reach.append(len(ids) - next(t for t, norm in enumerate(norms) if norm >= 1e-3 * max(norms)))
    assert np.allclose(capture.array(f"{place}:sequences/gradient_first"), first, rtol=1e-8)
    assert np.array_equal(capture.array(f"{place}:sequences/gradient_reach"), reach)


SAMPLES = ("char-elman", "char-lstm", "gru-textbook")
LINES = [
    "the queen of hearts",
    "she made some tarts",
    "all on a summer day",
    "the knave of hearts",
    "oh dear",
    "a",
    "ah",
]


@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_of_sample_models(name: str, tmp_path: Path) -> None:
    from inspector.engine.opening.open_subject import open_subject
    from inspector.records import Load

    path = tmp_path / "lines.txt"
    path.write_text("\n".join([*LINES, "", "§ is not known"]), encoding="utf-8")
    capture = inspector.run(name, data=str(path), lines=True)
    assert capture.labels("sequence") == (*LINES, "§ is not known")
    problems = capture.labels("problem of the sequence")
    assert not any(problems[:-1]) and "'§'" in problems[-1]
    assert [s.value for s in capture.scalars if s.name == "sequences:failed"] == [1]
    subject = open_subject(Load(subject=name, trusted=True)).subject
    model = subject.model.double()
    vocabulary = {entry: number for number, entry in enumerate(subject.vocabulary or ())}
    losses, norms = [], []
    for line in LINES:
        ids = torch.tensor([vocabulary[c] for c in line])
        if len(ids) < 2:
            losses.append(math.nan)
            norms.append(math.nan)
            continue
        output = model(ids[None])
        scores = (output[0] if isinstance(output, tuple) else output)[0]
        loss = -torch.stack([scores[t].log_softmax(-1)[ids[t + 1]] for t in range(len(ids) - 1)]).mean()
        losses.append(float(loss.detach()))
        norms.append(gradient_norm(model, loss))
    there = np.isfinite(losses)
    assert np.allclose(capture.array("sequences:loss")[:-1][there], np.array(losses)[there], rtol=1e-4)
    assert np.allclose(capture.array("sequences:gradient_norm")[:-1][there], np.array(norms)[there], rtol=1e-3)
    assert np.isnan(capture.array("sequences:loss")[-1]) and np.isnan(capture.array("sequences:length")[-1])


def states_of(model: OwnLstm, data: list[Tensor]) -> Tensor:
    rows = []
    with torch.no_grad():
        for ids in data:
            h = c = torch.zeros(1, model.hidden, dtype=torch.float64)
            for x in model.embedding(ids):
                h, c = model.step(x[None], h, c)
                rows.append(h)
    return torch.cat(rows)


def test_units_are_judged_from_all_sequences() -> None:
    """Dead in all but one sequence is not dead; equal in one sequence is not a duplicate."""
    torch.manual_seed(2)
    model = OwnLstm(6)
    with torch.no_grad():
        for gate in range(4):  # unit 4 repeats unit 1 in everything, unit 5 is closed
            for parts in (model.gates.weight, model.gates.bias):
                parts[gate * 6 + 4] = parts[gate * 6 + 1]
        model.gates.weight[3 * 6 + 5] = 0
        model.gates.bias[3 * 6 + 5] = 0
        model.gates.weight[:, 3 + 4] = 0
    data = some(50, 11, 6)
    capture = inspector.run(made(model), data=data)
    (name,) = [c.name for c in capture.channels.values() if c.kind == "unit" and c.signal.endswith("units")]
    table = dict(zip(capture.channels[name].labels["statistic"], capture.array(name), strict=True))
    states = states_of(model, data).numpy()
    assert capture.channels[name].method == f"exact; from 50 sequences, {len(states)} steps"
    assert table["dead"].tolist() == (np.abs(states).max(0) == 0).tolist() == [0, 0, 0, 0, 0, 1]
    assert np.allclose(table["variance"], states.var(0), rtol=1e-10, atol=1e-30)
    alike = np.corrcoef(states[:, :5].T)
    assert table["duplicate_of"].tolist() == [-1, -1, -1, -1, 1, -1] and alike[4, 1] > 0.999999
    gates = [c.name for c in capture.channels.values() if c.signal.endswith("saturation")]
    assert gates and all("50 sequences" in capture.channels[gate].method for gate in gates)


def single(capture: Capture, name: str) -> float:
    return float(capture.array(name)[0])


def test_a_batch_that_leaks_is_not_used() -> None:
    class Leaks(TwoGru):
        def forward(self, ids: Tensor) -> Tensor:
            scores = super().forward(ids)
            return scores - scores.mean(0, keepdim=True) * 0.1

    torch.manual_seed(1)
    model = Leaks()
    data = some(12, 8)
    capture = inspector.run(made(model), data=data)
    method = capture.channels["sequences:loss"].method
    assert "one sequence after the other" in method and "affect each other" in method
    alone = [single(inspector.run(made(model), data=[ids]), "sequences:loss") for ids in data[:2]]
    assert capture.array("sequences:loss")[:2].tolist() == alone
    expected = [gradient_norm(model, mean_loss(model, ids)) for ids in data]
    assert np.allclose(capture.array("sequences:gradient_norm"), expected, rtol=1e-8)


def test_a_parameter_that_is_used_in_two_ways_is_not_taken_apart() -> None:
    class Tied(TwoGru):
        def __init__(self) -> None:
            super().__init__(3)
            self.head.weight = self.embedding.weight

    torch.manual_seed(1)
    model = Tied()
    data = some(12, 8)
    capture = inspector.run(made(model), data=data)
    expected = [gradient_norm(model, mean_loss(model, ids)) for ids in data]
    assert np.allclose(capture.array("sequences:gradient_norm"), expected, rtol=1e-8)
    assert "embedding.weight" in capture.channels["sequences:loss"].method


def test_rows_that_one_step_leaves_undecided_are_found_out_later() -> None:
    torch.manual_seed(1)
    model = TwoGru()
    data = [*some(9, 2), *some(40, 9)]  # of two steps one carries a loss
    capture = inspector.run(made(model), data=data)
    expected = [gradient_norm(model, mean_loss(model, ids)) for ids in data]
    assert np.allclose(capture.array("sequences:gradient_norm"), expected, rtol=1e-8)


def test_nan_is_told_from_what_is_missing() -> None:
    torch.manual_seed(1)
    model = TwoGru()
    with torch.no_grad():
        model.embedding.weight[6] = math.inf
    data = [ids.clamp(max=5) for ids in some(9, 6)]
    data[4] = torch.tensor([0, 6, 1, 2, 3, 4])
    capture = inspector.run(made(model), data=data)
    assert np.flatnonzero(capture.array("sequences:nonfinite")).tolist() == [4]
    assert np.isfinite(capture.array("sequences:gradient_norm")[[0, 1, 2, 3, 5, 6, 7, 8]]).all()
    summary = capture.array("sequences:summary")
    numbers = capture.channels["sequences:summary"].labels["number"]
    names = capture.channels["sequences:summary"].labels["statistic"]
    row = dict(zip(names, summary[numbers.index("sequences:nonfinite")], strict=True))
    assert row["at largest"] == 4 and row["count"] == 9


class NanAt(TwoGru):
    """Scores that are NaN where the symbol 6 was read."""

    def forward(self, ids: Tensor) -> Tensor:
        scores = super().forward(ids)
        return torch.where((ids == 6)[..., None], torch.nan, scores)


@pytest.mark.parametrize("lengths", [(6,), (6, 5, 4, 7, 8, 9, 10, 11, 12)], ids=["in batches", "one by one"])
def test_nan_of_the_model_is_a_term_of_the_loss(lengths: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    model = NanAt()
    data = [ids.clamp(max=5) for ids in some(9, *lengths)]
    data[4][1] = 6
    capture = inspector.run(made(model), data=data)
    assert ("batches" in capture.channels["sequences:loss"].method) == (len(lengths) == 1)
    expected = [mean_loss(model, ids) for ids in data]
    losses = [float(one.detach()) for one in expected]
    assert [n for n, value in enumerate(losses) if math.isnan(value)] == [4]
    assert np.allclose(capture.array("sequences:loss"), losses, rtol=1e-10, equal_nan=True)
    assert np.isnan(capture.array("sequences:perplexity")[4])
    norms = [gradient_norm(model, one) for one in expected]
    assert np.allclose(capture.array("sequences:gradient_norm"), norms, rtol=1e-8, equal_nan=True)
    assert capture.array("sequences:terms").tolist() == [len(ids) - 1 for ids in data]
    found = capture.array("sequences:nonfinite")
    assert np.flatnonzero(found).tolist() == [4] and found[4] == CLASSES + 1, "a step of scores, and its loss"
    table = table_of(capture)
    assert table is not None and table.worst("sequences:loss") == [4]
    assert as_records(table)[4]["sequences:loss"] == "NaN", "a number that is missing is None"


def test_a_sequence_without_a_loss_is_missing_and_not_the_worst() -> None:
    torch.manual_seed(1)
    model = NanAt()
    data = [ids.clamp(max=5) for ids in some(9, 6, 5)]
    data[3] = torch.tensor([2])
    capture = inspector.run(made(model), data=data)
    table = table_of(capture)
    assert table is not None and capture.array("sequences:terms")[3] == 0
    assert as_records(table)[3]["sequences:loss"] is None
    first = next(name for name in table.columns if name.endswith("gradient_first"))
    for name in ("sequences:loss", "sequences:perplexity", "sequences:gradient_norm", first):
        assert np.flatnonzero(np.isnan(table.columns[name])).tolist() == [3]
        assert not table.is_nan(name).any() and 3 not in table.worst(name)
        assert table.order(name, descending=True)[-1] == 3
    assert table.worst("sequences:loss") == [int(np.nanargmax(table.columns["sequences:loss"]))]
    there = [gradient_norm(model, mean_loss(model, ids)) for ids in data if len(ids) > 1]
    assert table.spread("sequences:gradient_norm").startswith(f"{np.mean(there):.4g} ±")


class Transformer(nn.Module):
    """Learned positions, a causal layer with two heads, layer norms with scales of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(CLASSES, 8), nn.Parameter(torch.randn(20, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, CLASSES)
        for norm in (self.norm, self.layer.norm1, self.layer.norm2):
            nn.init.normal_(norm.weight, 1.0)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions[: ids.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], dtype=x.dtype)
        return self.head(self.norm(self.layer(x, src_mask=mask, is_causal=True)))


def test_a_transformer_runs_in_batches() -> None:
    torch.manual_seed(1)
    model = Transformer()
    data = some(30, 12, 7)
    capture = inspector.run(made(model), data=data)
    assert "batches" in capture.channels["sequences:loss"].method
    expected = [gradient_norm(model, mean_loss(model, ids)) for ids in data]
    assert np.allclose(capture.array("sequences:gradient_norm"), expected, rtol=1e-8)


def test_losses_of_other_lengths_are_run_one_by_one() -> None:
    """An answer whose length only the target has: no batch without padding."""

    def loss(out: Tensor, batch: Any) -> Tensor:
        steps = int(batch.targets.max())
        return out[:, :steps].square().sum(-1)

    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh()).double()
    data = [(torch.randn(6, 2).double(), steps) for steps in (6, 3, 6, 2, 6)]
    capture = inspector.run(SimpleNamespace(model=model, width=2, loss=loss), data=data)
    assert "one sequence after the other" in capture.channels["sequences:length"].method
