"""Six layers of attention, each of which hands on only what it computes: the sums with what it was given are missing.
The cure adds them."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN451"
EVIDENCE = "loss"
SYMBOLS, STEPS, WIDTH = 8, 10, 24


class Layer(nn.Module):
    """Causal attention and a layer behind it, each with a norm before it; `adds`: to what it was given."""

    def __init__(self, *, adds: bool) -> None:
        super().__init__()
        self.inward, self.outward, self.adds = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), adds
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.behind = nn.Sequential(nn.Linear(WIDTH, 48), nn.GELU(), nn.Linear(48, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, d) → (b, t, d)."""
        q, k, v = self.inward(self.first(x))[:, None].chunk(3, -1)
        mixed = self.outward(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0])
        x = x + mixed if self.adds else mixed
        found = self.behind(self.second(x))
        return x + found if self.adds else found  # type: ignore[no-any-return]


class Reader(nn.Module):
    """Symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, adds: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(STEPS, WIDTH))
        self.layers = nn.Sequential(*(Layer(adds=adds) for _ in range(6)))
        self.read = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Layer by layer."""
        return self.read(self.layers(self.embed(ids) + self.positions))  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam: at each step the symbol two steps before."""
    torch.manual_seed(seed)
    model, losses = Reader(adds=version != "ill"), []
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=8):
        for _ in range(200):
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
