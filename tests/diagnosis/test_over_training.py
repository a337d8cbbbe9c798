"""Rules over series: what a watched training and a log of another tool show, on the command line too."""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from commands import call, called
from torch import nn

import inspector
from inspector.capture import Capture
from inspector.diagnosis import diagnose


def log(folder: Path, *losses: float, name: str = "train.jsonl") -> Path:
    rows = [json.dumps({"step": n, "loss": loss, "accuracy": 0.5}) for n, loss in enumerate(losses)]
    (folder / name).write_text("\n".join(rows) + "\n")
    return folder / name


def test_a_loss_that_is_not_finite_in_a_log(tmp_path: Path) -> None:
    path = log(tmp_path, 1.0, 0.5, math.nan, math.inf, math.nan)
    said = call("diagnose", str(path), cwd=tmp_path).stdout
    assert said.startswith(
        "error: the loss is not finite first at iteration 2 in 3 of 5 points [IN102 nonfinite-training]"
    )
    assert "evidence: log:loss" in said and "remedy: Open the first iteration" in said
    assert "Nothing to look at was captured for " in said and "gradient-reach" in said
    assert "This is a log that another tool wrote" in said and "a log has no states, gradients or weights" in said
    assert called("diagnose", str(path), "--fail-on", "error", cwd=tmp_path).code == 1
    found = json.loads(call("diagnose", str(path), "--json", cwd=tmp_path).stdout)
    assert found["findings"][0]["frame"] == -1 and "nonfinite-training" in found["asked"]


def test_nothing_in_a_log_is_said_too(tmp_path: Path) -> None:
    said = call("diagnose", str(log(tmp_path, 1.0, 0.5)), "--fail-on", "info", cwd=tmp_path).stdout
    few = (
        "Too few points to judge for diverged (2 of 60 points), loss-spike (2 of 51 points), plateau (2 of 60 points)."
    )
    assert said.startswith(f"Nothing was found by nonfinite-training.\n{few}\n")


def test_a_metric_that_is_no_loss_is_a_warning_and_runs_are_named(tmp_path: Path) -> None:
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        value = "NaN" if run == "two" else "1"
        (tmp_path / run / "metrics.csv").write_text(f"step,loss,score\n0,1,2\n1,2,{value}\n")
    said = call("diagnose", str(tmp_path), cwd=tmp_path).stdout
    assert said.startswith("warning: two: score is not finite first at iteration 1 in 1 of 2 points")
    assert call("diagnose", str(tmp_path), "--run", "one", cwd=tmp_path).stdout.startswith("Nothing was found")


def test_a_watched_training_with_a_gradient_that_is_not_finite(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "w.inspect", every=1):
        for n in range(6):
            loss = model(torch.randn(4, 2)).mean() * (math.inf if n == 4 else 1.0)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    with inspector.open_capture(tmp_path / "w.inspect") as capture:
        assert isinstance(capture, Capture)
        found = diagnose(capture, capture.frames)
    (told,) = [one for one in found.findings if one.rule == "nonfinite-training"]
    assert told.severity == "error" and told.frame == -1 and told.iterations == (5,)
    assert told.evidence == ("training:loss", "parameters:gradient/non_finite")
    assert told.message.startswith(
        "the loss is not finite first at iteration 5 in 2 of 6 points, and so is the gradient of"
    )
