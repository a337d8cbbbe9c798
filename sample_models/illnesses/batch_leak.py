"""An LSTM is given (batch, steps, width) without batch_first, so it runs over the batch and not over time. The cure
is batch_first=True."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN104"
SYMBOLS = 6


class Tagger(nn.Module):
    """Logits (b, t, v) of symbols (b, t)."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 8)
        self.lstm = nn.LSTM(8, 24, batch_first=batch_first)
        self.read = nn.Linear(24, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        states: Tensor = self.lstm(self.embed(ids))[0]
        return self.read(states)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol two steps before; NaN at the first two."""
    values = nn.functional.cross_entropy(logits[:, 2:].transpose(1, 2), batch.inputs[:, :-2], reduction="none")
    return nn.functional.pad(values, (2, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Tagger(batch_first=version == "healthy")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        if iteration == 250:
            model.lstm.batch_first = True
        ids = torch.randint(0, SYMBOLS, (32, 16))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdef", loss=step_losses)
    inspector.run(
        subject, torch.randint(0, SYMBOLS, (24,)), out=folder / "run.inspect", also=["structure/batch"]
    ).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
