"""Six layers of attention, each fed with what the one before gave and nothing else: each averages averages, and the
vectors of all steps become one. The cure adds a skip connection around each layer."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN421"
SYMBOLS, WIDTH = 8, 32


class Layer(nn.Module):
    """Attention of two heads in both directions: (b, t, e) → (b, t, e)."""

    def __init__(self, skips: bool) -> None:
        super().__init__()
        self.inward, self.outward, self.skips = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), skips

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inward(x).unflatten(-1, (3, 2, WIDTH // 2)).permute(2, 0, 3, 1, 4)
        mixed: Tensor = self.outward(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + mixed if self.skips else mixed


class Stack(nn.Module):
    """Symbols (b, t) → logits (b, t, v)."""

    def __init__(self, skips: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(16, WIDTH))
        self.layers, self.read = nn.ModuleList(Layer(skips) for _ in range(6)), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.read(x)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the sequence said backwards."""
    return nn.functional.cross_entropy(logits.transpose(1, 2), batch.inputs.flip(1), reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Stack(skips=version != "ill"), []
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(200):
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject, ids = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=step_losses), torch.arange(12) % SYMBOLS
    inspector.run(subject, ids, out=folder / "run.inspect", also=["residual"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
