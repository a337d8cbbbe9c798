"""Runs of one model, and of versions of it that differ on purpose, with every operation recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import inspector
from inspector.analysis.divergence import Divergence

MODEL = """
from types import SimpleNamespace
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 16)
        self.rnn = nn.GRU(16, 16, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.drop = nn.Dropout(0.25)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = torch.tanh(self.embed(x))
        h, _ = self.rnn(x)
        h = self.norm(h)
        h = self.drop(h)
        scores = self.head(h)
        total = (scores * scores).sum(-1)
        return total

def make():
    torch.manual_seed(0)
    return Model()
"""


def model(folder: Path, *changes: tuple[str, str]) -> Any:
    """The model, of a file in which lines were replaced."""
    text = MODEL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True)
    file = folder / "model.py"
    file.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), space)
    return space["make"]()


def run(
    folder: Path, name: str, *changes: tuple[str, str], seed: int = 0, training: bool = False, batch: Any = None,
    change: Callable[[Any], None] = lambda _model: None,
) -> Path:  # fmt: skip
    """A capture of one forward and backward pass."""
    import torch

    made = model(folder / name, *changes).train(training)
    change(made)
    generator = torch.Generator().manual_seed(3)
    given = torch.randn(4, 7, 3, generator=generator) if batch is None else batch
    given = given.to(next(made.parameters()).dtype)
    subject = SimpleNamespace(model=made, width=3, kind="vectors", loss=lambda output, _batch: output)
    from inspector.engine.model.batch import Batch

    sequence = Batch(given, torch.full((len(given),), given.shape[1]))
    path = folder / f"{name}.inspect"
    from inspector.engine.model.subject import adopt
    from inspector.engine.pipeline import RunOptions, perform, record

    adopted = adopt(subject)
    with record(path, adopted) as recording:
        perform(adopted, sequence, recording, RunOptions(only=("operations",), seed=seed))
    return path


def diverged(a: Path, b: Path) -> Divergence:
    """What is said of them."""
    return inspector.first_divergence(a, b)
