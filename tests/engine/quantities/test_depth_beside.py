"""Recurrences that run beside each other are no layers: only of those that read each other there is a depth."""

from __future__ import annotations

import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log

pytestmark = pytest.mark.usefixtures("one_thread")


def gru(width: int, layers: int = 1) -> nn.GRU:
    return nn.GRU(width, 5, layers, batch_first=True)


class Encoders(nn.Module):
    """Two over one input, or over inputs of their own."""

    def __init__(self, *, apart: bool) -> None:
        super().__init__()
        self.left, self.right, self.apart = gru(4), gru(4), apart

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.left(x)[0], self.right(x.cos() if self.apart else x)[0]), -1)


class Joined(nn.Module):
    """A stack of two and one beside it, which a third one reads."""

    def __init__(self) -> None:
        super().__init__()
        self.stack, self.beside, self.top = gru(4, 2), gru(4), gru(10)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.top(torch.cat((self.stack(x)[0], self.beside(x)[0]), -1))[0]
        return y


class Cells(nn.Module):
    """Three cells in one loop, of which the last reads the first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.beside, self.last = nn.GRUCell(4, 5), nn.GRUCell(4, 5), nn.GRUCell(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        a = b = c = x.new_zeros(len(x), 5)
        out = []
        for t in range(x.shape[1]):
            a, b = self.first(x[:, t], a), self.beside(x[:, t], b)
            c = self.last(a, c)
            out.append(torch.cat((b, c), -1))
        return torch.stack(out, 1)


class Named(nn.Module):
    """Two encoders whose names begin as those of layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.ModuleDict({"left": gru(4), "long": gru(4)})

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([one(x)[0] for one in self.each.values()], -1)


def ran(model: nn.Module, *, loss: bool = True) -> Listed:
    torch.manual_seed(0)
    sink = Listed()
    subject = Subject(model.eval(), loss=(lambda out, _: out.square().sum(-1)) if loss else None)
    perform(subject, Batch(torch.randn(2, 6, 4), torch.full((2,), 6)), sink, RunOptions(only=("depth",)))
    return sink


@pytest.mark.parametrize("model", [Encoders(apart=False), Encoders(apart=True), Named()], ids=["one", "two", "named"])
def test_two_encoders_have_no_depth(model: nn.Module) -> None:
    sink = ran(model)
    assert not [name for name in sink.names() if name.startswith("layers:")]
    assert "run beside each other" in sink.refusals()["layers:gradient/depth"]


def test_two_encoders_that_read_the_same_have_none_without_a_loss_either() -> None:
    sink = ran(Encoders(apart=False), loss=False)
    assert "layers:h/depth_rms" not in sink.names()
    assert "run beside each other" in sink.refusals()["layers:gradient/depth"]


@pytest.mark.parametrize(
    ("model", "chain", "beside"),
    [(Joined(), ("stack.l0", "stack.l1", "top.l0"), "beside.l0"), (Cells(), ("first", "last"), "beside")],
)
def test_the_longest_chain_is_shown_and_the_others_are_named(
    model: nn.Module, chain: tuple[str, ...], beside: str
) -> None:
    sink = ran(model)
    assert sink.channel("layers:h/depth_rms").labels["layer"] == chain
    assert sink.channel("layers:gradient/depth_ratio").shape == (len(chain) - 1,)
    assert any(f"not over {beside}," in record.text for record in sink.of(Log))
