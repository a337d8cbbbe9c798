"""A warm-up is written with `//` in the place of `/`, so that the learning rate is 0 for 600 iterations.
The cure is a learning rate that is not 0."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN112"
WARM = 600


class Reader(nn.Module):
    """Says which of eight symbols was the fifth last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0][:, -1])
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with Adam; healthy is without warm-up."""
    torch.manual_seed(seed)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    factors = {"ill": lambda n: n // WARM, "healthy": lambda n: 1.0, "cured": lambda n: min(1.0, (n + 1) / WARM)}
    schedule, losses = torch.optim.lr_scheduler.LambdaLR(optimizer, factors[version]), []
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
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
