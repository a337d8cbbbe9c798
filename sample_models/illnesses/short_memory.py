"""The forget gates of an LSTM begin nearly shut and forget within a few steps, where the symbol that is asked for is
sixty steps back. The cure begins with a bias of ln(T - 1), T the steps that are needed."""

import math
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN406"
SEVERITY = "info"
SYMBOLS, STEPS = 6, 60
QUANTITIES = ["states", "gates", "timescale", "saturation", "memory", "units", "output/loss", "health", "influence"]


class Reader(nn.Module):
    """nn.LSTM: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(SYMBOLS, 8), nn.LSTM(8, 32, batch_first=True)
        self.read = nn.Linear(32, SYMBOLS)
        nn.init.constant_(self.lstm.get_parameter("bias_hh_l0")[32:64], bias)

    def forward(self, ids: Tensor) -> Any:
        return self.read(self.lstm(self.embed(ids))[0])


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the first symbol at the last step, NaN before. Guessing costs ln 4 = 1.386."""
    values = nn.functional.cross_entropy(logits[:, -1], batch.inputs[:, 0], reduction="none")
    return nn.functional.pad(values[:, None], (logits.shape[1] - 1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Reader(-2.0 if version == "ill" else math.log(STEPS - 1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(400):
        ids = torch.randint(4, SYMBOLS, (64, STEPS))
        ids[:, 0] = torch.randint(0, 4, (64,))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcd.,", loss=step_losses)
    inspector.run(subject, list(ids[:16]), out=folder / "run.inspect", only=QUANTITIES).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
