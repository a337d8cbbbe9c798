"""The gradient is clipped at 0.01 in every iteration, which with SGD is a learning rate far below the one that is
written. The cure is a threshold at the 90th percentile of the norm."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN403"
SEVERITY = "info"


class Forecast(nn.Module):
    """The next value of a wave from those before."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(b, t, 1) -> (b, t, 1)."""
        found: torch.Tensor = self.head(self.rnn(values)[0])
        return found


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with SGD; healthy is not clipped, the cured one at the percentile of a first part."""
    torch.manual_seed(seed)
    model, losses, norms, limit = Forecast(), [], [], 0.01
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=5, cost="normal"):
        for _ in range(400):
            speed = 0.3 + 0.5 * torch.rand(32, 1)
            values = torch.sin(6.28 * torch.rand(32, 1) + speed * torch.arange(21))[..., None]
            loss = nn.functional.mse_loss(model(values[:, :-1]), values[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            if version != "healthy":
                norms.append(nn.utils.clip_grad_norm_(model.parameters(), limit).item())
            if version == "cured" and len(norms) == 20:
                limit = sorted(norms)[18]
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
