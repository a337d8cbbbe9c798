"""Temperatures are learned in kelvin: near 290, where a model begins near 0 and steps of Adam are as small as ever. The
cure takes mean and deviation off the targets, and undoes it where they are used."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN212"
EVIDENCE = "mean square error in kelvin"


class Forecast(nn.Module):
    """The next temperature from deviations of the last days: (b, t) → (b,)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.read = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, days: Tensor) -> Tensor:
        """The read-out of the last state."""
        return self.read(self.rnn(days[..., None])[0][:, -1])[:, 0]  # type: ignore[no-any-return]


def draw() -> tuple[Tensor, Tensor]:
    """Days of a wave with a phase of its own, as deviations; the next one, in kelvin."""
    waves = torch.sin(6.28 * torch.rand(32, 1) + 0.5 * torch.arange(13)) + 0.1 * torch.randn(32, 13)
    return waves[:, :-1], 290 + 8 * waves[:, -1]


def train(version: str, seed: int, folder: Path) -> float:
    """160 iterations with Adam."""
    torch.manual_seed(seed)
    model, errors = Forecast(), []
    mean, deviation = (0.0, 1.0) if version == "ill" else (290.0, 5.7)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(160):
            days, targets = draw()
            said = model(days)
            loss = nn.functional.mse_loss(said, (targets - mean) / deviation)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            errors.append(nn.functional.mse_loss(said.detach() * deviation + mean, targets).item())
    return sum(errors[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
