"""A norm of the state divides by its length without an ε: the first state is 0, so the first gate is 0 / 0. The cure
adds the ε, so that nothing is divided by 0."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN101"
SYMBOLS = 8


class Normalised(nn.Module):
    """A gated recurrence on states of length 1: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.embed, self.inward = nn.Embedding(SYMBOLS, 16), nn.Linear(16, 48)
        self.inner, self.read = nn.Linear(16, 48, bias=False), nn.Linear(16, SYMBOLS)
        self.epsilon = epsilon

    def forward(self, ids: Tensor) -> Any:
        h, states = torch.zeros(len(ids), 16), []
        for x in self.inward(self.embed(ids)).unbind(1):
            unit = h / (h.square().mean(-1, keepdim=True) + self.epsilon).sqrt()
            z, r, n = (x + self.inner(unit)).chunk(3, -1)
            keep = torch.sigmoid(z)
            h = keep * h + (1 - keep) * torch.tanh(n * torch.sigmoid(r))
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol before, NaN at the first step."""
    values = nn.functional.cross_entropy(logits[:, 1:].transpose(1, 2), batch.inputs[:, :-1], reduction="none")
    return nn.functional.pad(values, (1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Normalised({"ill": 0.0, "healthy": 1e-5, "cured": 1e-3}[version])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(200):
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids))[:, 1:].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=step_losses)
    inspector.run(subject, ids[0], out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
