"""All of a transformer is trained at a rate of 0.03 without warm-up: it begins to learn, while the scores of its heads
grow and grow, and then it loses all of it. The cure normalises queries and keys, and takes a third of the rate."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN309"
SYMBOLS, WIDTH, HEADS = 8, 32, 2


class Layer(nn.Module):
    """Attention and a feed-forward part, each added to what it reads."""

    def __init__(self, *, normalises: bool) -> None:
        super().__init__()
        self.normalises = normalises
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.forward_part = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, f) → (b, t, f)."""
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        if self.normalises:
            q, k = (nn.functional.rms_norm(part, part.shape[-1:]) for part in (q, k))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.forward_part(x)  # type: ignore[no-any-return]


class Reverses(nn.Module):
    """Two layers: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, normalises: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(16, WIDTH))
        self.layers = nn.Sequential(*(Layer(normalises=normalises) for _ in range(2)))
        self.read = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.read(self.layers(self.embed(ids) + self.positions[: ids.shape[1]]))  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam."""
    torch.manual_seed(seed)
    model = Reverses(normalises=version == "cured")
    optimizer = torch.optim.Adam(model.parameters(), {"ill": 0.03, "healthy": 3e-3, "cured": 0.01}[version])
    losses = []
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(400):
            ids = torch.randint(0, SYMBOLS, (32, 12))
            loss = nn.functional.cross_entropy(model(ids).transpose(1, 2), ids.flip(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-40:]) / 40


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
