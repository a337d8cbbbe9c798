"""A run leaves the model as it was, and a fault of one part leaves the others."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from kept import Kept
from torch import nn

from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.registries import QUANTITIES
from inspector.records import Page, Refusal, Scalar


class Model(nn.Module):
    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.rnn = nn.LSTM(4, 5, 2, batch_first=True, dropout=0.3)
        self.drop = nn.Dropout(0.2)
        self.attention = nn.MultiheadAttention(5, 1, batch_first=True)
        self.head = nn.Linear(5, 3)
        self.fails_at = fails_at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        h, _ = self.rnn(x)
        if self.fails_at == 1:
            raise RuntimeError("half-way")
        h = h + self.attention(h, h, h, need_weights=False)[0]
        out: torch.Tensor = self.head(self.drop(h))
        return out


def fingerprint(model: nn.Module) -> tuple[Any, ...]:
    data = b"".join(t.detach().numpy().tobytes() for t in (*model.parameters(), *model.buffers()))
    hooks = [
        [dict(getattr(m, name)) for name in vars(m) if "hooks" in name and isinstance(getattr(m, name), dict)]
        for m in model.modules()
    ]
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    flags = [m.training for m in model.modules()]
    return hashlib.sha256(data).hexdigest(), hooks, [g is None for g in gradients], flags


def subject(training: bool, fails_at: int = -1) -> tuple[Subject, Batch]:
    torch.manual_seed(3)
    model = Model(fails_at).train(training)
    made = Subject(model=model, kind="vectors", width=4, labels="abc", loss=lambda out, batch: out.square().mean(-1))
    return made, Batch(torch.randn(2, 9, 4), torch.tensor([9, 6]))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("fails_at", [-1, 1])
def test_nothing_of_the_model_changes(training: bool, fails_at: int) -> None:
    made, batch = subject(training, fails_at)
    before, state = fingerprint(made.model), torch.get_rng_state()
    if fails_at > 0:
        with pytest.raises(ModelError, match="half-way"):
            perform(made, batch, Kept())
    else:
        perform(made, batch, Kept())
    assert fingerprint(made.model) == before
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch._C._is_torch_function_mode_enabled()


@pytest.mark.parametrize("training", [False, True])
def test_outputs_are_bit_identical_with_and_without_looking(training: bool) -> None:
    made, batch = subject(training)
    torch.manual_seed(11)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        buffers = [b.clone() for b in made.model.buffers()]
        plain = made.run(batch).detach()
        with torch.no_grad():
            for buffer, old in zip(made.model.buffers(), buffers, strict=True):
                buffer.copy_(old)
    trace = perform(made, batch, Kept(), RunOptions(seed=5))
    assert torch.equal(trace.output.detach(), plain)


def test_a_model_that_raises_half_way_shows_what_was_seen() -> None:
    made, batch = subject(False, fails_at=1)
    kept = Kept()
    with pytest.raises(ModelError, match=r"RuntimeError \(test_pipeline\.py, line \d+\): half-way\."):
        perform(made, batch, kept)
    assert {"rnn.l0:h", "rnn.l1:gate/forget"} <= kept.names()


def test_a_probe_that_cannot_lay_out_is_refused_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.engine.probes.attention import AttentionProbe

    def broken(self: object, trace: object, emit: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(AttentionProbe, "finish", broken)
    made, batch = subject(False)
    kept = Kept()
    perform(made, batch, kept)
    assert any("ZeroDivisionError: oh" in refusal.reason for refusal in kept.refusals())
    assert "rnn.l0:h" in kept.names() and "rnn.l0:gate/input" in kept.names()


def test_a_quantity_that_raises_is_refused_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.engine.trace.quantity import Quantity

    def broken(trace: object, emit: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setitem(QUANTITIES._entries, "states", Quantity(summary="broken", run=broken, order=0))
    made, batch = subject(False)
    kept = Kept()
    perform(made, batch, kept)
    refused = [record for record in kept.records if isinstance(record, Refusal)]
    assert any("ZeroDivisionError: oh" in refusal.reason for refusal in refused)
    assert "rnn.l0:gate/input" in kept.names() and "rnn.l0:h" not in kept.names()


def test_a_cancel_stops_between_pages() -> None:
    made, batch = subject(False)
    kept = Kept()
    with pytest.raises(CancelledError):
        perform(made, batch, kept, RunOptions(cancelled=lambda: sum(isinstance(r, Page) for r in kept.records) >= 3))
    assert sum(isinstance(record, Page) for record in kept.records) == 3


def test_unknown_quantities_are_told() -> None:
    made, batch = subject(False)
    with pytest.raises(InputError, match=r"no quantity 'x'; there are .*states"):
        perform(made, batch, Kept(), RunOptions(only=("x",)))


def test_a_subject_is_anything_with_a_model() -> None:
    class Thing:
        model = nn.GRU(3, 4)
        name = "mine"

    assert adopt(Thing()).name == "mine" and adopt(Thing()).width == 3
    assert adopt(nn.Embedding(4, 2)).kind == "tokens"
    with pytest.raises(InputError, match="returned an int"):
        adopt(3, "factory")


def test_only_the_sample_looked_at_may_be_kept() -> None:
    made, batch = subject(False)
    batch.look_at = 1
    whole, part = Kept(), Kept()
    perform(made, batch, whole, RunOptions(only=("states", "gates", "gradients")))
    trace = perform(made, batch, part, RunOptions(only=("states", "gates", "gradients"), only_selected=True))
    assert all(recurrence.states.shape[1] == 1 for recurrence in trace.recurrences)
    pages = [{(r.channel, r.offset): r.array for r in k.records if isinstance(r, Page)} for k in (whole, part)]
    assert pages[0].keys() == pages[1].keys()
    for key, array in pages[0].items():
        torch.testing.assert_close(torch.from_numpy(array.copy()), torch.from_numpy(pages[1][key].copy()))


class Exits(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise SystemExit(3)


def test_a_model_that_calls_exit_is_a_fault_of_the_model() -> None:
    made = Subject(model=Exits(), kind="vectors", width=4)
    with pytest.raises(ModelError, match="exit with 3"):
        perform(made, Batch(torch.zeros(1, 3, 4), torch.tensor([3])), Kept())


class Replaces(nn.Module):
    """Puts another tensor where its buffer was, and writes into a second one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("memory", torch.zeros(3))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.memory = self.memory + 1
        self.count += 1
        return x * 2


