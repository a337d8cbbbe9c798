"""A GRU is to say which symbol came first, and is given (batch, steps, width) without batch_first: it goes along the
sequences of the batch as if they were steps. The cure transposes what it reads and what it gives."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN130"
SYMBOLS = 5


class Reader(nn.Module):
    """Logits (b, t, v) of symbols (b, t); `transposed` gives the GRU (steps, batch, width), as it wants it."""

    def __init__(self, *, transposed: bool) -> None:
        super().__init__()
        self.embed, self.gru, self.read = nn.Embedding(SYMBOLS, 8), nn.GRU(8, 24), nn.Linear(24, SYMBOLS)
        self.transposed = transposed

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids)
        states: Tensor = self.gru(x.transpose(0, 1))[0].transpose(0, 1) if self.transposed else self.gru(x)[0]
        return self.read(states)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the first symbol, said after each step."""
    first = batch.inputs[:, :1].expand_as(batch.inputs)
    return nn.functional.cross_entropy(logits.transpose(1, 2), first, reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Reader(transposed=version == "healthy")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        model.transposed |= version == "cured" and iteration == 250
        ids = torch.randint(0, SYMBOLS, (32, 10))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcde", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (24,)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
