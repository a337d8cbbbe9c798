"""Queries and keys begin so large that each softmax gives one key all the weight, and passes no gradient to change
that. The cure normalises queries and keys."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN413"
SEVERITY = "info"
SYMBOLS, WIDTH = 8, 24


class Attends(nn.Module):
    """One head, written out: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, times: float, *, normalises: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(16, WIDTH))
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.read = nn.Linear(WIDTH, SYMBOLS)
        self.normalises = normalises
        with torch.no_grad():
            self.query.weight *= times
            self.key.weight *= times

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        q, k = self.query(x), self.key(x)
        if self.normalises:
            q, k = nn.functional.rms_norm(q, q.shape[-1:]), nn.functional.rms_norm(k, k.shape[-1:])
        return self.read(torch.softmax(q @ k.transpose(1, 2) / WIDTH**0.5, -1) @ self.value(x))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the sequence said backwards."""
    return nn.functional.cross_entropy(logits.transpose(1, 2), batch.inputs.flip(1), reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Attends(1.0 if version == "healthy" else 30.0, normalises=False)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        if iteration == 250:
            model.normalises = True
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
