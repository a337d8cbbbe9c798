"""The softmax of attention is taken along axis 1 of (batch, query, key), as of a matrix without a batch: over queries.
The cure takes it along the last axis, over keys."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN153"
EVIDENCE = "loss"
SYMBOLS, STEPS, WIDTH = 8, 14, 16


class Reader(nn.Module):
    """Causal attention of one head without a way round it: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(STEPS, WIDTH))
        self.inward, self.read, self.axis = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, SYMBOLS), axis

    def forward(self, ids: Tensor) -> Tensor:
        """Scores, masked, their softmax, values."""
        q, k, v = self.inward(self.embed(ids) + self.positions).chunk(3, -1)
        scores = q @ k.mT / WIDTH**0.5
        hidden = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
        return self.read(scores.masked_fill(hidden, -torch.inf).softmax(self.axis) @ v)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """100 iterations with Adam: at each step the symbol two steps before."""
    torch.manual_seed(seed)
    model, losses = Reader(1 if version == "ill" else -1), []
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(100):
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
