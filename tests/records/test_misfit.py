"""The sentence about a checkpoint that does not fit: the same from the command line and from Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import inspector
from inspector.engine.errors import InputError
from inspector.records import CheckpointReport, Load, Mismatch, Run
from inspector.records.report import misfit
from inspector.transport.run_client import run_and_wait


def test_what_does_not_fit_is_named_and_the_rest_is_counted() -> None:
    found = [Mismatch(name=f"a.{n}", problem="missing") for n in range(7)]
    found += [
        Mismatch(name="ok", problem="non-finite"),
        Mismatch(name="b\x1b[2J", problem="shape", detail="(2,), not (3,)"),
    ]
    report = CheckpointReport(path="/x/w.pt", matched=2, total=11, fits=False, mismatches=tuple(found))
    said = misfit(report)
    assert said.startswith("w.pt fits 2 of the model's 11 tensors; these do not: a.0 (missing), a.1 (missing)")
    assert "a.5 (missing) and 2 more." in said and "ok" not in said and "--partial" in said and "partial=True" in said
    assert "b\\x1b[2J (shape: (2,), not (3,))" in misfit(
        CheckpointReport(path="w.pt", fits=False, mismatches=(found[-1],))
    )


@pytest.mark.skipif(sys.platform == "win32", reason="one system is enough")
def test_the_command_line_and_python_say_the_same(tmp_path: Path) -> None:
    fits = {"rnn.bias_ih_l0": torch.zeros(9)}
    torch.save({"other.weight": torch.zeros(2), **fits}, tmp_path / "w.pt")
    (tmp_path / "m.py").write_text(
        "from torch import nn\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.rnn = nn.GRU(2, 3, batch_first=True)\n    def forward(self, x):\n        return self.rnn(x)[0]\n"
    )
    load = Load(subject=f"{tmp_path / 'm.py'}:M", checkpoint=str(tmp_path / "w.pt"), trusted=True)
    outcome = run_and_wait(load, Run(path=str(tmp_path / "r.inspect")), lambda _: None, lambda _stream, _text: None)
    with pytest.raises(InputError) as refused:
        inspector.run(load.subject, checkpoint=load.checkpoint)
    assert outcome.code == 2 and outcome.sentence == str(refused.value)
