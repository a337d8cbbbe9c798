"""Which mode a model runs in is said in the log of every run whose numbers depend on it; the mode is not changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import inspector
from inspector.capture import Capture

MODEL = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.rnn, self.drop = nn.GRU(2, 3, batch_first=True), nn.Dropout(p)
    def forward(self, x):
        return self.drop(self.rnn(x)[0])
def make(p=0.5, training=True):
    return Net(p).train(training)
"""


class Net(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.rnn, self.part = nn.GRU(2, 3, batch_first=True), part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(self.rnn(x)[0].transpose(1, 2))


def said(capture: Capture) -> list[tuple[str, str]]:
    return [(log.level, log.text) for log in capture.logs if "training mode" in log.text]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("part", [nn.Dropout(0.5), nn.BatchNorm1d(3)])
def test_a_model_given_in_training_mode(part: nn.Module, many: bool) -> None:
    model, x = Net(part), torch.randn(5, 2).numpy()
    capture = inspector.run(model, data=[x, x]) if many else inspector.run(model, x)
    ((level, text),) = said(capture)
    assert level == "warning" and "(part)" in text and "model.eval()" in text
    assert model.training and part.training


@pytest.mark.parametrize("model", [Net(nn.Dropout(0.5)).eval(), Net(nn.Dropout(0.0)), Net(nn.Identity())])
def test_nothing_is_said_where_the_mode_changes_nothing(model: nn.Module) -> None:
    assert not said(inspector.run(model, torch.randn(5, 2).numpy()))


@pytest.mark.parametrize(("p", "training", "lines"), [(0.5, True, 1), (0.5, False, 0), (0.0, True, 0)])
def test_a_model_opened_by_name_runs_in_evaluation_mode(tmp_path: Path, p: float, training: bool, lines: int) -> None:
    (tmp_path / "dropping.py").write_text(MODEL)
    x = torch.randn(5, 2).numpy()
    name, arguments = f"{tmp_path / 'dropping.py'}:make", {"p": p, "training": training}
    found = said(inspector.run(name, x, arguments=arguments, edits=["input[0]=1@0:2"] if lines else []))
    assert [level for level, _ in found] == ["info"] * lines
    assert all("runs in evaluation mode" in text and "(drop)" in text for _, text in found)
