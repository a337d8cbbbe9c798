"""Norms of what weights move, rollout and relevance against the same model written out in float64."""

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
NEAR = {"rtol": 1e-5, "atol": 1e-8}
ASKED = ("attention/weighted_norm", "attention/rollout", "attention/relevance@of=score")


@pytest.fixture(scope="module", params=WAYS)
def seen(request: pytest.FixtureRequest) -> Iterator[tuple[Listed, Reference]]:
    model = made(request.param)
    yield models.run(model, *ASKED), reference(model, models.batch().inputs[1])


def test_what_each_weight_moves_and_each_head_adds(seen: tuple[Listed, Reference]) -> None:
    sink, known = seen
    for layer in range(models.LAYERS):
        maps, values, projection = (
            part.detach() for part in (known.maps[layer], known.values[layer], known.projections[layer])
        )
        moved = torch.zeros(HEADS, STEPS, STEPS, dtype=torch.float64)
        added = torch.zeros(HEADS, STEPS, dtype=torch.float64)
        for a in range(HEADS):
            for q in range(STEPS):
                vectors = [maps[a, q, k] * values[a, k] @ projection[a] for k in range(STEPS)]
                moved[a, q] = torch.stack([vector.norm() for vector in vectors])
                added[a, q] = sum(vectors).norm()  # type: ignore[union-attr]
        np.testing.assert_allclose(sink.array(f"{place(layer)}:attention/weighted_norm"), moved, **NEAR)
        np.testing.assert_allclose(sink.array(f"{place(layer)}:attention/head_output"), added, **NEAR)


def test_rollout_multiplies_the_layers(seen: tuple[Listed, Reference]) -> None:
    sink, known = seen
    expected = torch.eye(STEPS, dtype=torch.float64)
    for layer, maps in enumerate(known.maps):
        expected = (0.5 * maps.detach().mean(0) + 0.5 * torch.eye(STEPS, dtype=torch.float64)) @ expected
        found = sink.array("layers:attention/rollout")[layer]
        np.testing.assert_allclose(found, expected, **NEAR)
        np.testing.assert_allclose(found.sum(-1), 1.0, rtol=1e-6)
    assert sink.channel("layers:attention/rollout").labels["layer"] == (place(0), place(1))


def test_relevance_follows_the_positive_part(seen: tuple[Listed, Reference]) -> None:
    sink, known = seen
    top = known.logits[-1].argmax()
    slopes = torch.autograd.grad(known.logits[-1, top], known.maps, retain_graph=True)
    expected = torch.eye(STEPS, dtype=torch.float64)
    for layer, (maps, slope) in enumerate(zip(known.maps, slopes, strict=True)):
        expected = expected + (maps.detach() * slope).clamp(min=0).mean(0) @ expected
        found = sink.array("layers:attention/relevance")[layer]
        np.testing.assert_allclose(found, expected - torch.eye(STEPS, dtype=torch.float64), **NEAR)


@pytest.mark.parametrize("way", WAYS)
def test_relevance_to_the_loss_is_what_lowers_it(way: str) -> None:
    """y is minus the loss, so that a weight that makes the loss smaller counts."""
    model = made(way)
    sink, known = models.run(model, "attention/relevance"), reference(model, models.batch().inputs[1])
    slopes = torch.autograd.grad(-known.losses.sum(), known.maps)
    expected = torch.eye(STEPS, dtype=torch.float64)
    for layer, (maps, slope) in enumerate(zip(known.maps, slopes, strict=True)):
        expected = expected + (maps.detach() * slope).clamp(min=0).mean(0) @ expected
        found = sink.array("layers:attention/relevance")[layer]
        np.testing.assert_allclose(found, expected - torch.eye(STEPS, dtype=torch.float64), **NEAR)
    assert "y is minus the loss" in sink.channel("layers:attention/relevance").formula


class Encoder(nn.Module):
    """Fused layers, which run without gradients and keep no heads of their own."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def test_fused_layers_without_a_loss() -> None:
    """No loss: the layers run fused, and the norms are those of the weights of the module."""
    torch.manual_seed(0)
    model, x = Encoder().eval(), torch.randn(1, 5, 8)
    sink = Listed()
    subject = Subject(model=model, kind="vectors", width=8)
    perform(subject, Batch(x, torch.tensor([5])), sink, RunOptions(only=("attention/weighted_norm",)))
    own = model.layers.layers[0].self_attn
    _, weights = own(x, x, x, average_attn_weights=False)
    value = (x[0] @ own.in_proj_weight[16:].T + own.in_proj_bias[16:]).unflatten(-1, (2, 4)).transpose(0, 1)
    projected = value @ own.out_proj.weight.T.unflatten(0, (2, 4))
    expected = weights[0] * projected.norm(dim=-1)[:, None]
    np.testing.assert_allclose(
        sink.array("layers.layers.0.self_attn:attention/weighted_norm"), expected.detach(), rtol=1e-4, atol=1e-6
    )


class Plain(nn.Module):
    """One head without a projection behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.layer(x) @ x.mT).softmax(-1) @ x


def test_without_a_projection_values_are_taken_as_they_are() -> None:
    torch.manual_seed(0)
    model, x, sink = Plain(), torch.randn(1, 5, 4), Listed()
    perform(Subject(model=model, kind="vectors", width=4), Batch(x, torch.tensor([5])), sink, RunOptions(only=ASKED))
    expected = (model.layer(x) @ x.mT).softmax(-1)[0] * x[0].norm(dim=-1)
    name = "model:attention/weighted_norm"
    np.testing.assert_allclose(sink.array(name)[0], expected.detach(), rtol=1e-5, atol=1e-7)
    assert "no projection behind the heads was found" in sink.channel(name).method
    assert "no scores at every step" in sink.refusals()["layers:attention/relevance"]