def test_buffers_that_the_model_replaces_are_put_back() -> None:
    model = Replaces()
    kept = model.memory
    perform(Subject(model=model, kind="vectors", width=4), Batch(torch.zeros(1, 3, 4), torch.tensor([3])), Kept())
    assert model.memory is kept and not model.memory.any() and not model.count.any()


def test_a_loss_of_one_number_is_told_and_its_gradients_are_shown() -> None:
    made, batch = subject(False)
    made.loss = lambda out, batch: out.square().mean()
    kept = Kept()
    perform(made, batch, kept)
    reasons = [record.reason for record in kept.records if isinstance(record, Refusal)]
    assert any("The loss has shape ()" in reason and "(2, 9)" in reason for reason in reasons)
    assert "output:loss" not in kept.names() and "rnn.l0:gradient/state_norm" in kept.names()
    with torch.no_grad():
        mean = float(made.loss(made.run(batch), batch))
    told = {record.name: record.value for record in kept.records if isinstance(record, Scalar)}
    assert told["output:loss/mean"] == pytest.approx(mean)


def test_a_loss_that_raises_is_named() -> None:
    made, batch = subject(False)

    def loss(out: torch.Tensor, batch: Batch) -> torch.Tensor:
        raise ValueError("no targets")

    made.loss = loss
    with pytest.raises(ModelError, match=r"The loss of .* raised ValueError .*no targets"):
        perform(made, batch, Kept())


def test_a_guessed_width_that_is_wrong_is_said() -> None:
    from inspector.engine.model.subject import adopt

    class Fed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.cell(torch.cat((x[:, 0], x[:, 0]), -1))

    with pytest.raises(ModelError, match=r"has 5 numbers a step because cell \(GRUCell\), the first layer"):
        perform(adopt(Fed()), Batch(torch.zeros(1, 2, 5), torch.tensor([2])), Kept())
    with pytest.raises(
        ModelError, match=r"has 4 numbers a step; cell \(GRUCell\), the first layer that states a width, takes 5"
    ):
        perform(adopt(Fed()), Batch(torch.zeros(1, 2, 4), torch.tensor([2])), Kept())
    with pytest.raises(ModelError, match="RuntimeError") as caught:
        perform(adopt(Subject(model=Fed(), width=5)), Batch(torch.zeros(1, 2, 5), torch.tensor([2])), Kept())
    assert "first layer" not in str(caught.value)
