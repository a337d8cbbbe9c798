"""Each window is divided by its own deviation, and now and then a sensor is off: 0 / 0 in one window makes the loss and
then every weight NaN. The cure is a small number under the division."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN102"


def batch(off: bool) -> torch.Tensor:
    """(32, 13): waves; with `off` one window in 700 is 0 throughout."""
    phase, speed = 6.28 * torch.rand(32, 1), 0.3 + 0.5 * torch.rand(32, 1)
    waves = 5 * torch.rand(32, 1) * torch.sin(phase + speed * torch.arange(13))
    return torch.where(torch.rand(32, 1) < (1 / 700 if off else 0), 0.0, waves)


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations: the next value of a wave."""
    torch.manual_seed(seed)
    model = nn.GRU(1, 16, batch_first=True)
    head = nn.Linear(16, 1)
    net = nn.ModuleList((model, head))
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    small, losses = 1e-3 if version == "cured" else 0.0, []
    with inspector.watch(net, optimizer, folder / "run.inspect", every=4):
        for _ in range(400):
            values = batch(off=version != "healthy")
            values = (values / (values.std(1, keepdim=True) + small))[..., None]
            loss = nn.functional.mse_loss(head(model(values[:, :-1])[0]), values[:, 1:])
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
