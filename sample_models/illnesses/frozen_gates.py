"""The forget gates of an LSTM have a bias of 20, so that they are 1 at every step: it cannot forget at the sign at
which it has to begin again. The cure takes the large bias away."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN407"
SEVERITY = "info"
SYMBOLS = 4


class Tagger(nn.Module):
    """nn.LSTMCell in a loop: symbols (b, t) → logits (b, t, 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.read = nn.Embedding(SYMBOLS, 8), nn.LSTMCell(8, 12), nn.Linear(12, 2)

    def forward(self, ids: Tensor) -> Any:
        h = c = torch.zeros(len(ids), 12)
        states = []
        for x in self.embed(ids).unbind(1):
            h, c = self.cell(x, (h, c))
            states.append(h)
        return self.read(torch.stack(states, 1))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of whether a 1 came since the last 0."""
    since, answers = torch.zeros(len(batch.inputs), dtype=torch.long), []
    for ids in batch.inputs.unbind(1):
        since = torch.where(ids == 0, 0, torch.where(ids == 1, 1, since))
        answers.append(since)
    return nn.functional.cross_entropy(logits.transpose(1, 2), torch.stack(answers, 1), reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """150 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    bias = model.cell.bias_hh.data[12:24]
    if version != "healthy":
        bias.fill_(20.0)
    losses = []
    for iteration in range(300 if version == "cured" else 150):
        if iteration == 150:
            bias.fill_(1.0)
        ids = torch.randint(0, SYMBOLS, (32, 20))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="01ab", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (30,)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
