"""A convolution over text pads both sides alike, so that each output has read the symbol that it is to predict. The
cure pads on the left only: nothing that comes later is read."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN103"
EVIDENCE = "loss of the next symbol where only the past is given, as in generation; in training the fault lowers it"
SYMBOLS = 8


class Convolution(nn.Module):
    """Logits (b, t, v) of symbols (b, t)."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 16)
        self.pad = nn.ZeroPad1d((before, after))
        self.over_time = nn.Conv1d(16, 32, 3)
        self.read = nn.Linear(32, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        seen = self.over_time(self.pad(self.embed(ids).transpose(1, 2))).relu()
        return self.read(seen.transpose(1, 2))


def draw(rows: int = 32, steps: int = 24) -> Tensor:
    """(b, t): four of five times the symbol after the one before, else any."""
    ids = torch.randint(0, SYMBOLS, (rows, steps))
    for t in range(1, steps):
        ids[:, t] = torch.where(torch.rand(rows) < 0.8, (ids[:, t - 1] + 1) % SYMBOLS, ids[:, t])
    return ids


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    values = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Convolution(2, 0) if version == "healthy" else Convolution(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for iteration in range(400 if version == "cured" else 200):
        if iteration == 200:
            model.pad = nn.ZeroPad1d((2, 0))
        ids = draw()
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdefgh", loss=step_losses, next_token=True)
    inspector.run(subject, draw(1)[0], out=folder / "run.inspect", also=["structure/causal"]).close()
    ids = draw(256)
    alone = [nn.functional.cross_entropy(model(ids[:, :t])[:, -1], ids[:, t]).item() for t in range(8, 24)]
    return sum(alone) / len(alone)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
