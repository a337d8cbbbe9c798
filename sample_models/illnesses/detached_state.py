"""The state is detached before each step, as if every step were a batch of its own: no gradient flows through time. The
cure takes the detach() out of the loop over steps."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN124"
SYMBOLS = 6


class Elman(nn.Module):
    """h = tanh(Wx + Uh) in a loop: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.embed, self.inward = nn.Embedding(SYMBOLS, 12), nn.Linear(12, 32)
        self.recurrent, self.read = nn.Linear(32, 32, bias=False), nn.Linear(32, SYMBOLS)
        nn.init.orthogonal_(self.recurrent.weight)
        self.detached = detached

    def forward(self, ids: Tensor) -> Any:
        h, states = torch.zeros(len(ids), 32), []
        for x in self.inward(self.embed(ids)).unbind(1):
            h = torch.tanh(x + self.recurrent(h.detach() if self.detached else h))
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol five steps before, NaN at the first five."""
    values = nn.functional.cross_entropy(logits[:, 5:].transpose(1, 2), batch.inputs[:, :-5], reduction="none")
    return nn.functional.pad(values, (5, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Elman(detached=version != "healthy")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        model.detached &= version == "ill" or iteration < 250
        ids = torch.randint(0, SYMBOLS, (32, 24))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdef", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (40,)), out=folder / "run.inspect", also=["influence"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
