"""Queries and keys both begin at 0, so that neither gets a gradient: each is multiplied by the other, and every head
averages over all steps for good. The cure draws their weights at random, which get a gradient then."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN412"
SEVERITY = "info"
SYMBOLS, WIDTH = 8, 32


class Attends(nn.Module):
    """Attention in both directions with scaled_dot_product_attention: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(16, WIDTH))
        self.inward, self.read = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        q, k, v = self.inward(x).unflatten(-1, (3, 2, WIDTH // 2)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.read(mixed.transpose(1, 2).flatten(2))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the sequence said backwards."""
    return nn.functional.cross_entropy(logits.transpose(1, 2), batch.inputs.flip(1), reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Attends()
    if version != "healthy":
        nn.init.zeros_(model.inward.weight[: 2 * WIDTH])
        nn.init.zeros_(model.inward.bias[: 2 * WIDTH])
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for iteration in range(400 if version == "cured" else 200):
        if iteration == 200:
            nn.init.xavier_uniform_(model.inward.weight[: 2 * WIDTH])
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (12,)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
