"""A recurrent module without batch_first that is given (batch, step): it says what it goes along, and what to do."""

from __future__ import annotations

import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Refusal

OPTIONS = RunOptions(only=("states",))


class Model(nn.Module):
    """ids (b, t) → states, time-major or batch-first, given as they are or transposed."""

    def __init__(self, *, batch_first: bool, turned: bool) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(9, 3), nn.LSTM(3, 4, batch_first=batch_first)
        self.turned = turned

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        found: Tensor = self.rnn(x.transpose(0, 1) if self.turned else x)[0]
        return found


def run(model: nn.Module, batch: Tensor) -> Listed:
    sink = Listed()
    perform(adopt(model), Batch(batch, torch.full((len(batch),), batch.shape[1])), sink, OPTIONS)
    return sink


@pytest.mark.parametrize("size", [1, 3])
def test_steps_taken_for_a_batch_are_told(size: int) -> None:
    sink = run(Model(batch_first=False, turned=False), torch.arange(size * 6).view(size, 6) % 9)
    reason = sink.refusals()["rnn:h"]
    assert reason.startswith("Runs along the batch: make rnn with batch_first=True")
    assert "batch_first=True" in reason and f"the {size} sequence" in reason and "6 steps" in reason


def test_a_module_alone_is_told_too() -> None:
    assert "make lstm with batch_first=True" in run(nn.LSTM(3, 4), torch.randn(1, 6, 3)).refusals()["lstm:h"]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("first", [True, False])
def test_the_right_layout_is_not_told(size: int, first: bool) -> None:
    ids = torch.arange(size * 6).view(size, 6) % 9
    sink = run(Model(batch_first=first, turned=not first), ids)
    assert not sink.refusals() and sink.array("rnn.l0:h").shape == (6, 4)
    assert not run(nn.LSTM(3, 4, batch_first=True), torch.randn(size, 6, 3)).refusals()


def test_the_cause_is_the_only_thing_that_is_said_of_the_module_and_comes_first() -> None:
    sink, model = Listed(), Model(batch_first=False, turned=False)
    subject = adopt(model)
    subject.loss = lambda out, _batch: out.square().mean(-1)
    ids = torch.arange(18).view(3, 6) % 9
    perform(subject, Batch(ids, torch.full((3,), 6)), sink, RunOptions(also=("influence",)))
    own = [refusal.reason for refusal in sink.of(Refusal) if refusal.channel == "rnn:h"]
    assert len(own) == 1 and own[0].startswith("Runs along the batch: make rnn with batch_first=True")
    assert "3 sequences" in own[0] and sink.of(Refusal)[0].reason == own[0]
    assert sink.refusals()["input:influence/loss"].startswith("rnn runs along the batch")


def test_a_batch_of_another_size_inside_is_told_as_that() -> None:
    """Six sequences of five steps inside, of three: nothing says that steps were taken for a batch."""

    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            both = torch.cat((x, x)).transpose(0, 1)[:5]
            found: Tensor = self.rnn(both)[0].transpose(0, 1)[:3]
            return found

    reason = run(Pairs(), torch.randn(3, 6, 3)).refusals()["rnn:h"]
    assert reason.startswith("rnn ran on 6 sequences at once while the batch has 3")
