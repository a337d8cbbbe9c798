"""The recurrent part is cut off from the loss by a `.data`, so that only the read-out learns, from a random net. The
cure reads the output itself, as the rule says to look for a detach() or .data."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN111"


class Reader(nn.Module):
    """Says which of eight symbols was the fifth last one."""

    def __init__(self, *, cut: bool) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)
        self.cut = cut

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, 8)."""
        last = self.rnn(self.embedding(ids))[0][:, -1]
        scores: Tensor = self.head(last.data if self.cut else last)
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam; the cured one goes on from where the ill one ends."""
    torch.manual_seed(seed)
    model = Reader(cut=version != "healthy")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    if version == "cured":
        loop(model, optimizer)
        model.cut = False
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
        return loop(model, optimizer)


def loop(model: Reader, optimizer: torch.optim.Optimizer) -> float:
    """400 iterations; the mean loss of the last 50."""
    losses = []
    for _ in range(400):
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
