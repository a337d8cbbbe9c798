"""A detach() between encoder and read-out leaves the encoder as it was drawn; a trial step before the training shows
it. The cure takes the detach() away."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN118"
SYMBOLS = 8


class Classifier(nn.Module):
    """An Elman cell in a loop, and a read-out: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, cut: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 8)
        self.cell = nn.RNNCell(8, 24)
        self.read = nn.Linear(24, SYMBOLS)
        self.cut = cut

    def forward(self, ids: Tensor) -> Any:
        h, states = torch.zeros(len(ids), 24), []
        for x in self.embed(ids).unbind(1):
            h = self.cell(x, h)
            states.append(h.detach() if self.cut else h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol three steps before, NaN at the first three."""
    values = nn.functional.cross_entropy(logits[:, 3:].transpose(1, 2), batch.inputs[:, :-3], reduction="none")
    return nn.functional.pad(values, (3, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """A trial step, then 250 iterations with Adam."""
    torch.manual_seed(seed)
    model = Classifier(cut=version == "ill")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    subject = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=step_losses)
    shown = torch.randint(0, SYMBOLS, (16,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["trial/first_step"]).close()
    losses = []
    for _ in range(250):
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
