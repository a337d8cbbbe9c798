"""A part that requires no gradient: what was drawn is told from what was trained, and a net that learns has none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import inspector
from inspector.engine.watch.as_drawn import as_drawn
from inspector.records import Finding


def drawn() -> nn.ModuleDict:
    """One of each kind, seeded."""
    torch.manual_seed(0)
    return nn.ModuleDict({
        "linear": nn.Linear(30, 20), "conv": nn.Conv1d(6, 10, 3), "gru": nn.GRU(5, 12, 2), "cell": nn.LSTMCell(4, 9),
        "attention": nn.MultiheadAttention(16, 2), "embedding": nn.Embedding(40, 8), "tiny": nn.Linear(4, 4),
        "norm": nn.LayerNorm(200),
    })  # fmt: skip


def named(model: nn.Module) -> set[str]:
    return set(as_drawn(model, [name for name, _ in model.named_parameters()]))


def test_weights_as_they_are_drawn_are_known_and_nothing_else() -> None:
    model = drawn()
    gru = {f"gru.weight_{one}_l{n}" for one in ("ih", "hh") for n in range(2)}
    assert named(model) == {
        "linear.weight", "conv.weight", *gru, "cell.weight_ih", "cell.weight_hh", "attention.in_proj_weight",
        "attention.out_proj.weight",
    }  # fmt: skip
    assert as_drawn(model, ["linear.weight"]) == ["linear.weight"]


def test_what_was_trained_for_a_while_is_known_to_be_trained() -> None:
    model = drawn()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(100):
        optimizer.zero_grad()
        sum((one.square() * torch.randn_like(one)).sum() for one in model.parameters()).backward()  # type: ignore[union-attr]
        optimizer.step()
    assert not named(model)


@pytest.mark.parametrize("draw", [nn.init.orthogonal_, nn.init.zeros_, nn.init.xavier_normal_, nn.init.trunc_normal_])
def test_other_ways_to_draw_are_not_known(draw: object) -> None:
    model = nn.Linear(40, 40)
    draw(model.weight)  # type: ignore[operator]
    assert not named(model)


def watched(path: Path, *, frozen: bool, trained: bool) -> list[Finding]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 2))
    if trained:
        with torch.no_grad():
            model[0].weight.mul_(1.1)
    model[0].requires_grad_(not frozen)
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
    with inspector.watch(model, optimizer, path, every=1):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 20)).square().mean().backward()
            optimizer.step()
    return [one for one in inspector.diagnose(path).findings if one.id in ("IN126", "IN110", "IN111")]


def test_a_frozen_part_of_a_watched_training(tmp_path: Path) -> None:
    (ill,) = watched(tmp_path / "a.inspect", frozen=True, trained=False)
    assert ill.severity == "warning" and "2 parameters require no gradient and stay as they are" in ill.message
    assert "0.weight is as PyTorch draws them" in ill.message
    (kept,) = watched(tmp_path / "b.inspect", frozen=True, trained=True)
    assert kept.severity == "info" and "0.weight, 0.bias" in kept.message and "drawn" not in kept.message
    assert watched(tmp_path / "c.inspect", frozen=False, trained=False) == []
