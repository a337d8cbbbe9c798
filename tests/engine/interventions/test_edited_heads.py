"""Heads that are ablated: the loss and the maps behind them, against the same model written out in float64."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import STEPS, WAYS, Transformer, made, place, reference
from listed import Listed
from torch import Tensor, nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Page, parse_edit

pytestmark = pytest.mark.usefixtures("one_thread")
ASKED = ("attention/maps", "attention/gradient", "output/loss")


def edited(model: nn.Module, edits: Sequence[str], only: tuple[str, ...] = ASKED, subject: Subject | None = None,
           batch: Batch | None = None) -> tuple[Listed, Listed]:  # fmt: skip
    """What the frames of the run as it is and of the edited one hold."""
    subject = subject or Subject(model=model, kind="tokens", vocabulary="abcdefg", loss=models.loss, next_token=True)
    batch, sink = batch or models.batch(), Listed()
    plan = plan_edits(subject, batch, [parse_edit(text) for text in edits])
    perform_with_edits(subject, batch, sink, plan, RunOptions(only=only))
    frames = []
    for number in (0, 1):
        own = Listed(record for record in sink if not isinstance(record, Page) or record.frame == number)
        frames.append(own)
    return frames[0], frames[1]


def ablated(model: Transformer, layer: int, head: int, rows: slice = slice(None), *, mean: bool = False,
            value: float = 0.0) -> models.Reference:  # fmt: skip
    def change(at: int, maps: Tensor, _values: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        if at == layer:
            new = z.clone()
            new[head, rows] = z[head].mean(0) if mean else value
            z = new
        return maps, z

    return reference(model, models.batch().inputs[1], change)


def same(frame: Listed, known: models.Reference, layers: tuple[int, ...] = (0, 1)) -> None:
    """Losses, maps, and gradients at the attention of some layers. Of an ablated head the weights have no effect."""
    losses = frame.array("output:loss")
    np.testing.assert_allclose(losses[:-1], known.losses.detach(), rtol=1e-5)
    for layer, maps in enumerate(known.maps):
        np.testing.assert_allclose(frame.array(f"{place(layer)}:attention"), maps.detach(), atol=2e-3)
    slopes = torch.autograd.grad(known.losses.sum(), [known.maps[layer] for layer in layers])
    for layer, slope in zip(layers, slopes, strict=True):
        expected = slope * torch.ones(STEPS, STEPS).tril()
        found = frame.array(f"{place(layer)}:attention/gradient")
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("way", WAYS)
def test_a_head_that_gives_nothing(way: str) -> None:
    model = made(way)
    plain, without = edited(model, [f"{place(0)}:head[1]=0"])
    same(plain, reference(model, models.batch().inputs[1]))
    same(without, ablated(model, 0, 1))
    assert "forward" not in vars(model) and torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("way", WAYS)
def test_a_mean_and_a_value_at_some_queries(way: str) -> None:
    model = made(way)
    _, mean = edited(model, [f"{place(1)}:head[0]=mean"])
    same(mean, ablated(model, 1, 0, mean=True))
    _, some = edited(model, [f"{place(1)}:head[0]=0.5@2:4"])
    same(some, ablated(model, 1, 0, slice(2, 4), value=0.5))
    _, part = edited(model, [f"{place(0)}:head[1]=mean@1:3", f"{place(0)}:head[0]=0.25@3:"])
    _, first = edited(model, [f"{place(0)}:head[0]=mean@2:4"])
    same(first, ablated(model, 0, 0, slice(2, 4), mean=True))
    assert np.abs(part.array(f"{place(0)}:attention/gradient")[0, :3]).max() > 0
    assert not np.abs(part.array(f"{place(0)}:attention/gradient")[0, 3:]).any()


def test_fused_layers_in_evaluation() -> None:
    """No gradients: torch would run the layer fused; the map of the ablated layer is still shown."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).double().eval()
    x, lost = torch.randn(1, 5, 8, dtype=torch.float64), {}
    subject = Subject(model=layer, kind="vectors", width=8)
    _, without = edited(layer, ["self_attn:head[0]=0"], ("attention/maps",), subject, Batch(x, torch.tensor([5])))
    assert "self_attn:attention" in without.names() and without.refusals() == lost
    for edit in ("self_attn:head=0", "self_attn:head[1]=0"):
        assert plan_edits(subject, Batch(x, torch.tensor([5])), [parse_edit(edit)]).heads is not None


