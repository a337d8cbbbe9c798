"""After a first evaluation the model stays in evaluation mode, so that its batch normalisation never learns how large
the inputs are. The cure calls train() before each epoch."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN116"


class Forecast(nn.Module):
    """The next pressure, in hectopascal, from those before; the inputs are normalised over the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.rnn, self.head = nn.BatchNorm1d(1), nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(b, t) -> (b, t)."""
        found: torch.Tensor = self.head(self.rnn(self.norm(values[:, None]).mT)[0])[..., 0]
        return found


def loss_of(model: Forecast) -> torch.Tensor:
    """The mean square error of a batch, in units of 10 hectopascal."""
    values = 1013 + 10 * torch.sin(6.28 * torch.rand(32, 1) + 0.5 * torch.arange(17))
    return nn.functional.mse_loss(model(values[:, :-1]), (values[:, 1:] - 1013) / 10)


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam; healthy is never evaluated."""
    torch.manual_seed(seed)
    model, losses = Forecast(), []
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    if version != "healthy":
        model.eval()
        loss_of(model)
    if version == "cured":
        model.train()
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
        for _ in range(400):
            loss = loss_of(model)
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
