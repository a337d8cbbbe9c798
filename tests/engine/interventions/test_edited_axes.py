"""Edited runs: every step of the edited frame lies at the step of the input that it read, as in the unedited one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Axis, Channel, Labels, parse_edit

D = torch.float64
H, WORDS = 3, "abcdefgh"
OPTIONS = RunOptions(only=("states", "gates", "openers"))


class Both(nn.Module):
    """A bidirectional layer, and whatever calls it."""

    def __init__(self, layers: int = 1) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), 4)
        self.rnn = nn.GRU(4, H, layers, batch_first=True, bidirectional=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.rnn(self.embed(ids))[0]


class Twice(Both):
    """The second call reads the sequence from its end."""

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        return self.rnn(x)[0] + self.rnn(x.flip(1))[0]


class Skipping(Both):
    """Every second token is read."""

    def forward(self, ids: Tensor) -> Tensor:
        return self.rnn(self.embed(ids[:, ::2]))[0]


def run(model: nn.Module, text: str, *edits: str) -> Kept:
    kept = Kept()
    subject = Subject(model=model, vocabulary=WORDS, loss=lambda out, batch: out.square().sum(-1))
    ids = torch.tensor([[WORDS.index(one) for one in text]])
    batch = Batch(ids, torch.tensor([len(text)]), (tuple(text),))
    plan = plan_edits(subject, batch, [parse_edit(edit) for edit in edits], OPTIONS)
    perform_with_edits(subject, batch, kept, plan, OPTIONS)
    return kept


def gates(rnn: nn.GRU, x: Sequence[Tensor], back: bool, held: dict[int, float]) -> list[Tensor]:
    """The update gate at every place of `x`; in the forward direction unit 2 of h is held at some steps."""
    end = "_l0_reverse" if back else "_l0"
    w, u, v, s = (getattr(rnn, name + end) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, found = torch.zeros(H, dtype=D), {}
    order = list(range(len(x)))
    for t in order[::-1] if back else order:
        (r, z, n), (p, q, m) = (w @ x[t] + v).chunk(3), (u @ h + s).chunk(3)
        found[t] = torch.sigmoid(z + q)
        h = (1 - found[t]) * torch.tanh(n + torch.sigmoid(r + p) * m) + found[t] * h
        if not back and t in held:
            h = torch.cat([h[:2], torch.full((1,), held[t], dtype=D)])
    return [found[t] for t in order]


def domain(kept: Kept, name: str) -> list[str]:
    """The axis of a channel as it was declared in both frames."""
    return [channel.domain("step") for channel in kept.of(Channel) if channel.name == name]


def labels(kept: Kept, name: str) -> list[str]:
    return ["".join(one.names) for one in kept.of(Labels) if one.domain == name]


def test_the_backward_direction_lies_along_the_input() -> None:
    torch.manual_seed(0)
    model, text = Both().double(), "abcdefg"
    kept = run(model, text, "rnn.l0:h[2]=0.5@2:5")
    x = [model.embed.weight[WORDS.index(one)] for one in text]
    for place, back in (("rnn.l0", False), ("rnn.l0.reverse", True)):
        expected = torch.stack(gates(model.rnn, x, back, dict.fromkeys(range(2, 5), 0.5))).detach()
        np.testing.assert_allclose(kept.array(f"{place}:gate/update", 1), expected, rtol=1e-9)
        np.testing.assert_allclose(kept.array(f"{place}:gate/update/by_token", 1), expected, rtol=1e-9)
        assert set(domain(kept, f"{place}:gate/update")) == {"step"}
    assert not [axis for axis in kept.of(Axis) if axis.name.startswith("iteration")]


@pytest.mark.parametrize("order", [1, -1])
def test_later_calls_have_the_names_and_axes_of_the_unedited_run(order: int) -> None:
    torch.manual_seed(1)
    model, text = Twice().double(), "abcdefg"
    kept = run(model, text, f"{'rnn' if order > 0 else 'rnn#2'}.l0:h[2]=0.5@1:3")
    x = [model.embed.weight[WORDS.index(one)] for one in text]
    assert not [name for name in kept.names() if "#2:" in name], "the names of the unedited run"
    held = dict.fromkeys(range(1, 3), 0.5)
    for call in ("rnn", "rnn#2"):
        own, clamped = x if call == "rnn" else x[::-1], held if (call == "rnn") == (order > 0) else {}
        for end in ("", ".reverse"):
            place = f"{call}.l0{end}"
            expected = torch.stack(gates(model.rnn, own, bool(end), clamped)).detach()
            np.testing.assert_allclose(kept.array(f"{place}:gate/update", 1), expected, rtol=1e-9)
            by_token = expected if call == "rnn" else expected.flip(0)
            np.testing.assert_allclose(kept.array(f"{place}:gate/update/by_token", 1), by_token, rtol=1e-9)
            (axis,) = set(domain(kept, f"{place}:gate/update"))
            assert (axis == "step") == (call == "rnn")
            assert set(labels(kept, axis)) <= {text if call == "rnn" else text[::-1]}


def test_steps_that_are_left_out_are_left_out_of_the_backward_direction_too() -> None:
    torch.manual_seed(2)
    model, text = Skipping().double(), "abcdefg"
    kept = run(model, text, "rnn.l0:h[2]=0.5@1:3")
    x = [model.embed.weight[WORDS.index(one)] for one in text[::2]]
    for place, back in (("rnn.l0", False), ("rnn.l0.reverse", True)):
        expected = torch.stack(gates(model.rnn, x, back, dict.fromkeys(range(1, 3), 0.5))).detach()
        np.testing.assert_allclose(kept.array(f"{place}:gate/update/by_token", 1), expected, rtol=1e-9)
        (axis,) = set(domain(kept, f"{place}:gate/update"))
        assert set(labels(kept, axis)) == {"aceg"}


def test_padding_is_read_by_the_backward_direction_of_both_frames() -> None:
    torch.manual_seed(3)
    model = Both(2).double()
    subject = Subject(model=model, vocabulary=WORDS, loss=lambda out, batch: out.square().sum(-1))
    ids, kept = torch.tensor([[0, 1, 2, 3, 4, 5], [3, 1, 2, 0, 0, 0]]), Kept()
    batch = Batch(ids, torch.tensor([6, 3]), look_at=1)
    plan = plan_edits(subject, batch, [parse_edit("rnn.l1:h[2]=0.5@1:3")], OPTIONS)
    perform_with_edits(subject, batch, kept, plan, OPTIONS)
    for place in ("rnn.l0", "rnn.l0.reverse", "rnn.l1.reverse"):  # nothing of these is changed
        for name in (f"{place}:h", f"{place}:gate/update"):
            np.testing.assert_allclose(kept.array(name, 1), kept.array(name, 0), rtol=1e-9)


class Chunks(nn.Module):
    """Two modules of two layers, three tokens a call, the state detached in between."""

    def __init__(self, first: int = 0, every: int = 1) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), 4)
        self.low, self.high = (nn.LSTM(n, H, 2, batch_first=True) for n in (4, H))
        self.first, self.every = first, every

    def forward(self, ids: Tensor) -> Tensor:
        low = high = None
        out = []
        for part in self.embed(ids[:, self.first :: self.every]).split(3, 1):
            y, low = self.low(part, low)
            y, high = self.high(y, high)
            low, high = tuple(one.detach() for one in low), tuple(one.detach() for one in high)
            out.append(y)
        return torch.cat(out, 1)


@pytest.mark.parametrize(("first", "every"), [(0, 1), (2, 1), (0, 2)])
def test_layers_of_chunks_lie_along_what_they_read(first: int, every: int) -> None:
    torch.manual_seed(4)
    model, text = Chunks(first, every).double(), "abcdefghabcdefgh"
    kept = run(model, text, "low.l1:h[2]=0.5@2:4")
    read = text[first::every]
    for place in ("low.l0", "low.l1", "high.l0", "high.l1"):
        gate = kept.array(f"{place}:gate/forget", 1)
        tokens = sorted(set(read))
        expected = [gate[[n for n, own in enumerate(read) if own == one]].mean(0) for one in tokens]
        np.testing.assert_allclose(kept.array(f"{place}:gate/forget/by_token", 1), expected, rtol=1e-9)
        axis = domain(kept, f"{place}:gate/forget")[-1]
        assert (axis == "step") == (first == 0 and every == 1)
        assert set(labels(kept, axis)) == {read}
    before, after = (kept.array("high.l0:gate/forget", frame) for frame in (0, 1))
    assert (before[2:] != after[2:]).any() and np.allclose(before[:2], after[:2])
    said = [one.reason for one in kept.refusals() if one.frame == 1]
    assert not [reason for reason in said if "detach a part" in reason or "other steps" in reason]
