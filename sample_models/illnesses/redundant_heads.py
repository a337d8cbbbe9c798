"""Queries and keys are projected to the width of one head and used by both, so that the heads have one map. The cure
gives each head a projection of its own."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN415"
SEVERITY = "info"
SYMBOLS, WIDTH, HEADS = 8, 24, 2


class Attends(nn.Module):
    """Two heads written out: symbols (b, t) → logits of two answers (b, t, 2 v)."""

    def __init__(self, *, own: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(16, WIDTH))
        self.query, self.key = (nn.Linear(WIDTH, WIDTH if own else WIDTH // HEADS) for _ in range(2))
        self.value, self.read = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        each = (len(ids), ids.shape[1], -1, WIDTH // HEADS)
        q, k, v = (part(x).view(each).transpose(1, 2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5, -1).expand(-1, HEADS, -1, -1)
        return self.read((weights @ v).transpose(1, 2).flatten(2))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol before and of that after, both around the ends."""
    before, after = (batch.inputs.roll(shift, 1) for shift in (1, -1))
    first, second = logits.transpose(1, 2).chunk(2, 1)
    given = nn.functional.cross_entropy(first, before, reduction="none")
    return given + nn.functional.cross_entropy(second, after, reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Attends(own=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(300):
        ids = torch.randint(0, SYMBOLS, (32, 10))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, loss=step_losses, kind="tokens")
    shown = torch.randint(0, SYMBOLS, (10,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["attention/redundancy"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
