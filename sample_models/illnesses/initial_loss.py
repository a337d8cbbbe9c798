"""The last layer is drawn twenty times too large, so that training begins far above the loss of guessing. The cure
begins with zeros there."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN202"
SYMBOLS = 12


class Model(nn.Module):
    """nn.GRU and a read-out: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.gru = nn.Embedding(SYMBOLS, 12), nn.GRU(12, 24, batch_first=True)
        self.read = nn.Linear(24, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        return self.read(self.gru(self.embed(ids))[0])


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol two steps before, NaN at the first two."""
    values = nn.functional.cross_entropy(logits[:, 2:].transpose(1, 2), batch.inputs[:, :-2], reduction="none")
    return nn.functional.pad(values, (2, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """The first loss, then 250 iterations with Adam."""
    torch.manual_seed(seed)
    model = Model()
    if version != "healthy":
        nn.init.normal_(model.read.weight, std=4.0)
    if version == "cured":
        nn.init.zeros_(model.read.weight)
    subject = SimpleNamespace(model=model, vocabulary="abcdefghijkl", loss=step_losses)
    shown = torch.randint(0, SYMBOLS, (24,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["trial/initial_loss"]).close()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(250):
        ids = torch.randint(0, SYMBOLS, (32, 16))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
