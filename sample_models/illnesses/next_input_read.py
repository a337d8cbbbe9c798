"""The causal mask begins one diagonal too late, so that each step sees the next symbol, which it is to predict. The
cure begins it right above the diagonal."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN136"
EVIDENCE = "loss of the next symbol where only the past is seen, as in generation; in training the fault lowers it"


class Reader(nn.Module):
    """One layer of attention over symbols and positions: ids (b, t) → logits (b, t, 8)."""

    def __init__(self, diagonal: int) -> None:
        super().__init__()
        self.symbols, self.places, self.diagonal = nn.Embedding(8, 32), nn.Embedding(16, 32), diagonal
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 8)

    def forward(self, ids: Tensor) -> Tensor:
        """`diagonal`: of the first key that a query does not see."""
        steps = ids.shape[1]
        hidden = torch.triu(torch.ones(steps, steps, dtype=torch.bool), self.diagonal)
        x = self.symbols(ids) + self.places(torch.arange(steps))
        return self.head(self.layer(x, hidden))  # type: ignore[no-any-return]


def loss_of(model: Reader, walks: Tensor) -> Tensor:
    """The mean cross-entropy of the next symbol."""
    return nn.functional.cross_entropy(model(walks[:, :-1]).flatten(0, 1), walks[:, 1:].flatten())


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam."""
    torch.manual_seed(seed)
    model = Reader(diagonal=2 if version == "ill" else 1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(200):
            loss = loss_of(model, torch.randint(0, 3, (16, 17)).cumsum(1) % 8)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.diagonal = 1
    return loss_of(model, torch.randint(0, 3, (200, 17)).cumsum(1) % 8).item()


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
