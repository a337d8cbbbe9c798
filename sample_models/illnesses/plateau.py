"""The learning rate is 3e-8 in the place of 3e-3, so that the loss stays at that of guessing. The cure is a step near
the largest that works."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN303"


class Reader(nn.Module):
    """Says after ten symbols which of eight was the fifth last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0][:, -1])
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with Adam; the cured one goes on from where the ill one ends, at a rate of 0.01."""
    torch.manual_seed(seed)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3 if version == "healthy" else 3e-8)
    if version == "cured":
        loop(model, optimizer)
        optimizer.param_groups[0]["lr"] = 0.01
    with inspector.watch(model, optimizer, folder / "run.inspect", every=5):
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
