"""What in a file could make a model, by reading it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.gui.dialogs.callables import callables
from inspector.workspace.samples import list_samples

CELLS = """
import torch
from torch import nn
LIMIT = 3
class Cell(nn.Module):
    pass
class Model(nn.Module):
    def __init__(self): self.cell = Cell()
class Data: pass
def train(model): pass
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("x = 1", []),
        ("def broken(:", []),
        ("class Net(torch.nn.Module): pass", ["Net"]),
        (CELLS, ["Model", "Cell", "Data", "train"]),
        (CELLS + "def make(hidden=3): return Model()", ["make", "Model", "Cell", "Data", "train"]),
        ("def make_data(): pass\ndef build_model(n): pass\ndef helper(): pass", ["build_model", "make_data", "helper"]),
        ("class Base(Module): pass\nclass Top(Base): pass\ndef _make(): pass", ["Top", "Base"]),
        ("class A(LightningModule): pass\nasync def make(): pass", ["A"]),
        ("if True:\n    def make(): pass", []),
    ],
)
def test_the_likeliest_comes_first(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "m.py").write_text(text)
    assert callables(tmp_path / "m.py") == names


def test_nothing_of_the_file_runs_and_what_is_no_file_has_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "m.py").write_text(f"open({str(canary)!r}, 'w')\ndef make(): pass")
    assert callables(tmp_path / "m.py") == ["make"] and not canary.exists()
    assert callables(tmp_path) == [] and callables(tmp_path / "none.py") == []
    (tmp_path / "b.py").write_bytes(b"\0\xff\xfe")
    assert callables(tmp_path / "b.py") == []


def test_every_sample_is_made_by_what_comes_first() -> None:
    assert {callables(sample.file)[0] for sample in list_samples()} == {"build"}
