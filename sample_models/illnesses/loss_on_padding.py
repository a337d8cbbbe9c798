"""Targets of padding are counted in the loss, and most steps are padding: the net learns to say padding first, and the
number that falls hides what is not learned. The cure leaves them out, by ignore_index."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN127"
EVIDENCE = "loss at real steps alone, as use has it; in training padding lowers it"
SYMBOLS, PADDING, BACK, STEPS = 8, 0, 2, 32


class Remembers(nn.Module):
    """Says the symbol two steps back: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, 12, padding_idx=PADDING)
        self.rnn, self.read = nn.GRU(12, 24, batch_first=True), nn.Linear(24, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.read(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def draw() -> tuple[Tensor, Tensor]:
    """32 sequences of 4 to 8 real steps, but for one that has all, and what is to be said; padding behind."""
    lengths = torch.randint(4, 9, (32, 1))
    lengths[0] = STEPS
    ids = torch.randint(1, SYMBOLS, (32, STEPS)) * (torch.arange(STEPS) < lengths)
    return ids, nn.functional.pad(ids[:, :-BACK], (BACK, 0)) * (ids != PADDING)


def train(version: str, seed: int, folder: Path) -> float:
    """150 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Remembers(), []
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    ignored = -100 if version == "ill" else PADDING
    with inspector.watch(model, optimizer, folder / "run.inspect", every=3):
        for _ in range(150):
            ids, targets = draw()
            scores = model(ids).transpose(1, 2)
            loss = nn.functional.cross_entropy(scores, targets, ignore_index=ignored)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(nn.functional.cross_entropy(scores.detach(), targets, ignore_index=PADDING).item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
