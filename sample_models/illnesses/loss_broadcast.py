"""Predictions have the shape (32, 1) and targets (32,), so that the loss compares each prediction with all targets, and
the best answer to every input is their mean. The cure gives both one shape."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN150"
EVIDENCE = "square error of each prediction beside its own target"


class Sum(nn.Module):
    """The sum of the marked numbers of a sequence: (b, t, 2) → (b, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.read = nn.GRU(2, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The read-out of the last state."""
        return self.read(self.rnn(x)[0][:, -1])  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam; the number is the error of each prediction beside its own target."""
    torch.manual_seed(seed)
    model, errors = Sum(), []
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(300):
            x = torch.stack((torch.rand(32, 10), torch.randint(0, 2, (32, 10)).float()), -1)
            targets = x.prod(-1).sum(-1)
            said = model(x) if version == "ill" else model(x)[:, 0]
            loss = (said - targets).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            errors.append((said.detach().reshape(-1) - targets).square().mean().item())
    return float(sum(errors[-20:]) / 20)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
