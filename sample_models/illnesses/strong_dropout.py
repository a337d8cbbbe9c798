"""Dropout of 0.95 was written where 0.95 was to be kept: next to nothing of the states arrives at the read-out. The
cure is the share that is dropped, 0.05."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN420"


class First(nn.Module):
    """Which symbol was read first: ids (b, t) → logits (b, 8)."""

    def __init__(self, dropped: float) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 12), nn.GRU(12, 24, batch_first=True), nn.Linear(24, 8)
        self.dropout = nn.Dropout(dropped)

    def forward(self, ids: Tensor) -> Tensor:
        """The read-out of the last state."""
        return self.head(self.dropout(self.rnn(self.embedding(ids))[0][:, -1]))  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """160 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = First(0.95 if version == "ill" else 0.05), []
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(160):
            ids = torch.randint(0, 8, (32, 4))
            loss = nn.functional.cross_entropy(model(ids), ids[:, 0])
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
