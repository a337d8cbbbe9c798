"""The first state is made inside the loop over steps, so that the cell begins anew at each of them and the symbol that
was read first is gone at the end. The cure makes it before the loop."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN134"


class First(nn.Module):
    """Which symbol was read first: ids (b, t) → logits (b, 6)."""

    def __init__(self, anew: bool) -> None:
        super().__init__()
        self.embedding, self.cell, self.head = nn.Embedding(6, 12), nn.GRUCell(12, 24), nn.Linear(24, 6)
        self.anew = anew

    def forward(self, ids: Tensor) -> Tensor:
        """The read-out of the last state."""
        x, h = self.embedding(ids), torch.zeros(len(ids), 24)
        for t in range(ids.shape[1]):
            if self.anew:
                h = torch.zeros(len(ids), 24)
            h = self.cell(x[:, t], h)
        return self.head(h)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = First(anew=version == "ill"), []
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(500):
            ids = torch.randint(0, 6, (64, 6))
            loss = nn.functional.cross_entropy(model(ids), ids[:, 0])
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
