"""Queries and keys come turned by their positions from one layer and are turned again in the attention, so that
positions count double. The cure turns them once."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN152"
EVIDENCE = "none: learned with it a model does as well; weights that were learned with one turn do not"
SYMBOLS, STEPS, WIDTH = 8, 14, 16


def rotated(x: Tensor) -> Tensor:
    """Pairs of entries (i, i + d/2) of (b, t, d), turned by t · 100^(−2i/d)."""
    angles = torch.arange(STEPS)[:, None] * 100.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    cosine, sine = (one.repeat(1, 2) for one in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


class Reader(nn.Module):
    """Causal attention of one head: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.embed, self.turns = nn.Embedding(SYMBOLS, WIDTH), turns
        self.inward, self.read = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Queries and keys turned, and values mixed."""
        q, k, v = self.inward(self.embed(ids)).chunk(3, -1)
        for _ in range(self.turns):
            q, k = rotated(q), rotated(k)
        q, k, v = (one[:, None] for one in (q, k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]
        return self.read(mixed)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam: at each step the symbol two steps before."""
    torch.manual_seed(seed)
    model, losses = Reader(2 if version == "ill" else 1), []
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(300):
            ids = torch.randint(0, SYMBOLS, (32, STEPS))
            loss = nn.functional.cross_entropy(model(ids)[:, 2:].flatten(0, 1), ids[:, :-2].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
