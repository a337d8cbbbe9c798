"""The recurrent weight begins with twice the size at which states neither grow nor shrink: the net is chaotic, and
the gradient explodes with the lag. The cure begins with a weight whose largest singular value is near 1."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN201"
SYMBOLS = 6


class Elman(nn.Module):
    """h = tanh(Wx + Uh) in a loop: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.embed, self.inward = nn.Embedding(SYMBOLS, 12), nn.Linear(12, 32)
        self.recurrent, self.read = nn.Linear(32, 32, bias=False), nn.Linear(32, SYMBOLS)
        nn.init.orthogonal_(self.recurrent.weight, gain)

    def forward(self, ids: Tensor) -> Any:
        h, states = torch.zeros(len(ids), 32), []
        for x in self.inward(self.embed(ids)).unbind(1):
            h = torch.tanh(x + self.recurrent(h))
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol five steps before, NaN at the first five."""
    values = nn.functional.cross_entropy(logits[:, 5:].transpose(1, 2), batch.inputs[:, :-5], reduction="none")
    return nn.functional.pad(values, (5, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Elman(3.0 if version == "ill" else 1.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(250):
        ids = torch.randint(0, SYMBOLS, (32, 24))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdef", loss=step_losses)
    shown = torch.randint(0, SYMBOLS, (40,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["influence"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
