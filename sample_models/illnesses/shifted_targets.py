"""The loader gives targets that are one step ahead already, and the loop shifts them again: the symbol after the next
one is learned. The cure shifts them in the loader alone."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN132"
EVIDENCE = "loss of the next symbol"


class Reader(nn.Module):
    """Scores of a symbol at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: Tensor) -> Tensor:
        """(b, t) → (b, t, 8)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def loader(rows: int) -> tuple[Tensor, Tensor]:
    """Walks (b, t), and what comes next at each step."""
    walks = torch.randint(0, 3, (rows, 25)).cumsum(1) % 8
    return walks[:, :-1], walks[:, 1:]


def loss_of(model: Reader, ids: Tensor, targets: Tensor, shift: int) -> Tensor:
    """The mean cross-entropy, with the targets so many steps later."""
    steps = ids.shape[1] - shift
    return nn.functional.cross_entropy(model(ids)[:, :steps].flatten(0, 1), targets[:, shift:].flatten())


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam."""
    torch.manual_seed(seed)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(300):
            loss = loss_of(model, *loader(32), shift=int(version == "ill"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss_of(model, *loader(200), shift=0).item()


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
