"""A hidden layer of rectified units begins with biases of -5, meant to make it sparse: no unit is ever above 0, and
none learns. The cure is a leaky rectifier in its place, which passes a hundredth on."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN401"


class Reader(nn.Module):
    """Says after ten symbols which of eight was the third last one."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True)
        self.hidden, self.act, self.head = nn.Linear(24, 32), act, nn.Linear(32, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.act(self.hidden(self.rnn(self.embedding(ids))[0][:, -1])))
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Reader(nn.LeakyReLU(0.01) if version == "cured" else nn.ReLU()), []
    if version != "healthy":
        nn.init.constant_(model.hidden.bias, -5.0)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
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
