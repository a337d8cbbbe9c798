"""Each step accumulates two passes, and each pass takes the mean over its own targets: those of short sequences weigh
many times as much. The cure divides the sum of each pass by the targets of both."""

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN123"
EVIDENCE = "loss over all targets alike, which is what the step is meant to lower"
SYMBOLS, LONG, SHORT = 6, 24, 2


class Reader(nn.Module):
    """Symbols (b, t) → logits (b, t, v); small, so that it cannot learn everything."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 4), nn.RNN(4, 6, batch_first=True)
        self.head = nn.Linear(6, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def drawn(count: int) -> tuple[Tensor, Tensor]:
    """(ids (b, t), lengths (b,)): half long sequences that count up, half short ones that count down."""
    first, up = torch.randint(0, SYMBOLS, (count, 1)), torch.arange(count)[:, None] < count // 2
    return (first + torch.arange(LONG) * torch.where(up, 1, -1)) % SYMBOLS, torch.where(up[:, 0], LONG, SHORT)


def losses_of(model: nn.Module, ids: Tensor, lengths: Tensor) -> Tensor:
    """(targets,) −ln p of each next symbol."""
    real = torch.arange(1, ids.shape[1]) < lengths[:, None]
    values = nn.functional.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    return values[real]


def accumulated(model: nn.Module, batch: Any, passes: int, *, ill: bool) -> None:
    """The backward of one step."""
    everything = int((batch.lengths - 1).sum())
    for ids, lengths in zip(batch.inputs.chunk(passes), batch.lengths.chunk(passes), strict=True):
        values = losses_of(model, ids, lengths)
        (values.mean() / passes if ill else values.sum() / everything).backward()


def train(version: str, seed: int, folder: Path) -> float:
    """The test before training, then 300 iterations with Adam in two passes; healthy in one."""
    torch.manual_seed(seed)
    model, ill = Reader(), version == "ill"
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    subject = SimpleNamespace(model=model, vocabulary="abcdef", backward=partial(accumulated, ill=ill))
    ids, lengths = drawn(8)
    shown = [row[:length] for row, length in zip(ids, lengths.tolist(), strict=True)]
    inspector.run(subject, shown, out=folder / "run.inspect", only=["structure/accumulation"]).close()
    losses = []
    for _ in range(300):
        ids, lengths = drawn(32)
        optimizer.zero_grad()
        accumulated(model, SimpleNamespace(inputs=ids, lengths=lengths), 1 if version == "healthy" else 2, ill=ill)
        optimizer.step()
        losses.append(losses_of(model, ids, lengths).mean().item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    print("loss", train(sys.argv[1], 0, to := Path(*sys.argv[2:])))
    for finding in inspector.diagnose(to / "run.inspect").findings:
        print(f"{finding.severity}: {finding.message} [{finding.id}]")
