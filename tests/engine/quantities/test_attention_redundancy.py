"""Divergence of heads against the definition, pair by pair."""

from __future__ import annotations

import math

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, LAYERS, STEPS, WAYS, made, place, reference
from torch import Tensor, nn

import inspector

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("way", WAYS)
def test_divergence_of_every_pair(way: str) -> None:
    model = made(way)
    sink, known = models.run(model, "attention/redundancy"), reference(model, models.batch().inputs[1])
    for layer in range(LAYERS):
        maps, expected = known.maps[layer].detach(), torch.zeros(HEADS, HEADS, dtype=torch.float64)
        for a in range(HEADS):
            for b in range(HEADS):
                for q in range(STEPS):
                    for k in range(q + 1):
                        one, two = float(maps[a, q, k]), float(maps[b, q, k])
                        middle = (one + two) / 2
                        expected[a, b] += (one * math.log(one / middle) + two * math.log(two / middle)) / 2 / STEPS
        found = sink.array(f"{place(layer)}:attention/redundancy")
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        assert (np.diag(found) == 0).all() and 0 < found[0, 1] < math.log(2)


class Shares(nn.Module):
    """Attention whose weights are sigmoids, or of one head."""

    def __init__(self, heads: int, kind: str) -> None:
        super().__init__()
        self.heads, self.kind, self.qkv = heads, kind, nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT
        weights = scores.softmax(-1) if self.kind == "softmax" else torch.sigmoid(scores)
        return (weights @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(("heads", "kind", "why"), [(1, "softmax", "has one head"), (2, "sigmoid", "sums to 1")])
def test_what_cannot_be_compared_is_refused(heads: int, kind: str, why: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 8).numpy()
    with inspector.run(Shares(heads, kind), x, only=("attention/maps", "attention/redundancy")) as capture:
        assert not [one for one in capture.channels if one.endswith("redundancy")]
        (reason,) = (one.reason for one in capture.refusals if one.channel.endswith("redundancy"))
    assert why in reason


class OneByOne(nn.Module):
    """Two layers, each of three heads that a list computes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList(nn.Linear(8, 24) for _ in range(3)) for _ in range(2))

    def maps(self, x: Tensor) -> tuple[list[Tensor], Tensor]:
        maps = []
        for layer in self.layers:
            added = torch.zeros_like(x)
            for head in layer:  # type: ignore[union-attr]
                q, k, v = head(x).chunk(3, -1)
                maps.append((q @ k.mT).softmax(-1))
                added = added + maps[-1] @ v
            x = x + added
        return maps, x

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x)[1]


def test_heads_that_a_list_computes_are_compared_within_their_layer() -> None:
    torch.manual_seed(0)
    model, x = OneByOne().double().eval(), torch.randn(5, 8, dtype=torch.float64)
    with inspector.run(model, x.numpy(), only=("attention/maps", "attention/redundancy")) as capture:
        found = {
            name.partition(":")[0]: capture.array(name) for name in capture.channels if name.endswith("redundancy")
        }
        reasons = [one.reason for one in capture.refusals if one.channel.endswith("redundancy")]
    maps = [one[0].detach() for one in model.maps(x[None])[0]]
    assert len(found) == 2 and len(reasons) == 4 and all("is compared in" in reason for reason in reasons)
    for layer, matrix in enumerate(found[name] for name in sorted(found, key=lambda name: (len(name), name))):
        assert matrix.shape == (3, 3)
        for a in range(3):
            for b in range(3):
                one, two = maps[3 * layer + a], maps[3 * layer + b]
                middle = (one + two) / 2
                apart = (one * (one / middle).log() + two * (two / middle).log()).sum(-1) / 2
                assert matrix[a, b] == pytest.approx(float(apart.mean()), rel=1e-6, abs=1e-9)
