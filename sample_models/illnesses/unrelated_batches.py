"""Pieces of texts are read in any order, and each begins with the state that another one left: what it has counted says
nothing of this text. The cure begins every piece with a fresh state."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN210"
SYMBOLS, ROWS, STEPS, ITERATIONS = 6, 32, 10, 400


class Tagger(nn.Module):
    """Symbols (b, t) → logits (b, t, 2), and the state after the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn, self.read = nn.Embedding(SYMBOLS, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 2)

    def forward(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Logits (b, t, 2), state (1, b, h)."""
        out, state = self.rnn(self.embed(ids), state)
        return self.read(out), state


def texts(rows: int, steps: int) -> Tensor:
    """(rows, steps) symbols: half of the time the one after the last, else any."""
    ids = torch.randint(0, SYMBOLS, (rows, steps))
    for t in range(1, steps):
        ids[:, t] = torch.where(torch.rand(rows) < 0.5, (ids[:, t - 1] + 1) % SYMBOLS, ids[:, t])
    return ids


def odd_zeros(ids: Tensor) -> Tensor:
    """(b, t) whether the number of zeros since the last 5, or since the beginning, is odd."""
    zeros = (ids == 0).cumsum(1)
    before = torch.where(ids == SYMBOLS - 1, zeros, 0).cummax(1).values
    return (zeros - before) % 2


def loop(model: Tagger, optimizer: torch.optim.Optimizer, version: str) -> list[float]:
    """The losses of 400 iterations. The healthy version reads its texts piece after piece, and counts on."""
    stream = texts(ROWS, STEPS * ITERATIONS)
    counted = odd_zeros(stream)
    state, losses = None, []
    for iteration in range(ITERATIONS):
        piece = iteration if version == "healthy" else int(torch.randint(0, ITERATIONS, ()))
        ids, odd = (one[:, STEPS * piece : STEPS * (piece + 1)] for one in (stream, counted))
        odd = odd if version == "healthy" else odd_zeros(ids)
        logits, state = model(ids, None if version == "cured" or state is None else state.detach())
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), odd)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train(version: str, seed: int, folder: Path) -> float:
    """With Adam; the cured one goes on from where the ill one ends."""
    torch.manual_seed(seed)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    if version == "cured":
        loop(model, optimizer, "ill")
    with inspector.watch(model, optimizer, folder / "run.inspect", every=5):
        losses = loop(model, optimizer, version)
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
