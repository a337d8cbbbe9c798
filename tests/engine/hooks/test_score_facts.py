"""What is read off graphs of attention, beside how each was made."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import inspector
from inspector.engine.hooks.loss_broadcast import crosses_all
from inspector.engine.hooks.score_facts import score_facts
from inspector.records.scores import SCORES
from tests.support.attention_stacks import ENTRIES, Made, stack

ROOT = math.sqrt(ENTRIES)
X = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(1))


def facts(model: nn.Module, *given: Tensor) -> dict[str, float]:
    found = score_facts([model(*given)])
    assert found is not None
    return dict(zip(SCORES, found, strict=True))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("scale", [1 / ROOT, 1.0, ROOT, 3.0])
def test_the_factor_is_the_one_by_which_scores_are_multiplied(fused: bool, scale: float) -> None:
    found = facts(stack(Made(scale=scale, fused=fused)), X)
    assert found["factor"] == pytest.approx(scale) and found["width"] == ENTRIES and found["maps"] == 4
    assert facts(stack(Made(scale=math.nan, fused=True)), X)["factor"] == pytest.approx(1 / ROOT)


@pytest.mark.parametrize("fused", [False, True])
def test_of_normalised_queries_no_factor_is_known(fused: bool) -> None:
    assert math.isnan(facts(stack(Made(scale=10.0, normalised=True, fused=fused)), X)["factor"])


@pytest.mark.parametrize(("scores", "count"), [("", 0), ("tanh", 0), ("relu", 4), ("clamp", 4)])
def test_scores_below_0_that_are_cut_off_are_seen(scores: str, count: int) -> None:
    """A soft cap is no ReLU, and its scores are left alone."""
    found = score_facts([stack(Made(scores=scores))(X)])
    assert found is None if scores == "tanh" else found is not None and found[SCORES.index("rectified")] == count


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("style", ["halves", "pairs", "complex"])
def test_the_same_turn_twice_is_told_from_one_and_from_two_that_differ(style: str, fused: bool) -> None:
    for turns, angle, count in ((0, 1.0, 0), (1, 1.0, 0), (2, 1.0, 4), (2, 0.5, 0), (3, 1.0, 4)):
        found = facts(stack(Made(turns=turns, style=style, fused=fused, angle=angle)), X)
        assert found["turned again"] == count, (turns, angle)
        assert found["factor"] == pytest.approx(1 / ROOT)


@pytest.mark.parametrize("adds", [(True, True), (False, True), (True, False), (False, False)])
def test_products_between_layers_are_those_that_cannot_be_gone_round(adds: tuple[bool, bool]) -> None:
    """Weights by values, the values' layer and the layer behind in any case; in each layer between the same again where
    attention is not added to, and in each but the uppermost two of the layer behind."""
    for layers in (2, 4, 7):
        found = facts(stack(Made(adds=adds), layers), X)
        between = 3 + 3 * (layers - 2) * (not adds[0]) + 2 * (layers - 1) * (not adds[1])
        assert (found["layers"], found["products between"]) == (layers, between)


def test_torchs_own_layers_have_a_way_round_and_a_recurrent_decoder_is_no_stack() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    found = facts(nn.TransformerEncoder(layer, 6), torch.randn(2, 5, 16))
    assert (found["layers"], found["products between"]) == (6, 3) and found["factor"] == pytest.approx(1 / ROOT)
    whole = nn.Transformer(16, 2, 3, 3, 32, batch_first=True)
    found = facts(whole, torch.randn(2, 5, 16), torch.randn(2, 4, 16))
    assert found["maps"] == 9 and found["products between"] - 3 < found["layers"] - 1


class Decoder(nn.Module):
    """A cell that attends to its source at each step, by a projection of its state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.query, self.key = nn.GRUCell(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, source: Tensor) -> Tensor:
        source, said = self.key(source), []
        h = source.mean(1)
        for _ in range(6):
            weights = (self.query(h)[:, None] @ source.mT / 4).softmax(-1)
            h = self.cell((weights @ source)[:, 0], h)
            said.append(h)
        return torch.stack(said, 1)


def test_one_layer_that_is_called_again_is_one() -> None:
    found = score_facts([Decoder()(torch.randn(2, 5, 16))])
    assert found is not None and found[SCORES.index("layers")] == 0
    assert score_facts([nn.Linear(3, 3)(torch.randn(2, 3)).softmax(-1)]) is None
    relu = nn.Linear(3, 3)(torch.randn(2, 3)).relu().softmax(-1)  # classes, not keys
    assert score_facts([relu]) is None


