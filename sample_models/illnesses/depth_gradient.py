"""Ten sigmoid layers, one above the other: each passes a quarter of the gradient at most, and the lowest gets
nothing. The cure is a skip connection around each layer."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN418"
LAYERS = 10


class Layer(nn.Module):
    """One layer, with or without a way around it."""

    def __init__(self, *, skips: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(24, 24)
        self.skips = skips

    def forward(self, h: Tensor) -> Any:
        new = torch.sigmoid(self.linear(h))
        return h + new if self.skips else new


class Stack(nn.Module):
    """Layers over eight numbers at once (b, t, 8) → logits of four classes (b, t, 4)."""

    def __init__(self, *, skips: bool) -> None:
        super().__init__()
        self.first, self.read = nn.Linear(8, 24), nn.Linear(24, 4)
        self.layers = nn.ModuleList(Layer(skips=skips) for _ in range(LAYERS))

    def forward(self, x: Tensor) -> Any:
        h = self.first(x)
        for layer in self.layers:
            h = layer(h)
        return self.read(h)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the class: whether the first two numbers have one sign, and the sign of the third."""
    x = batch.inputs
    classes = 2 * (x[..., 0] * x[..., 1] > 0).long() + (x[..., 2] > 0).long()
    return nn.functional.cross_entropy(logits.transpose(1, 2), classes, reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Stack(skips=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(400):
        x = torch.randn(64, 1, 8)
        loss = step_losses(model(x), SimpleNamespace(inputs=x)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, kind="vectors", width=8, loss=step_losses)
    inspector.run(subject, list(torch.randn(8, 1, 8)), out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
