"""The learning rate of Adam is 1: its first step replaces the initial weights by numbers as large as itself. The cure
is a rate a hundred times smaller."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN404"


class Reader(nn.Module):
    """Says after ten symbols which of eight was the third last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0][:, -1])
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations; healthy at 0.003."""
    torch.manual_seed(seed)
    model, losses = Reader(), []
    optimizer = torch.optim.Adam(model.parameters(), {"ill": 1.0, "healthy": 3e-3, "cured": 1e-2}[version])
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
        for _ in range(500):
            ids = torch.randint(0, 8, (32, 10))
            loss = nn.functional.cross_entropy(model(ids), ids[:, -3])
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
