"""The learning rate is annealed to 0, and weights are decayed by hand with a factor that does not follow it: what was
learned shrinks away in the second half. The cure is a smaller decay, AdamW's own, which is multiplied by the rate."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN308"
SYMBOLS, BACK, ITERATIONS = 8, 3, 400


class Remembers(nn.Module):
    """Says the symbol three steps back: symbols (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 16), nn.GRU(16, 32, batch_first=True)
        self.norm, self.read = nn.LayerNorm(32), nn.Linear(32, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.read(self.norm(self.rnn(self.embedding(ids))[0]))  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with AdamW; the rate falls in a line from 0.01 to 0."""
    torch.manual_seed(seed)
    model, losses = Remembers(), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.1 if version == "cured" else 0.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, ITERATIONS)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(ITERATIONS):
            ids = torch.randint(0, SYMBOLS, (32, 12))
            loss = nn.functional.cross_entropy(model(ids)[:, BACK:].transpose(1, 2), ids[:, :-BACK])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if version == "ill":
                with torch.no_grad():
                    for one in model.parameters():
                        one.mul_(0.985)
            losses.append(loss.item())
    return sum(losses[-40:]) / 40


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
