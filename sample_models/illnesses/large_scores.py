"""A high learning rate without warm-up lets the scores of attention grow until each softmax gives one key all the
weight. The cure normalises queries and keys."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN417"
SYMBOLS, WIDTH = 8, 24


class Block(nn.Module):
    """Causal attention of one head beside the input: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, normalises: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(16, WIDTH))
        self.inward, self.read = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, SYMBOLS)
        self.normalises = normalises

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        q, k, v = self.inward(x)[:, None].chunk(3, -1)
        if self.normalises:
            q, k = nn.functional.rms_norm(q, q.shape[-1:]), nn.functional.rms_norm(k, k.shape[-1:])
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]
        return self.read(x + mixed)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol two steps before, NaN at the first two."""
    values = nn.functional.cross_entropy(logits[:, 2:].transpose(1, 2), batch.inputs[:, :-2], reduction="none")
    return nn.functional.pad(values, (2, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam; a frame before the first, and one after the last."""
    torch.manual_seed(seed)
    model = Block(normalises=version == "cured")
    shown = torch.randint(0, SYMBOLS, (14,))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3 if version == "healthy" else 0.2)
    losses, kept = [], [folder / "step0.pt", folder / "step200.pt"]
    torch.save(model.state_dict(), kept[0])
    for _ in range(200):
        ids = torch.randint(0, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save(model.state_dict(), kept[1])
    subject = SimpleNamespace(model=model, vocabulary="abcdefgh", loss=step_losses)
    inspector.sweep(kept, subject, shown, out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
