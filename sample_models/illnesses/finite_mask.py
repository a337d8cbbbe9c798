"""Causal attention adds -1e4 to the scores of later keys, which larger scores outweigh. The cure masks with minus
infinity."""

import math
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN107"
EVIDENCE = "weight on later keys once queries and keys have 512 times the size; nothing suffers at the trained weights"
SYMBOLS = 8


class Attends(nn.Module):
    """One causal head over symbols (b, t), logits (b, t, v)."""

    def __init__(self, forbidden: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 16)
        self.positions = nn.Parameter(torch.randn(32, 16) * 0.3)
        self.query, self.key, self.value = (nn.Linear(16, 16, bias=False) for _ in range(3))
        self.read = nn.Linear(16, SYMBOLS)
        self.forbidden = forbidden

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        return self.read(x + self.weights(x) @ self.value(x))

    def weights(self, x: Tensor) -> Tensor:
        """(b, query, key)."""
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        mask = torch.zeros(later.shape).masked_fill(later, self.forbidden)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(16)
        return torch.softmax(scores + mask, -1)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the next symbol, NaN at the last."""
    values = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam on sequences that repeat three symbols."""
    torch.manual_seed(seed)
    model = Attends(-1e4 if version == "ill" else -torch.inf)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(200):
        ids = torch.randint(0, SYMBOLS, (32, 3)).repeat(1, 5)
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdefgh", loss=step_losses, next_token=True)
    inspector.run(subject, ids[0], out=folder / "run.inspect", also=["structure/causal"]).close()
    with torch.no_grad():
        for weight in (model.query.weight, model.key.weight):
            weight *= 512
        return model.weights(model.embed(ids)).triu(1).sum(-1).mean().item()


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
