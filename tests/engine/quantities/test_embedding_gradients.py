"""‖∂L/∂e(x_t)‖ against autograd on a graph in which the embedding's result is a leaf, in float64."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import perform
from inspector.records import Channel, Refusal


def norms_of(sink: Listed) -> dict[str, np.ndarray]:
    wanted = {name for name in sink.names() if name.endswith(":gradient/embedding_norm")}
    return {name.rpartition(":")[0]: sink.array(name) for name in wanted}


class Reader(nn.Module):
    """ids (b, t) → (b, t, 5), batch first or last; in a loop where `looped`."""

    def __init__(self, cell: str = "LSTM", *, first: bool = True, looped: bool = False, spoiled: bool = False) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table, self.places = nn.Embedding(9, 4), nn.Embedding(64, 4)
        self.rnn = getattr(nn, cell)(4, 5, 2, batch_first=first, bidirectional=not looped)
        self.first, self.looped, self.spoiled = first, looped, spoiled

    def forward(self, ids: Tensor) -> Tensor:
        if self.looped:
            outs, state = [], None
            for t in range(ids.shape[1]):
                out, state = self.rnn(self.table(ids[:, t])[:, None], state)
                outs.append(out)
            return torch.cat(outs, 1)
        ids = ids if self.first else ids.T
        return self.read(self.table(ids))

    def read(self, embedded: Tensor) -> Tensor:
        if self.spoiled:
            embedded.mul_(2)
        steps = embedded.shape[1 if self.first else 0]
        where = self.places(torch.arange(steps))
        out: Tensor = self.rnn(embedded + (where if self.first else where[:, None]))[0]
        return out if self.first else out.transpose(0, 1)


def loss(output: Tensor, batch: Batch) -> Tensor:
    values = output.square().sum(-1) + output.sum(-1)
    real = torch.arange(output.shape[1])[None] < batch.lengths[:, None]
    return values.masked_fill(~real, torch.nan)


def given(look_at: int) -> Batch:
    ids = torch.randint(1, 9, (3, 6), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([6, 4, 5])
    return Batch(ids * (torch.arange(6) < lengths[:, None]), lengths, look_at=look_at)


def expected(model: nn.Module, batch: Batch) -> Tensor:
    """(b, t) norms: every row of every sequence is looked up apart, as a leaf of its own."""
    twin = copy.deepcopy(model)
    rows = twin.table.weight.detach()[batch.inputs].requires_grad_()
    if twin.looped:
        leaf, twin.looped, twin.places.weight.data = rows, False, torch.zeros(64, 4, dtype=torch.float64)
        output = twin.read(leaf)
    else:
        leaf = rows if twin.first else rows.transpose(0, 1)
        output = twin.read(leaf)
    (found,) = torch.autograd.grad(loss(output, batch).nansum(), rows)
    return found.norm(dim=-1)


@pytest.mark.parametrize("look_at", [0, 1])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_norms_are_those_of_autograd(cell: str, first: bool, look_at: int) -> None:
    model, batch, sink = Reader(cell, first=first).double().eval(), given(look_at), Listed()
    perform(Subject(model, kind="tokens", loss=loss), batch, sink)
    found = norms_of(sink)
    assert list(found) == ["table"]  # a table of positions reads no tokens
    np.testing.assert_allclose(found["table"], expected(model, batch)[look_at, : batch.length], rtol=1e-12)
    channel = next(r for r in sink if isinstance(r, Channel) and r.name == "table:gradient/embedding_norm")
    assert (channel.kind, channel.dims, channel.module) == ("gradient", ("step",), "Embedding")
    assert channel.domain("step") == "step"


def test_a_loop_that_looks_up_one_token_a_call_is_one_sequence() -> None:
    model, batch, sink = Reader("GRU", looped=True).double().eval(), given(2), Listed()
    perform(Subject(model, kind="tokens", loss=loss), batch, sink)
    assert list(norms_of(sink)) == ["table"]
    np.testing.assert_allclose(norms_of(sink)["table"], expected(model, batch)[2, :5], rtol=1e-12)


def test_a_result_changed_in_place_is_refused_and_the_model_is_left_alone() -> None:
    model, batch, sink = Reader(spoiled=True).double().eval(), given(0), Listed()
    plain = model(batch.inputs)
    trace = perform(Subject(model, kind="tokens", loss=loss), batch, sink)
    assert not norms_of(sink)
    (reason,) = [r.reason for r in sink if isinstance(r, Refusal) and r.channel == "table:gradient/embedding_norm"]
    assert "in place" in reason and torch.equal(trace.output, plain)
    assert not model.table._forward_hooks and all(parameter.grad is None for parameter in model.parameters())


def test_nothing_without_a_loss_or_with_a_frozen_model() -> None:
    model, sink = Reader().double().eval(), Listed()
    perform(Subject(model, kind="tokens"), given(0), sink)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    perform(Subject(model, kind="tokens", loss=loss), given(0), sink)
    assert not norms_of(sink) and not [r for r in sink if isinstance(r, Refusal) and "embedding_norm" in r.channel]
