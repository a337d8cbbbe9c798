"""A tagger keeps its last state for the next call, while its batches are drawn at random: each sequence begins with
what another one left. The cure begins every sequence with a fresh state."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN106"
SYMBOLS = 6


class Tagger(nn.Module):
    """Logits (b, t, 2) of symbols (b, t)."""

    def __init__(self, *, carries: bool) -> None:
        super().__init__()
        self.carries, self.state = carries, torch.empty(0)
        self.embed = nn.Embedding(SYMBOLS, 8)
        self.cell = nn.GRUCell(8, 16)
        self.read = nn.Linear(16, 2)

    def forward(self, ids: Tensor) -> Any:
        kept = self.carries and len(self.state) == len(ids)
        h = self.state if kept else torch.zeros(len(ids), 16)
        states = []
        for x in self.embed(ids).unbind(1):
            h = self.cell(x, h)
            states.append(h)
        self.state = h.detach()
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of whether an odd number of zeros has been read since the beginning."""
    odd = (batch.inputs == 0).cumsum(1) % 2
    return nn.functional.cross_entropy(logits.transpose(1, 2), odd, reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Tagger(carries=version != "healthy")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for iteration in range(800 if version == "cured" else 400):
        if iteration == 400:
            model.carries = False
        ids = torch.randint(0, SYMBOLS, (32, 10))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model.eval(), vocabulary="0abcde", loss=step_losses)
    inspector.run(
        subject, torch.randint(0, SYMBOLS, (24,)), out=folder / "run.inspect", also=["structure/repeat"]
    ).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
