"""A bidirectional LSTM is trained to predict the next symbol, which its backward direction has read. The cure reads
in one direction only."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN204"
EVIDENCE = "loss of the next symbol where only the past is given, as in generation; in training the fault lowers it"
SYMBOLS = 8


class Reader(nn.Module):
    """Logits (b, t, v) of symbols (b, t)."""

    def __init__(self, *, both: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=both)
        self.read = nn.Linear(32 if both else 16, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        states: Tensor = self.lstm(self.embed(ids))[0]
        return self.read(states)


def draw(rows: int = 32, steps: int = 20) -> Tensor:
    """(b, t): what follows repeats the first two symbols, with one in four replaced."""
    ids = torch.randint(0, SYMBOLS, (rows, 2)).repeat(1, steps // 2)
    return torch.where(torch.rand(rows, steps) < 0.25, torch.randint(0, SYMBOLS, (rows, steps)), ids)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    values = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Reader(both=version == "ill")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(250):
        ids = draw()
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdefgh", loss=step_losses, next_token=True)
    inspector.run(subject, draw(1)[0], out=folder / "run.inspect", also=["structure/causal"]).close()
    ids = draw(256)
    alone = [nn.functional.cross_entropy(model(ids[:, :t])[:, -1], ids[:, t]).item() for t in range(8, 20)]
    return sum(alone) / len(alone)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
