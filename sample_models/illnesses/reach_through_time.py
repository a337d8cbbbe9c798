"""A plain recurrence forgets within a few steps what it is to say after 25: the gradient cannot teach it. The cure is
an LSTM whose forget gates start open for as many steps; the healthy one is asked for the third last symbol."""

import math
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN305"


class Reader(nn.Module):
    """Says which of four symbols came first, or some steps ago."""

    def __init__(self, rnn: nn.RNNBase) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(4, 8), rnn, nn.Linear(24, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, t, 4)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0])
        return scores


def recurrence(version: str) -> nn.RNNBase:
    """A plain one, or an LSTM."""
    rnn = (nn.LSTM if version == "cured" else nn.RNN)(8, 24, batch_first=True)
    if version == "cured":
        nn.init.constant_(rnn.get_parameter("bias_ih_l0")[24:48], math.log(25))
    return rnn


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with Adam, clipped."""
    torch.manual_seed(seed)
    model, losses = Reader(recurrence(version)), []
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    look = {"probe": torch.randint(0, 4, (1, 25)), "probe_every": 400, "quantities": ("jacobian/lag",)}
    with inspector.watch(model, optimizer, folder / "run.inspect", every=5, cost="light", **look):
        for _ in range(500):
            ids = torch.randint(0, 4, (32, 25))
            loss = nn.functional.cross_entropy(model(ids)[:, -1], ids[:, -3 if version == "healthy" else 0])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
