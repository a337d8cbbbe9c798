"""The optimizer is made first, and then the recurrent part is replaced by a larger one that it has never heard of.
The cure makes the optimizer after the model is complete."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN110"


class Reader(nn.Module):
    """Says which of eight symbols was the fifth last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0][:, -1])
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with Adam; the cured one goes on from where the ill one ends, with another optimizer."""
    torch.manual_seed(seed)
    model = Reader()
    early = torch.optim.Adam(model.parameters(), 3e-3)
    model.rnn = nn.GRU(8, 24, batch_first=True)
    late = torch.optim.Adam(model.parameters(), 3e-3)
    if version == "cured":
        loop(model, early)
    optimizer = early if version == "ill" else late
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
        return loop(model, optimizer)


def loop(model: Reader, optimizer: torch.optim.Optimizer) -> float:
    """500 iterations; the mean loss of the last 50."""
    losses = []
    for _ in range(500):
        ids = torch.randint(0, 8, (32, 10))
        loss = nn.functional.cross_entropy(model(ids), ids[:, -5])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
