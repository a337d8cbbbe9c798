"""Steps that become one vector: at both sides of each limit, and in models of other kinds than the rule's own case."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.records import Finding
from tests.support.generated_run import Measured, judged, severities

NAMES = ("into layers.0", "layers.0", "layers.1", "layers.2")
NAN = float("nan")


def frame(
    distances: list[float], steps: int = 12, loss: float = 2.0, spread: float = 0.0, rows: int | None = None
) -> dict[str, Measured]:
    labels = {"layer": NAMES[: len(distances)], "statistic": ("distance from rank one", "mean cosine")}
    shares = np.full((steps, 4), 0.25)
    shares[:1, 0] += spread
    found = {
        "layers:residual/rank": Measured(
            "residual", ("statistic", "layer"), np.array([distances, [0.5] * len(distances)]), {"labels": labels}, rows
        ),
        "layers:residual/norm": Measured("residual", ("layer", "step"), np.ones((len(distances), steps))),
        "output:probability": Measured("output", ("step", "rank"), shares),
    }
    return found if np.isinf(loss) else found | {"output:loss": Measured("output", ("step",), np.full(steps, loss))}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (frame([0.9, 0.5, 0.02, 0.0099]), ["warning"]), (frame([0.9, 0.5, 0.02, 0.0101]), []),
        (frame([0.101, 0.05, 0.02, 0.0]), ["warning"]), (frame([0.099, 0.05, 0.02, 0.0]), []),
        (frame([0.9, 0.001, 0.5, 0.6]), []), (frame([0.9, 0.0], steps=4), ["warning"]), (frame([0.9, 0.0], steps=3), []),
        (frame([0.9, 0.0], loss=0.11), ["warning"]), (frame([0.9, 0.0], loss=0.09), ["info"]),
        (frame([0.9, 0.0], spread=0.009), ["warning"]), (frame([0.9, 0.0], spread=0.011), ["info"]),
        (frame([0.9, 0.0], loss=NAN), ["info"]), (frame([0.9, 0.0], loss=np.inf), ["info"]), (frame([0.9, NAN]), []),
        (frame([0.9]), []), (frame([0.9, 0.0], steps=1), []), (frame([NAN, NAN], steps=1), []), (frame([0.9, 0.0], rows=0), []),
    ],
)  # fmt: skip
def test_on_either_side_of_each_limit(tmp_path: Path, given: dict[str, Measured], found: list[str]) -> None:
    assert severities(judged(tmp_path / "a.inspect", [given], finished=False), "rank-collapse") == found


def test_the_first_layer_of_those_that_stay_so_is_named(tmp_path: Path) -> None:
    said = judged(tmp_path / "a.inspect", [frame([0.9, 0.001, 0.02, 0.003])])
    (told,) = (one for one in said.findings if one.id == "IN421")
    assert (
        told.place == "layers.2"
        and "0.003 of their norm" in told.message
        and "0.9 before the first of 3" in told.message
    )


class Layer(nn.Module):
    """Torch's attention, and a feed-forward part: (b, t, 16) → (b, t, 16)."""

    def __init__(self, skips: bool, forward: bool, causal: bool) -> None:
        super().__init__()
        self.attention, self.skips, self.causal = nn.MultiheadAttention(16, 2, batch_first=True), skips, causal
        self.inner = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)) if forward else None

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        mask = torch.ones(t, t, dtype=torch.bool).triu(1) if self.causal else None
        x = self.skips * x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return x if self.inner is None else self.skips * x + self.inner(x)


class Net(nn.Module):
    """ids (b, t) → (b, t, 8), or of the mean of all steps (b, 8)."""

    def __init__(self, layers: list[nn.Module], pooled: bool = False, positions: bool = True) -> None:
        super().__init__()
        self.embed, self.read, self.pooled = nn.Embedding(8, 16), nn.Linear(16, 8), pooled
        self.positions = nn.Parameter(torch.randn(16, 16) * positions)
        self.layers = nn.ModuleList(layers)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        said: Tensor = self.read(x.mean(1) if self.pooled else x)
        return said


def stack(skips: bool = False, forward: bool = False, causal: bool = False, depth: int = 8, **more: bool) -> Net:
    return Net([Layer(skips, forward, causal) for _ in range(depth)], **more)


def encoder(norm_first: bool, depth: int = 12) -> Net:
    return Net(
        [
            nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=norm_first) for _ in range(depth)
        ]
    )  # fmt: skip


def said_of(path: Path, model: Net, iterations: int, ids: Tensor | None = None) -> list[Finding]:
    """Of a model that is to say each sequence backwards (or its first symbol), after some iterations."""

    def losses(said: Tensor, batch: Any) -> Tensor:
        if said.dim() == 2:
            return F.cross_entropy(said, batch.inputs[:, 0], reduction="none")
        return F.cross_entropy(said.transpose(1, 2), batch.inputs.flip(1), reduction="none")

    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(iterations):
        optimizer.zero_grad()
        some = torch.randint(0, 8, (16, 12))
        losses(model(some), SimpleNamespace(inputs=some)).mean().backward()
        optimizer.step()
    subject = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=losses)
    shown = torch.arange(12) % 8 if ids is None else ids
    inspector.run(subject, shown, out=path, also=["residual"]).close()
    with inspector.open_capture(path) as capture:
        assert any(name.endswith("residual/rank") for name in capture.channels)
    found = inspector.diagnose(path)
    assert not found.broken
    return [one for one in found.findings if one.id == "IN421"]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("iterations", [0, 40])
@pytest.mark.parametrize(
    ("make", "severity"),
    [
        (lambda: stack(), "warning"), (lambda: stack(forward=True), "warning"), (lambda: stack(pooled=True), "info"),
        (lambda: stack(causal=True, depth=16), "warning"), (lambda: stack(skips=True), ""),
        (lambda: stack(skips=True, forward=True), ""), (lambda: stack(skips=True, causal=True), ""),
        (lambda: stack(depth=1), ""), (lambda: encoder(norm_first=True), ""), (lambda: encoder(norm_first=False), ""),
    ],
    ids=["attention", "with-feed-forward", "pooled", "causal", "skips", "skips-and-feed-forward", "skips-causal", "one-layer",
         "norm-first", "norm-last"],
)  # fmt: skip
def test_models_of_other_kinds(tmp_path: Path, make: Any, severity: str, iterations: int, seed: int) -> None:
    torch.manual_seed(seed)
    said = said_of(tmp_path / "a.inspect", make(), iterations)
    assert [one.severity for one in said] == [severity] * bool(severity)


def test_steps_that_were_alike_from_the_beginning_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = stack(positions=False)
    assert not said_of(tmp_path / "a.inspect", model, 0, torch.full((12,), 3))
