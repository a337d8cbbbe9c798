"""The learning rate of SGD is a guess, 30, that is far beyond what lowers the loss. The cure is a third of the critical
rate that the finding names, measured before the first step."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN207"
SYMBOLS = 6


class Reader(nn.Module):
    """Symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 12), nn.GRU(12, 32, batch_first=True)
        self.head = nn.Linear(32, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol before, NaN at the first."""
    values = nn.functional.cross_entropy(logits[:, 1:].transpose(1, 2), batch.inputs[:, :-1], reduction="none")
    return nn.functional.pad(values, (1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations of SGD; every hundredth a step is tried on a batch that is kept."""
    torch.manual_seed(seed)
    model, shown = Reader(), torch.randint(0, SYMBOLS, (16, 12))
    optimizer = torch.optim.SGD(model.parameters(), 3.0 if version == "healthy" else 30.0)
    subject = SimpleNamespace(model=model, vocabulary="abcdef", loss=step_losses, optimizer=optimizer)
    if version == "cured":
        with inspector.run(subject, list(shown), only=["trial/learning_rate"]) as before:
            (critical,) = (one.value for one in before.scalars if one.name == "trial/learning_rate/own")
        optimizer.param_groups[0]["lr"] = critical / 3
    losses = []
    with inspector.watch(
        model, optimizer, folder / "run.inspect", every=4, probe=shown, probe_subject=subject, probe_every=100,
        quantities=["trial/learning_rate"],
    ):  # fmt: skip
        for _ in range(400):
            ids = torch.randint(0, SYMBOLS, (32, 12))
            loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-40:]) / 40


if __name__ == "__main__":
    print(sys.argv[1], "loss", train(sys.argv[1], 0, to := Path(*sys.argv[2:])))
    for finding in inspector.diagnose(to / "run.inspect").findings:
        print(f"{finding.severity}: {finding.message} [{finding.id}]")
