"""The loop keeps the best weights as they were before the training, and loads them after each step whose loss is not
below 0, which is each. The cure loads them once, after the training."""

import copy
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN133"


class Forecast(nn.Module):
    """The next number of a wave: values (b, t) → (b, t)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.read = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, values: Tensor) -> Tensor:
        """(b, t) → (b, t)."""
        found: Tensor = self.read(self.rnn(values[..., None])[0])[..., 0]
        return found


def loss_of(model: Forecast) -> Tensor:
    """The mean square error of 32 waves, each with a phase of its own."""
    values = torch.sin(6.28 * torch.rand(32, 1) + 0.4 * torch.arange(17))
    return nn.functional.mse_loss(model(values[:, :-1]), values[:, 1:])


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations of Adam."""
    torch.manual_seed(seed)
    model, losses = Forecast(), []
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    best, least = copy.deepcopy(model.state_dict()), 0.0 if version == "ill" else float("inf")
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(300):
            loss = loss_of(model)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss.item() < least:
                best, least = copy.deepcopy(model.state_dict()), loss.item()
            elif version == "ill":
                model.load_state_dict(best)
            losses.append(loss.item())
    model.load_state_dict(best)
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
