"""The mode in which a model is trained, by iteration, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import inspector

STEPS, LEFT = 20, 8


def flags_of(path: Path) -> list[float]:
    with inspector.open_capture(path) as capture:
        return [float(one) for one in np.ma.filled(np.ma.asarray(capture.array("training:evaluation_mode")), np.nan)]


def train(path: Path, back: bool, left: int = LEFT, frozen: bool = False) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    if frozen:
        model[1].eval()
    with inspector.watch(model, optimizer, path, every=1):
        for n in range(STEPS):
            if n == left:
                model.eval()
                with torch.no_grad():
                    model(torch.randn(8, 3))
                model.train(back)
            loss = model(torch.randn(8, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def test_an_evaluation_after_which_nobody_calls_train(tmp_path: Path) -> None:
    path = tmp_path / "run.inspect"
    train(path, back=False)
    assert flags_of(path) == [float(n >= LEFT) for n in range(STEPS)]
    (found,) = [one for one in inspector.diagnose(path).findings if one.id == "IN116"]
    assert found.severity == "warning" and found.iterations == (LEFT + 1,) and "60 % of 20" in found.message


@pytest.mark.parametrize("frozen", [False, True])
def test_a_training_that_goes_on_in_training_mode(tmp_path: Path, frozen: bool) -> None:
    """A part that is frozen on purpose is information, as it was when watching began."""
    path = tmp_path / "run.inspect"
    train(path, back=True, frozen=frozen)
    assert flags_of(path) == [0.0] * STEPS
    found = [one.severity for one in inspector.diagnose(path).findings if one.id == "IN116"]
    assert found == (["info"] if frozen else [])


def test_train_that_is_called_after_watching_began(tmp_path: Path) -> None:
    """The flags of the beginning say nothing where those of the iterations are known."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1)).eval()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        model.train()
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(8, 3)).square().mean().backward()
            optimizer.step()
    assert not [one for one in inspector.diagnose(tmp_path / "run.inspect").findings if one.id == "IN116"]