class Decoder(nn.Module):
    """One query a call."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 3)

    def forward(self, x: Tensor, without: slice = slice(0)) -> Tensor:
        s, out = x.new_zeros(len(x), 3), []
        for step in range(4):
            weights = (x @ s[:, :, None]).softmax(1)
            context = (weights * x).sum(1)
            s = self.cell(context * (step not in range(4)[without]), s)
            out.append(s)
        return torch.stack(out, 1)


def test_a_decoder_that_attends_once_a_step() -> None:
    torch.manual_seed(1)
    model, x = Decoder().double(), torch.randn(1, 4, 3, dtype=torch.float64)
    subject = Subject(model=model, kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    batch = Batch(x, torch.tensor([4]))
    _, without = edited(model, ["model:head[0]=0@1:3"], ("output/loss",), subject, batch)
    expected = model(x, slice(1, 3)).square().sum(-1)[0].detach()
    found = without.array("output:loss")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("edit", "said"),
    [("blocks.7.attention:head[0]=0", "there are blocks.0.attention, blocks.1.attention"),
     ("blocks.0.attention:head[5]=0", "has the heads 0 to 1; there is no head 5")],
)  # fmt: skip
def test_what_is_not_there_is_told(edit: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        edited(made("fused"), [edit])


def test_an_edit_of_a_head_is_written_as_it_is_read() -> None:
    for text in ("blocks.0.attn:head[3]=mean@0:", "blocks.0.attn:head=0@2:5"):
        assert str(parse_edit(text)) == text and parse_edit(text).of_heads
    with pytest.raises(ValueError, match="is no edit"):
        parse_edit("rnn.l0:h[0]=mean")


def test_from_python(tmp_path: Path) -> None:
    model, batch = made("fused"), models.batch()
    subject = Subject(model=model, kind="tokens", vocabulary="abcdefg", loss=models.loss, next_token=True)
    capture = inspector.run(
        subject, batch.inputs[1], edits=[f"{place(0)}:head[1]=0"], only=["output/loss"], out=tmp_path / "heads.inspect"
    )
    expected = [reference(model, batch.inputs[1]), ablated(model, 0, 1)]
    for frame, known in enumerate(expected):
        found = capture.array("output:loss", frame)
        np.testing.assert_allclose(found[:-1], known.losses.detach(), rtol=1e-5)


class Shared(nn.Module):
    """One attention, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = models.Own("fused")

    def forward(self, x: Tensor, without: tuple[int, ...] = ()) -> Tensor:
        for call in range(2):
            b, t, _ = x.shape
            q, k, v = (
                part(x).view(b, t, models.HEADS, -1).transpose(1, 2)
                for part in (self.attention.q, self.attention.k, self.attention.v)
            )
            if not without:
                x = x + self.attention(x)
                continue
            scores = (q @ k.mT / 2).masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -torch.inf)
            z = scores.softmax(-1) @ v
            if call in without:
                z = torch.stack((z[:, 0] * 0, z[:, 1]), 1)
            x = x + self.attention.o(z.transpose(1, 2).flatten(2))
        return x


@pytest.mark.parametrize(("at", "without"), [("attention", (0, 1)), ("attention.1", (1,))])
def test_one_call_of_several(at: str, without: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model, x = Shared().double(), torch.randn(1, 5, models.WIDTH, dtype=torch.float64)
    subject = Subject(model=model, kind="vectors", width=models.WIDTH, loss=lambda out, _batch: out.square().sum(-1))
    _, found = edited(model, [f"{at}:head[0]=0"], ("output/loss",), subject, Batch(x, torch.tensor([5])))
    expected = model(x, without).square().sum(-1)[0].detach()
    np.testing.assert_allclose(found.array("output:loss"), expected, rtol=1e-6)


class HeadsFirst(nn.Module):
    """Attention whose heads stand before the batch, (h, b, t, d); `without`: a head that gives nothing."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.project, self.out, self.fused = nn.Linear(4, 12), nn.Linear(4, 4), fused
        self.without: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).view(*x.shape[:2], 3, 2, 2).permute(2, 3, 0, 1, 4)
        z = torch.nn.functional.scaled_dot_product_attention(q, k, v) if self.fused else (q @ k.mT).softmax(-1) @ v
        if self.without is not None:
            z = torch.stack([torch.zeros_like(one) if n == self.without else one for n, one in enumerate(z)])
        result: Tensor = self.out(z.permute(1, 2, 0, 3).flatten(2))
        return result


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "written"])
@pytest.mark.parametrize("head", [0, 1])
def test_of_as_many_heads_as_sequences_the_head_is_ablated_and_not_a_sequence(fused: bool, head: int) -> None:
    torch.manual_seed(0)
    model = HeadsFirst(fused).double().eval()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    subject = Subject(model=model, kind="vectors", width=4, loss=lambda out, _batch: out.square().sum(-1))
    batch = Batch(x, torch.tensor([5, 5]), look_at=1)
    plain, found = edited(model, [f"model:head[{head}]=0"], ("output/loss",), subject, batch)
    for frame, without in ((plain, None), (found, head)):
        model.without = without
        np.testing.assert_allclose(frame.array("output:loss"), model(x)[1].detach().square().sum(-1), rtol=1e-5)
