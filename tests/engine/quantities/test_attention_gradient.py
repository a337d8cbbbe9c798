"""Attention beside gradient against autograd on the same model written out in float64."""

from __future__ import annotations

from collections.abc import Iterator

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, STEPS, WAYS, Reference, made, place, reference
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
NEAR = {"rtol": 1e-5, "atol": 1e-9}


@pytest.fixture(scope="module", params=WAYS)
def seen(request: pytest.FixtureRequest) -> Iterator[tuple[Listed, Reference]]:
    model = made(request.param)
    yield models.run(model, "attention/gradient"), reference(model, models.batch().inputs[1])


def gradients(known: Reference, number: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(number, known.maps, retain_graph=True))


def test_the_gradient_at_the_weights_is_that_of_autograd(seen: tuple[Listed, Reference]) -> None:
    sink, known = seen
    allowed = torch.ones(STEPS, STEPS).tril()
    for layer, expected in enumerate(gradients(known, known.losses.sum())):
        np.testing.assert_allclose(sink.array(f"{place(layer)}:attention/gradient"), expected * allowed, **NEAR)
        product = (known.maps[layer] * expected).detach()
        np.testing.assert_allclose(sink.array(f"{place(layer)}:attention/times_gradient"), product, **NEAR)
        rows = sink.array(f"{place(layer)}:attention/importance_by_query")
        np.testing.assert_allclose(rows, product.sum(-1), **NEAR)
        whole, by_query = sink.array(f"{place(layer)}:attention/importance").T
        np.testing.assert_allclose(whole, product.sum((1, 2)).abs(), **NEAR)
        np.testing.assert_allclose(by_query, product.sum(2).abs().sum(1), **NEAR)


def test_importance_is_the_change_of_the_loss_as_a_head_is_scaled() -> None:
    """Michel et al. define it by ξ_h = 1, a factor on the head: a difference quotient at that factor."""
    model, ids, step = made("written"), models.batch().inputs[1], 1e-5

    def scaled(by: float) -> float:
        def change(layer: int, maps: Tensor, _values: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
            factor = torch.ones(HEADS, 1, 1, dtype=torch.float64)
            factor[0] += by * (layer == 1)
            return maps, z * factor

        return float(reference(model, ids, change).losses.sum().detach())

    slope = abs(scaled(step) - scaled(-step)) / (2 * step)
    found = models.run(model, "attention/gradient").array(f"{place(1)}:attention/importance")
    assert found[0, 0] == pytest.approx(slope, rel=1e-5)


def test_the_score_of_a_class_at_a_step() -> None:
    model = made("fused")
    known = reference(model, models.batch().inputs[1])
    sink = models.run(model, "attention/gradient@of=score@step=3@token=2")
    for layer, expected in enumerate(gradients(known, known.logits[3, 2])):
        found = sink.array(f"{place(layer)}:attention/gradient")
        np.testing.assert_allclose(found, expected * torch.ones(STEPS, STEPS).tril(), **NEAR)
    about = sink.channel(f"{place(0)}:attention/gradient")
    assert "score of class 2 ('c') at step 3" in about.formula and about.unit == "1"
    assert not sink.array(f"{place(1)}:attention/gradient")[:, 4:].any(), "later queries do not reach step 3"


def test_a_frozen_model_is_followed_and_left_frozen() -> None:
    model = made("fused").requires_grad_(False)
    sink = models.run(model, "attention/gradient")
    assert f"{place(0)}:attention/importance" in sink.names()
    assert not any(value.requires_grad for value in model.parameters())


@pytest.mark.parametrize(("request_", "said"), [("of=score@step=99", "no step 99"), ("of=score@token=99", "no class")])
def test_what_is_not_there_is_refused(request_: str, said: str) -> None:
    sink = models.run(made("fused"), f"attention/gradient@{request_}")
    assert said in " ".join(sink.refusals().values())


class Decoder(nn.Module):
    """An encoder, and a decoder that attends to its states with an additive score, once a step."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.cell = nn.GRU(3, 4, batch_first=True), nn.GRUCell(4, 4)
        self.w, self.u, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.encoder(x)[0]
        return self.decode(h, [])

    def decode(self, h: Tensor, rows: list[Tensor]) -> Tensor:
        s, out = h.new_zeros(len(h), 4), []
        for _ in range(3):
            weights = self.v(torch.tanh(self.w(s)[:, None] + self.u(h))).softmax(1)
            rows.append(weights)
            s = self.cell((weights * h).sum(1), s)
            out.append(s)
        return torch.stack(out, 1)


def test_the_rows_of_a_decoder() -> None:
    """Multiply and sum, one row a step; the gradient is that at each step's own weights."""
    torch.manual_seed(1)
    model, x = Decoder().double(), torch.randn(2, 5, 3, dtype=torch.float64)
    rows: list[Tensor] = []
    number = model.decode(model.encoder(x)[0], rows).square().sum()
    expected = list(torch.autograd.grad(number, rows))
    subject = Subject(model=model, kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    sink = Listed()
    perform(subject, Batch(x, torch.tensor([5, 5]), look_at=1), sink, RunOptions(only=("attention/gradient",)))
    (name,) = (one for one in sink.names() if one.endswith("attention/gradient"))
    found = sink.array(name)
    assert found.shape == (1, 3, 5)
    np.testing.assert_allclose(found[0], torch.stack([one[1, :, 0] for one in expected]), **NEAR)


class Twice(nn.Module):
    """The same weights multiply two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        weights = (self.layer(x) @ x.mT).softmax(-1)
        return weights @ x + weights @ x.square()


def test_weights_of_several_values_are_refused() -> None:
    sink = Listed()
    subject = Subject(model=Twice(), kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    perform(subject, Batch(torch.randn(1, 5, 3), torch.tensor([5])), sink, RunOptions(only=("attention/gradient",)))
    assert any("multiply several values" in reason for reason in sink.refusals().values())
