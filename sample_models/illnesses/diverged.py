"""The schedule multiplies the learning rate by 1.02 in every iteration: the loss falls, and then rises for good. The
cure goes back to before the rise, iteration 100, and lowers the learning rate to what it was at first."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN302"


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
    """500 iterations with Adam; healthy keeps its learning rate."""
    torch.manual_seed(seed)
    model, losses = Reader(), []
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    last = {"ill": 500, "healthy": 0, "cured": 100}[version]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1.02**n if n < last else 1.0)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2, cost="light"):
        for _ in range(500):
            ids = torch.randint(0, 8, (32, 10))
            loss = nn.functional.cross_entropy(model(ids), ids[:, -5])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
