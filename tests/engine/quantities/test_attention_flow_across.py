"""Rollout and relevance of an encoder–decoder, against its attention written out in float64 and the papers' rules."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, HEADS, STEPS, SLOTS, LAYERS, CLASSES = 8, 2, 6, 4, 2, 5
ASKED = ("attention/rollout", "attention/relevance@of=score@step=2")
NEAR = {"rtol": 1e-5, "atol": 1e-8}


class Side(nn.Module):
    """x + attention within, then + attention to the source where there is one."""

    def __init__(self, across: bool, within: bool = True) -> None:
        super().__init__()
        self.own = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) if within else None
        self.cross = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) if across else None
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        if self.own is not None:
            x = x + self.own(x, x, x, need_weights=False)[0]
        if self.cross is not None and source is not None:
            x = x + self.cross(x, source, source, need_weights=False)[0]
        return x + self.layer(x).tanh()


class Both(nn.Module):
    """ids (b, t) → scores (b, 4, 5): slots that are learned attend to what is read, as in DETR."""

    def __init__(self, encoded: bool = True, within: bool = True) -> None:
        super().__init__()
        self.embedding, self.slots = nn.Embedding(7, WIDTH), nn.Parameter(torch.zeros(SLOTS, WIDTH))
        self.encoder = nn.ModuleList(Side(False) for _ in range(LAYERS * encoded))
        self.decoder = nn.ModuleList(Side(True, within) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for side in self.encoder:
            x = side(x)
        y = self.slots.expand(len(ids), -1, -1)
        for side in self.decoder:
            y = side(y, x)
        out: Tensor = self.head(y)
        return out


def made(**how: bool) -> Both:
    torch.manual_seed(5)
    model = Both(**how).double().eval()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn_like(value) * 0.5)
    return model


IDS = torch.tensor([[0, 3, 5, 1, 6, 2]])


def run(model: nn.Module, *asked: str) -> Listed:
    sink = Listed()
    subject = Subject(
        model=model, kind="tokens", vocabulary="abcdefg", labels="vwxyz", decoder="decoder",
        answer=lambda scores, _batch: scores.argmax(-1),
        loss=lambda scores, _batch: -scores.log_softmax(-1).amax(-1),
    )  # fmt: skip
    perform(subject, Batch(IDS, torch.tensor([STEPS])), sink, RunOptions(only=asked))
    return sink


@dataclass
class Written:
    """Every map (a, q, k) with its graph: of the encoder, and of the decoder as (own, cross) by layer."""

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    scores: Tensor = field(default_factory=lambda: torch.zeros(0))


def attend(part: nn.MultiheadAttention, x: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
    weights = part.in_proj_weight.chunk(3)
    biases = part.in_proj_bias.chunk(3)
    q, k, v = (
        (given @ w.T + b).view(len(given), HEADS, -1).transpose(0, 1)
        for given, w, b in zip((x, source, source), weights, biases, strict=True)
    )
    map_ = (q @ k.mT / math.sqrt(WIDTH // HEADS)).softmax(-1)
    return part.out_proj((map_ @ v).transpose(0, 1).reshape(len(x), WIDTH)), map_


def written(model: Both) -> Written:
    found, x = Written(), model.embedding(IDS[0])
    for side in model.encoder:
        added, map_ = attend(side.own, x, x)
        found.encoder.append(map_)
        x = x + added
        x = x + side.layer(x).tanh()
    y = model.slots
    for side in model.decoder:
        added, own = attend(side.own, y, y)
        y = y + added
        added, cross = attend(side.cross, y, x)
        y = y + added
        y = y + side.layer(y).tanh()
        found.decoder.append((own, cross))
    found.scores = model.head(y)
    return found


@pytest.fixture(scope="module")
def seen() -> tuple[Listed, Written]:
    model = made()
    return run(model, *ASKED), written(model)


def test_rollout_goes_through_both_sequences_as_one_graph(seen: tuple[Listed, Written]) -> None:
    """Abnar & Zuidema's product of ½ (A + I), each A over the positions of both sequences side by side."""
    sink, known = seen
    total = STEPS + SLOTS
    whole, expected = torch.eye(total, dtype=torch.float64), []

    def layer(map_: Tensor, rows: slice, columns: slice) -> Tensor:
        a = torch.eye(total, dtype=torch.float64)
        a[rows] = 0.0
        a[rows, columns] = map_.detach().mean(0)
        return 0.5 * (a + torch.eye(total, dtype=torch.float64))

    source, answer = slice(0, STEPS), slice(STEPS, total)
    for map_ in known.encoder:
        whole = layer(map_, source, source) @ whole
    for own, cross in known.decoder:
        whole = layer(cross, answer, source) @ layer(own, answer, answer) @ whole
        expected.append(whole[answer, source])
    np.testing.assert_allclose(sink.array("cross:attention/rollout"), torch.stack(expected), **NEAR)
    assert sink.channel("cross:attention/rollout").labels["layer"] == ("decoder.0.cross", "decoder.1.cross")


def test_relevance_follows_the_rules_of_two_sequences(seen: tuple[Listed, Written]) -> None:
    """Eqs. 5 to 10 of Chefer et al. 2021: S stands for the answer, Q for the source."""
    sink, known = seen
    top = known.scores[2].argmax()
    maps = [*known.encoder, *(map_ for pair in known.decoder for map_ in pair)]
    slopes = torch.autograd.grad(known.scores[2, top], maps)
    bars = [(map_.detach() * slope).clamp(min=0).mean(0) for map_, slope in zip(maps, slopes, strict=True)]

    def bar(r: Tensor) -> Tensor:
        hat = r - torch.eye(len(r), dtype=torch.float64)
        return hat / hat.sum(1, keepdim=True) + torch.eye(len(r), dtype=torch.float64)

    r_qq = torch.eye(STEPS, dtype=torch.float64)
    for a in bars[:LAYERS]:
        r_qq = r_qq + a @ r_qq
    r_ss, r_sq = torch.eye(SLOTS, dtype=torch.float64), torch.zeros(SLOTS, STEPS, dtype=torch.float64)
    expected = []
    for own, cross in zip(bars[LAYERS::2], bars[LAYERS + 1 :: 2], strict=True):
        r_ss, r_sq = r_ss + own @ r_ss, r_sq + own @ r_sq
        r_sq = r_sq + bar(r_ss).T @ cross @ bar(r_qq)
        expected.append(r_sq)
    found = sink.array("cross:attention/relevance")
    assert found.shape == (LAYERS, SLOTS, STEPS) and found[-1].any()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **NEAR)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"encoded": False}, "No layers that attend within one sequence over 6 positions ran before decoder.0.cross"),
        ({"within": False}, "No layer before or behind decoder.0.cross attends within the answer"),
    ],
)
def test_where_there_is_no_chain_the_reason_is_said(how: dict[str, bool], why: str) -> None:
    said = run(made(**how), *ASKED).refusals()
    assert why in said["cross:attention/rollout"] and why in said["cross:attention/relevance"]
