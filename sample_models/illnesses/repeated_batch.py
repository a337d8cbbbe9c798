"""`next(iter(loader))` inside the loop makes the loader anew every time, so that all iterations see its first batch.
The cure makes the loader's iterator once an epoch."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import inspector

RULE = "IN115"
EVIDENCE = "loss on sequences that were not trained on"


class Reader(nn.Module):
    """Says which of eight symbols was the third last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0][:, -1])
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """15 epochs of 32 batches; healthy shuffles too."""
    torch.manual_seed(seed)
    ids, others = torch.randint(0, 8, (1024, 10)), torch.randint(0, 8, (1024, 10))
    loader = DataLoader(TensorDataset(ids), 32, shuffle=version == "healthy")
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
        for _ in range(15):
            for (batch,) in [next(iter(loader)) for _ in loader] if version == "ill" else loader:
                loss = nn.functional.cross_entropy(model(batch), batch[:, -3])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    with torch.no_grad():
        return nn.functional.cross_entropy(model(others), others[:, -3]).item()


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
