"""The input weights of a tanh recurrence begin far too large, so that its states are at the bounds and pass no
gradient. The cure is the usual, smaller initialisation."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN411"
SEVERITY = "info"
SYMBOLS = 8


class Model(nn.Module):
    """nn.RNNCell in a loop: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.embed, self.cell, self.read = nn.Embedding(SYMBOLS, 8), nn.RNNCell(8, 24), nn.Linear(24, SYMBOLS)
        with torch.no_grad():
            self.cell.weight_ih *= times
            self.cell.weight_hh *= times

    def forward(self, ids: Tensor) -> Any:
        h, states = torch.zeros(len(ids), 24), []
        for x in self.embed(ids).unbind(1):
            h = self.cell(x, h)
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol two steps before, NaN at the first two."""
    values = nn.functional.cross_entropy(logits[:, 2:].transpose(1, 2), batch.inputs[:, :-2], reduction="none")
    return nn.functional.pad(values, (2, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Model(20.0 if version == "ill" else 1.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(250):
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (24,)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
