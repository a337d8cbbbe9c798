"""Measurements near 1000 with a spread of 1 go into tanh as they are: all units stay at one bound, whatever is
measured. The cure is the scale of the input, its mean taken off."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN409"


class Forecast(nn.Module):
    """nn.RNN over measurements (b, t, 1): the next one, less 1000, (b, t, 1)."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.rnn, self.read = nn.RNN(1, 16, batch_first=True), nn.Linear(16, 1)
        self.offset = offset

    def forward(self, values: Tensor) -> Any:
        return self.read(self.rnn(values - self.offset)[0])


def step_losses(forecast: Tensor, batch: Any) -> Tensor:
    """(b, t): half the square of the error of the next measurement, NaN at the last step."""
    values = (forecast[:, :-1, 0] - (batch.inputs[:, 1:, 0] - 1000.0)).square() / 2
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def draw(rows: int = 32, steps: int = 24) -> Tensor:
    """(b, t, 1): sines of any phase with a little noise."""
    phase = 6.28 * torch.rand(rows, 1) + 0.5 * torch.arange(steps)
    return 1000 + (torch.sin(phase) + 0.05 * torch.randn(rows, steps))[..., None]


def train(version: str, seed: int, folder: Path) -> float:
    """250 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Forecast(1000.0 if version == "healthy" else 0.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for iteration in range(500 if version == "cured" else 250):
        if iteration == 250:
            model.offset = 1000.0
        values = draw()
        loss = step_losses(model(values), SimpleNamespace(inputs=values)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, kind="vectors", width=1, loss=step_losses)
    inspector.run(subject, draw(1)[0], out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
