"""Scores are multiplied by √d where they were to be divided, so that each softmax chooses one key before anything is
learned. The cure divides."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN450"
EVIDENCE = "loss"
SYMBOLS, STEPS, WIDTH = 8, 14, 64


class Reader(nn.Module):
    """Causal attention of one head without a way round it: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(STEPS, WIDTH))
        self.inward, self.read, self.scale = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, SYMBOLS), scale

    def forward(self, ids: Tensor) -> Tensor:
        """Scores, masked, their softmax, values."""
        q, k, v = self.inward(self.embed(ids) + self.positions).chunk(3, -1)
        hidden = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
        scores = (q @ k.mT * self.scale).masked_fill(hidden, -torch.inf)
        return self.read(scores.softmax(-1) @ v)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam: at each step the symbol two steps before."""
    torch.manual_seed(seed)
    model, losses = Reader(WIDTH**0.5 if version == "ill" else WIDTH**-0.5), []
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(200):
            ids = torch.randint(0, SYMBOLS, (32, STEPS))
            loss = nn.functional.cross_entropy(model(ids)[:, 2:].flatten(0, 1), ids[:, :-2].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
