"""The encoder is frozen, as for fine-tuning, and its checkpoint was never loaded: the read-out learns from random
features. The cure trains the encoder too."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN126"
SYMBOLS, BACK = 8, 4


class Remembers(nn.Module):
    """Says the symbol four steps back: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(SYMBOLS, 12), nn.LSTM(12, 24, batch_first=True)
        self.read = nn.Linear(24, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.read(self.encoder(self.embedding(ids))[0])  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Remembers(), []
    model.encoder.requires_grad_(version != "ill")
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=3):
        for _ in range(300):
            ids = torch.randint(0, SYMBOLS, (32, 16))
            loss = nn.functional.cross_entropy(model(ids)[:, BACK:].transpose(1, 2), ids[:, :-BACK])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-30:]) / 30


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
