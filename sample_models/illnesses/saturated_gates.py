"""The weights of an LSTM begin sixty times too large, so that its gates are open or shut and pass little gradient.
The cure is the usual, smaller initialisation."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN402"
SEVERITY = "info"
SYMBOLS = 8


class Model(nn.Module):
    """nn.LSTM and a read-out: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(SYMBOLS, 8), nn.LSTM(8, 16, batch_first=True)
        self.read = nn.Linear(16, SYMBOLS)
        with torch.no_grad():
            for weight in self.lstm.parameters():
                weight.mul_(times)

    def forward(self, ids: Tensor) -> Any:
        return self.read(self.lstm(self.embed(ids))[0])


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol three steps before, NaN at the first three."""
    values = nn.functional.cross_entropy(logits[:, 3:].transpose(1, 2), batch.inputs[:, :-3], reduction="none")
    return nn.functional.pad(values, (3, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Model(60.0 if version == "ill" else 1.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(300):
        ids = torch.randint(0, SYMBOLS, (32, 16))
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
