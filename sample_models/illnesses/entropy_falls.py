"""The projections of attention have a learning rate of their own, thirty times that of the rest: scores grow until each
softmax chooses one key, and the loss stays near that of guessing. The cure normalises queries and keys, at the same
rates."""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN307"
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
        self.layers = nn.ModuleList(Layer(normalises=normalises) for _ in range(2))
        self.read = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        x = self.embed(ids) + self.positions[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.read(x)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam."""
    torch.manual_seed(seed)
    model = Reverses(normalises=version == "cured")
    own = [value for name, value in model.named_parameters() if "project" in name]
    others = [value for name, value in model.named_parameters() if "project" not in name]
    groups = [{"params": own, "lr": 3e-3 if version == "healthy" else 0.1}, {"params": others, "lr": 3e-3}]
    optimizer = torch.optim.Adam(groups)
    losses = []
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(400):
            ids = torch.randint(0, SYMBOLS, (32, 12))
            loss = nn.functional.cross_entropy(model(ids).transpose(1, 2), ids.flip(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-40:]) / 40


if __name__ == "__main__":
    to = Path(sys.argv[2] if len(sys.argv) > 2 else "entropy-falls")
    print(sys.argv[1], "loss", train(sys.argv[1], 0, to))
    for path in to.glob("*.inspect"):
        for finding in inspector.diagnose(path).findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
