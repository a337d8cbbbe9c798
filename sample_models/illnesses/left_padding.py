"""Sequences are padded on the left, and positions are counted from the padding on: attention masks it, and no step
knows how far it is from the first real one. The cure counts positions from the first real step, by the mask."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN125"
SYMBOLS, STEPS, WIDTH = 6, 14, 24


class Tagger(nn.Module):
    """One causal layer: symbols (b, t), true at real steps (b, t) → logits (b, t, 2)."""

    def __init__(self, *, counts_real: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(STEPS, WIDTH)
        self.attend = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.read, self.counts_real = nn.Linear(WIDTH, 2), counts_real

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        at = torch.arange(ids.shape[1]).expand_as(ids)
        if self.counts_real:
            at = (mask.long().cumsum(-1) - 1).clamp(min=0)
        x = self.embed(ids) + self.positions(at)
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        hidden = (later | ~mask[:, None]) & ~torch.eye(ids.shape[1], dtype=torch.bool)  # padding reads itself alone
        mixed, _ = self.attend(x, x, x, attn_mask=hidden.repeat_interleave(2, 0), need_weights=False)
        return self.read(x + mixed)  # type: ignore[no-any-return]


def draw(rows: int, *, left: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Symbols, true at real steps, and whether each real step is one of the odd ones, of 6 to 14 real steps."""
    lengths = torch.randint(6, STEPS + 1, (rows, 1))
    steps = torch.arange(STEPS).expand(rows, -1)
    first = STEPS - lengths if left else torch.zeros_like(lengths)
    mask = (steps >= first) & (steps < first + lengths)
    return torch.randint(1, SYMBOLS, (rows, STEPS)) * mask, mask, (steps - first) % 2


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam."""
    torch.manual_seed(seed)
    model, left = Tagger(counts_real=version == "cured"), version != "healthy"
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for _ in range(400):
        ids, mask, odd = draw(32, left=left)
        loss = nn.functional.cross_entropy(model(ids, mask)[mask], odd[mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    shown: Any = SimpleNamespace(
        model=model.eval(),
        inputs={"ids": {"kind": "tokens", "size": SYMBOLS}, "mask": {"kind": "mask", "axis": "ids"}},
        forward=lambda model, batch: model(batch["ids"], batch["mask"]),
    )  # fmt: skip
    torch.manual_seed(7)
    ids, mask, _ = draw(1, left=left)
    given = {"ids": ids[0], "mask": mask[0]}
    inspector.run(shown, given, out=folder / "run.inspect", also=["structure/left_padding"]).close()
    return sum(losses[-40:]) / 40


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
