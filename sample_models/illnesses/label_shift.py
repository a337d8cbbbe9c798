"""The data shift the targets by one step, and the loss shifts them again, so that the symbol after the next one is
learned. The cure shifts them in the loss alone."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

import inspector

RULE = "IN122"
EVIDENCE = "loss of the next symbol"


class Reader(nn.Module):
    """Scores of a symbol at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 8), nn.GRU(8, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, 8)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def shifted_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """The mean cross-entropy, with the targets one step later."""
    return nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), targets[:, 1:].flatten())


def train(version: str, seed: int, folder: Path) -> float:
    """A run and 300 iterations with Adam; the cured one goes on from where the ill one ends."""
    torch.manual_seed(seed)
    model, walks = Reader(), torch.randint(0, 3, (9600, 24)).cumsum(1) % 8
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for now in ("ill", "cured") if version == "cured" else (version,):
        targets = torch.cat([walks[:, 1:], torch.full((9600, 1), -100)], 1) if now == "ill" else walks
        examples, loss = {"one": (walks[0], targets[0])}, lambda y, batch: shifted_loss(y, batch.targets)
        subject = SimpleNamespace(model=model, kind="tokens", vocabulary="abcdefgh", loss=loss, examples=examples)
        path = str(folder / "run.inspect")
        inspector.run(subject, only=["structure/labels"], out=path, overwrite=True).close()
        for ids, wanted in zip(walks.split(32), targets.split(32), strict=True):
            optimizer.zero_grad()
            shifted_loss(model(ids), wanted).backward()
            optimizer.step()
    return shifted_loss(model(walks[:200]), walks[:200]).item()


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
