"""All weights of a GRU and its read-out begin with the same number, so that its units get the same gradient and stay
one. The cure draws them at random, one row unlike the other."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN410"
SYMBOLS = 6


class Model(nn.Module):
    """nn.GRU and a read-out: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.gru = nn.Embedding(SYMBOLS, 8), nn.GRU(8, 16, batch_first=True)
        self.read = nn.Linear(16, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        return self.read(self.gru(self.embed(ids))[0])


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol two steps before, NaN at the first two."""
    values = nn.functional.cross_entropy(logits[:, 2:].transpose(1, 2), batch.inputs[:, :-2], reduction="none")
    return nn.functional.pad(values, (2, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Model()
    if version == "ill":
        for weight in [*model.gru.parameters(), *model.read.parameters()]:
            nn.init.constant_(weight, 0.1)
    if version == "cured":
        for name, weight in model.named_parameters():
            if "weight" in name and "embed" not in name:
                nn.init.orthogonal_(weight)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for _ in range(300):
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcdef", loss=step_losses)
    inspector.run(subject, torch.randint(0, SYMBOLS, (30,)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
