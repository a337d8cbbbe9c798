"""A recurrence that the model cuts is told of before a training, and has its number in what pre-flight keeps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import inspector


class Elman(nn.Module):
    """h = tanh(Wx + Uh), its state detached before each `every`-th step: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.embed, self.recurrent, self.read = nn.Embedding(5, 6), nn.Linear(6, 6), nn.Linear(6, 5)
        self.every = every

    def forward(self, ids: Tensor) -> Tensor:
        h, states = torch.zeros(len(ids), 6), []
        for n, x in enumerate(self.embed(ids).unbind(1)):
            h = torch.tanh(x + self.recurrent(h.detach() if self.every and n % self.every == 0 else h))
            states.append(h)
        return self.read(torch.stack(states, 1))  # type: ignore[no-any-return]


def loss(logits: Tensor, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(logits.transpose(1, 2), batch.inputs, reduction="none")


@pytest.mark.parametrize(("every", "word", "severity"), [(1, "fault", "warning"), (4, "fact", "info"), (0, "", "")])
def test_cuts_are_told_before_a_training(every: int, word: str, severity: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    subject = SimpleNamespace(model=Elman(every), vocabulary="abcde", loss=loss)
    out = tmp_path / "p.inspect"
    said = inspector.preflight(subject, torch.arange(9) % 5, quick=True, out=out)
    told = [one for one in said if one.test == "detached state"]
    assert [one.word for one in told] == [word] * bool(word)
    found = inspector.diagnose(out)
    assert [one.severity for one in found.findings if one.id == "IN124"] == [severity] * bool(severity)
    assert not found.broken
    if every == 4:
        assert "before steps 4 and 8" in told[0].sentence and told[0].place == "model"
