"""Weight decay acts on the bias of the output, which has to be 20 here (degrees, say) and is pulled towards 0. The cure
is two groups: decay for matrices, none for vectors."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

import inspector

RULE = "IN114"
SEVERITY = "info"


class Forecast(nn.Module):
    """The next temperature from those before, which it sees as distances from 20."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(b, t, 1) -> (b, t, 1)."""
        found: torch.Tensor = self.head(self.rnn(values - 20)[0])
        return found


def train(version: str, seed: int, folder: Path) -> float:
    """800 iterations with AdamW at 0.03; healthy has no decay at all."""
    torch.manual_seed(seed)
    model, losses = Forecast(), []
    matrices = [one for one in model.parameters() if one.dim() > 1]
    vectors = [one for one in model.parameters() if one.dim() < 2]
    groups: list[dict[str, Any]] = [
        {"params": matrices},
        {"params": vectors, "weight_decay": 0.3 if version == "ill" else 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, 0.03, weight_decay=0.0 if version == "healthy" else 0.3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=20):
        for _ in range(800):
            values = 20 + torch.sin(6.28 * torch.rand(32, 1) + 0.5 * torch.arange(17))[..., None]
            loss = nn.functional.mse_loss(model(values[:, :-1]), values[:, 1:])
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
