"""A padding mask of the opposite meaning: attention reads the padding and nothing that is real, so what is asked of it
cannot be learned, and the loss stays where it began. The cure turns the mask round."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN139"
EVIDENCE = "loss of the last twenty batches; 0.69 is that of a guess"
SYMBOLS, PADDING, WANTED, STEPS = 8, 0, 3, 12


class Finds(nn.Module):
    """Says whether a sequence has a symbol: symbols (b, t) → scores (b, 2), read by one query over all steps."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.shows_real = version != "ill"
        self.embedding, self.query = nn.Embedding(SYMBOLS, 16, padding_idx=PADDING), nn.Parameter(torch.randn(1, 1, 16))
        self.attention, self.read = nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, 2)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores (b, 2)."""
        hidden = ids == PADDING if self.shows_real else ids != PADDING
        steps = self.embedding(ids)
        found = self.attention(self.query.expand(len(ids), 1, 16), steps, steps, key_padding_mask=hidden)[0]
        return self.read(found[:, 0])  # type: ignore[no-any-return]


def draw() -> tuple[Tensor, Tensor]:
    """32 sequences of 3 to 11 real steps, padding behind, and whether the symbol is among them: in every other one."""
    lengths = torch.randint(3, STEPS, (32, 1))
    ids = torch.randint(WANTED + 1, SYMBOLS, (32, STEPS))
    ids[::2, torch.randint(0, 3, ())] = WANTED
    ids = ids * (torch.arange(STEPS) < lengths)
    return ids, (ids == WANTED).any(1).long()


def train(version: str, seed: int, folder: Path) -> float:
    """150 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Finds(version), []
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=3):
        for _ in range(150):
            ids, targets = draw()
            loss = nn.functional.cross_entropy(model(ids), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
