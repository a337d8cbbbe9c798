"""The weight of the loss is annealed from nearly 0 to 1, by 5 % an iteration: Adam's second moment with β₂ = 0.999 is
always far behind, so that steps are ten times too large. The cure is β₂ = 0.95."""

import math
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN304"


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
    """350 iterations; the loss that is logged has no weight. Healthy is never annealed; its β₂ is that of the ill."""
    torch.manual_seed(seed)
    model, losses = Reader(), []
    optimizer = torch.optim.Adam(
        model.parameters(), 0.03, betas=(0.9, 0.95 if version == "cured" else 0.999), eps=1e-12
    )
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2) as watcher:
        for number in range(350):
            ids = torch.randint(0, 8, (32, 10))
            loss = nn.functional.cross_entropy(model(ids), ids[:, -3])
            weight = 1.0 if version == "healthy" else min(1.0, 1e-4 * math.exp(0.05 * max(0, number - 120)))
            optimizer.zero_grad()
            (weight * loss).backward()
            optimizer.step()
            watcher.log(loss=loss.item())
            losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
