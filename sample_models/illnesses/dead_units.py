"""The biases of a rectified recurrence begin at -3, so that all units are 0 at all steps and get no gradient. The
cure is an activation that passes a gradient below 0."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN408"
SYMBOLS = 6


class Rectified(nn.Module):
    """h = relu(Wx + Uh + b) in a loop: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.embed, self.inward = nn.Embedding(SYMBOLS, 8), nn.Linear(8, 24)
        self.inner, self.read = nn.Linear(24, 24, bias=False), nn.Linear(24, SYMBOLS)
        nn.init.constant_(self.inward.bias, bias)
        nn.init.orthogonal_(self.inner.weight, 0.9)
        self.slope = 0.0

    def forward(self, ids: Tensor) -> Any:
        h, states = torch.zeros(len(ids), 24), []
        for x in self.inward(self.embed(ids)).unbind(1):
            h = nn.functional.leaky_relu(x + self.inner(h), self.slope)
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol before, NaN at the first step."""
    values = nn.functional.cross_entropy(logits[:, 1:].transpose(1, 2), batch.inputs[:, :-1], reduction="none")
    return nn.functional.pad(values, (1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Rectified(0.0 if version == "healthy" else -3.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        if iteration == 250:
            model.slope = 0.01
        ids = torch.randint(0, SYMBOLS, (32, 10))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdef", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (24,)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
