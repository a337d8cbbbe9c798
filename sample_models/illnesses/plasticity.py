"""One net learns task after task at a learning rate that silences its rectified units, a few with each task: new tasks
are learned worse and worse. The cure is layer normalisation before each rectifier."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN306"
SYMBOLS, TASKS, ITERATIONS = 8, 24, 50


class Reader(nn.Module):
    """Says which of eight marks a sequence has: symbols (b, t) → logits (b, 8)."""

    def __init__(self, *, normalises: bool) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 16), nn.GRU(16, 32, batch_first=True)
        layers: list[nn.Module] = []
        for width in (32, 64):
            layers += [nn.Linear(width, 64), *([nn.LayerNorm(64)] if normalises else []), nn.ReLU()]
        self.head = nn.Sequential(*layers, nn.Linear(64, 8))

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, 8)."""
        return self.head(self.rnn(self.embedding(ids))[0][:, -1])  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """24 tasks of 50 iterations with Adam; each has 64 new sequences with marks drawn at random, to learn by heart."""
    torch.manual_seed(seed)
    model, losses = Reader(normalises=version == "cured"), []
    optimizer = torch.optim.Adam(model.parameters(), 2e-3 if version == "healthy" else 2e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4) as watcher:
        for task in range(TASKS):
            watcher.note(f"task {task + 1}")
            ids, marks = torch.randint(0, SYMBOLS, (64, 6)), torch.randint(0, 8, (64,))
            for _ in range(ITERATIONS):
                loss = nn.functional.cross_entropy(model(ids), marks)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    return sum(losses[-4 * ITERATIONS :]) / (4 * ITERATIONS)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