def watched(path: Path, model: nn.Module, loss: Any) -> list[str]:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with inspector.watch(model, optimizer, path, every=1, cost="full") as watcher:
        for _ in range(4):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    assert watcher.error is None
    found = inspector.diagnose(path)
    assert not found.broken
    return [one.id for one in found.findings if one.id in ("IN150", "IN151", "IN152", "IN153", "IN450", "IN451")]


@pytest.mark.parametrize(
    ("made", "ids"),
    [
        (Made(), []), (Made(turns=1), []), (Made(scores="relu"), ["IN151"]), (Made(turns=2), ["IN152"]),
        (Made(axis=-2), ["IN153"]), (Made(axis=3), []),
        (Made(scale=ROOT), ["IN450"]), (Made(adds=(False, True)), ["IN451"]), (Made(adds=(False, False)), ["IN451"]),
        (Made(scale=1.0), []), (Made(scale=10.0, normalised=True), []),
    ],
)  # fmt: skip
def test_a_training_and_a_run_name_what_was_made_otherwise(tmp_path: Path, made: Made, ids: list[str]) -> None:
    model = stack(made)
    assert watched(tmp_path / "a.inspect", model, lambda m: m(X).square().mean()) == ids
    inspector.run(SimpleNamespace(model=model), X[0], only=("structure/scores",), out=tmp_path / "b.inspect").close()
    told = inspector.diagnose(tmp_path / "b.inspect")
    assert not told.broken and [one.id for one in told.findings] == ids


class Shares(torch.nn.Module):
    """Attention without a softmax over a product: the distance of positions alone says where it looks."""

    def forward(self, x: Tensor) -> Tensor:
        steps = torch.arange(x.shape[1])
        far = (steps[:, None] - steps).abs().to(x.dtype)
        return torch.softmax(-far, -1).expand(len(x), -1, -1) @ x


@pytest.mark.parametrize("attends", [True, False])
def test_attention_without_products_is_told_and_no_attention_is_not(tmp_path: Path, attends: bool) -> None:
    model = Shares() if attends else torch.nn.GRU(X.shape[-1], 4, batch_first=True)
    only = ("structure/scores", "attention/maps")
    with inspector.run(model, X[0].detach(), only=only, out=tmp_path / "a.inspect") as capture:
        said = [one.reason for one in capture.refusals if one.channel == "model:structure/scores"]
        assert not any(name.endswith("structure/scores") for name in capture.channels)
    assert len(said) == attends and all("product of queries and keys" in one for one in said)


def test_three_layers_without_a_way_round_are_left_alone(tmp_path: Path) -> None:
    model = stack(Made(adds=(False, False)), 3)
    assert watched(tmp_path / "a.inspect", model, lambda m: m(X).square().mean()) == []


N = 6
TARGETS = torch.randn(N, generator=torch.Generator().manual_seed(2))
LOSSES: dict[str, tuple[Any, bool]] = {
    "mse": (lambda y: F.mse_loss(y, TARGETS), True),
    "squares": (lambda y: ((y - TARGETS) ** 2).mean(), True),
    "reversed": (lambda y: (TARGETS - y).abs().sum(), True),
    "l1": (lambda y: F.l1_loss(y, TARGETS), True),
    "huber": (lambda y: F.huber_loss(y.squeeze(-1), TARGETS[:, None]), True),
    "squeezed": (lambda y: F.mse_loss(y.squeeze(-1), TARGETS), False),
    "columns": (lambda y: F.mse_loss(y, TARGETS[:, None]), False),
    "pairs": (lambda y: (y[:, None, 0] - y[None, :, 0]).square().mean(), False),
    "on purpose": (lambda y: (y[:, 0, None] - TARGETS[None]).square().mean(), False),
    "weighted": (lambda y: ((y[:, 0] - TARGETS).square() * torch.rand(N)).mean(), False),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", LOSSES)
def test_predictions_that_meet_all_targets_are_told_by_shapes(tmp_path: Path, name: str) -> None:
    loss, crossed = LOSSES[name]
    x, model = torch.randn(N, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    assert crosses_all(loss(model(x))) == crossed
    assert watched(tmp_path / "a.inspect", model, lambda m: loss(m(x))) == ["IN150"] * crossed
