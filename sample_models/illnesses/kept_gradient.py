"""The loop never calls zero_grad, so that each step takes the sum of all gradients so far, a momentum without an end
that swings about what is to be found. The cure sets gradients to zero before each backward pass."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN128"


class Forecast(nn.Module):
    """The next number of a wave: values (b, t) → (b, t)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.read = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(b, t) → (b, t)."""
        found: torch.Tensor = self.read(self.rnn(values[..., None])[0])[..., 0]
        return found


def loss_of(model: Forecast) -> torch.Tensor:
    """The mean square error of 32 waves, each with a phase of its own."""
    values = torch.sin(6.28 * torch.rand(32, 1) + 0.4 * torch.arange(17))
    return nn.functional.mse_loss(model(values[:, :-1]), values[:, 1:])


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations of SGD."""
    torch.manual_seed(seed)
    model, losses = Forecast(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(300):
            loss = loss_of(model)
            if version != "ill":
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
