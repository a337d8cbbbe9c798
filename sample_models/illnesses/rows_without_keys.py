"""A mask that forbids each step itself leaves the first query of a causal head without any key: its row is NaN, and
after one step so are all weights. The cure allows each query its own step."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN119"
SYMBOLS = 8


class Causal(nn.Module):
    """nn.MultiheadAttention with a mask: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, itself: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, 16), nn.Embedding(32, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.read = nn.Linear(16, SYMBOLS)
        self.itself = itself

    def forward(self, ids: Tensor) -> Any:
        steps = ids.shape[1]
        x = self.embed(ids) + self.positions(torch.arange(steps))
        mask = torch.ones(steps, steps, dtype=torch.bool).triu(1 if self.itself else 0)
        return self.read(x + self.attention(x, x, x, attn_mask=mask)[0])


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the next symbol, NaN at the last."""
    values = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam on sequences that repeat three symbols."""
    torch.manual_seed(seed)
    model = Causal(itself=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(200):
        ids = torch.randint(0, SYMBOLS, (32, 3)).repeat(1, 5)
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids))[:, :-1].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdefgh", loss=step_losses, next_token=True)
    inspector.run(subject, ids[0], out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
