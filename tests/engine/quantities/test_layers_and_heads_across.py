"""Encoder–decoders that compute their heads one by one, and two encoders at once, against their own maps multiplied as
one graph over the positions of both sequences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, HEADS, STEPS, SLOTS, CLASSES = 8, 3, 6, 4, 5
ROLLOUT = "cross:attention/rollout"
IDS = torch.tensor([[0, 3, 5, 1, 6, 2]])


class Attends(nn.Module):
    """Heads of one module, in a loop; the last maps in `maps`."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3)) for _ in range(HEADS))
        self.maps: list[Tensor] = []

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        self.maps, out = [], torch.zeros_like(x)
        for q, k, v in self.parts:
            map_ = (q(x) @ k(source).mT / math.sqrt(WIDTH)).softmax(-1)
            self.maps.append(map_.detach()[0])
            out = out + map_ @ v(source)
        return out

    @property
    def mean(self) -> Tensor:
        return torch.stack(self.maps).mean(0)


class Both(nn.Module):
    """ids (b, t) → scores (b, 4, 5); every attention a module of the same list, whatever it attends to."""

    def __init__(self, layers: int, residual: bool = True, encoders: int = 1, beside: bool = False) -> None:
        super().__init__()
        self.embedding, self.slots = nn.Embedding(7, WIDTH), nn.Parameter(torch.zeros(SLOTS, WIDTH))
        self.layers, self.residual, self.encoders, self.beside = layers, residual, encoders, beside
        self.all = nn.ModuleList(Attends() for _ in range(layers * (encoders + 2)))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        parts, memories = iter(self.all), []
        for n in range(self.encoders):
            x = self.embedding(ids + n)
            for _ in range(self.layers):
                x = x + next(parts)(x, x)
            memories.append(x)
        y = self.slots.expand(len(ids), -1, -1)
        for n in range(self.layers):
            own, cross = next(parts), next(parts)
            memory = memories[n % self.encoders]
            if self.beside:
                y = y + own(y, y) + cross(y, memory)
                continue
            y = y + own(y, y)
            y = y + cross(y, memory) if self.residual else cross(y, memory)
        out: Tensor = self.head(y)
        return out


def made(layers: int = 2, **how: bool | int) -> Both:
    torch.manual_seed(5)
    model = Both(layers, **how).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn_like(value) * 0.5)
    return model


def run(model: nn.Module, ids: Tensor = IDS) -> Listed:
    sink = Listed()
    subject = Subject(
        model=model, kind="tokens", vocabulary="abcdefg", labels="vwxyz", decoder="",
        answer=lambda scores, _batch: scores.argmax(-1),
    )  # fmt: skip
    perform(subject, Batch(ids, torch.tensor([STEPS])), sink, RunOptions(only=("attention/rollout",)))
    return sink


@pytest.mark.parametrize(("layers", "residual"), [(1, True), (2, True), (3, True), (2, False)])
def test_heads_in_a_loop_are_heads_of_encoder_and_decoder(layers: int, residual: bool) -> None:
    model = made(layers, residual=residual)
    sink = run(model)
    model(IDS)
    maps = [one.mean for one in model.all]
    source, answer = slice(0, STEPS), slice(STEPS, STEPS + SLOTS)
    eye = torch.eye(STEPS + SLOTS, dtype=torch.float64)
    whole, expected = eye, []

    def layer(map_: Tensor, rows: slice, columns: slice) -> Tensor:
        a = eye.clone()
        a[rows] = 0.0
        a[rows, columns] = map_
        return 0.5 * (a + eye)

    for map_ in maps[:layers]:
        whole = layer(map_, source, source) @ whole
    for own, cross in zip(maps[layers::2], maps[layers + 1 :: 2], strict=True):
        whole = layer(cross, answer, source) @ layer(own, answer, answer) @ whole
        expected.append(whole[answer, source])
    assert ROLLOUT not in sink.refusals(), sink.refusals()
    np.testing.assert_allclose(sink.array(ROLLOUT), torch.stack(expected), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"encoders": 2}, "attend to different sequences, so there is no single chain to follow"),
        ({"beside": True}, "are neither heads of one layer nor computed one from the other"),
    ],
)
def test_what_is_no_single_chain_is_refused(how: dict[str, bool | int], why: str) -> None:
    assert why in run(made(**how), IDS.clamp(max=5)).refusals()[ROLLOUT]
