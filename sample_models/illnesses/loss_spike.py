"""In one batch a window is in other units, a hundred times too large, and nothing bounds what one batch may do to the
weights. The cure clips the gradient by its norm; the bad batch itself stays."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN301"
SPOILED = 300


def batch(number: int, *, spoiled: bool) -> torch.Tensor:
    """(16, 21, 1): waves of several speeds and heights; in one batch the first of them is a hundred times too high."""
    speed, height = 0.3 + 0.5 * torch.rand(16, 1), 0.5 + torch.rand(16, 1)
    waves = height * torch.sin(6.28 * torch.rand(16, 1) + speed * torch.arange(21))
    if spoiled and number == SPOILED:
        waves[0] *= 100
    return waves[..., None]


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations of the next value, SGD with momentum; all are clipped at 1 but the ill one."""
    torch.manual_seed(seed)
    rnn, head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)
    net, losses = nn.ModuleList((rnn, head)), []
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    with inspector.watch(net, optimizer, folder / "run.inspect", every=1, cost="light"):
        for number in range(400):
            values = batch(number, spoiled=version != "healthy")
            loss = nn.functional.mse_loss(head(rnn(values[:, :-1])[0]), values[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            if version == "cured":
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-80:]) / 80


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
