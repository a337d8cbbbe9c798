"""The model ends with a softmax, and cross-entropy applies its own to the probabilities: its loss cannot fall below
0.9, and little gradient comes through. The cure gives the loss the scores as they are."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN131"
EVIDENCE = "loss of what the model says, without a second softmax"


class Reader(nn.Module):
    """The scores of the next symbol at each step, or their softmax."""

    def __init__(self, softmax: bool) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)
        self.softmax = softmax

    def forward(self, ids: Tensor) -> Tensor:
        """(b, t) → (b, t, 8)."""
        scores: Tensor = self.head(self.rnn(self.embedding(ids))[0])
        return scores.softmax(-1) if self.softmax else scores


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam; the number of the ill one is that of its probabilities, without a second softmax."""
    torch.manual_seed(seed)
    model, losses = Reader(softmax=version == "ill"), []
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=4):
        for _ in range(400):
            walks = torch.randint(0, 3, (32, 21)).cumsum(1) % 8
            found, targets = model(walks[:, :-1]).flatten(0, 1), walks[:, 1:].flatten()
            loss = nn.functional.cross_entropy(found, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            own = found.log() if version == "ill" else found.log_softmax(-1)
            losses.append(nn.functional.nll_loss(own.detach(), targets).item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
