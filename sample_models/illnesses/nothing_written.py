"""The input gates of an LSTM written by hand begin with a bias of -30, as if it were that of a mask: nothing is ever
written into the state. The cure is a bias near 0."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN405"
SYMBOLS = 6


class Cell(nn.Module):
    """An LSTM in a loop: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.inward = nn.Embedding(SYMBOLS, 8), nn.Linear(8, 64)
        self.inner, self.read = nn.Linear(16, 64, bias=False), nn.Linear(16, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        h = c = torch.zeros(len(ids), 16)
        states = []
        for x in self.inward(self.embed(ids)).unbind(1):
            i, f, g, o = (x + self.inner(h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol before, NaN at the first step."""
    values = nn.functional.cross_entropy(logits[:, 1:].transpose(1, 2), batch.inputs[:, :-1], reduction="none")
    return nn.functional.pad(values, (1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Cell()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    bias = model.inward.bias.data[:16]
    if version != "healthy":
        bias.fill_(-30.0)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        if iteration == 250:
            bias.zero_()
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
