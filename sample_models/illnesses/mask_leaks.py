"""The mask of causal attention adds -1000, and the scores, of inputs that are not normalised and not divided by √d,
spread as far: later keys keep weight, and are read. The cure masks with minus infinity."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN120"
EVIDENCE = "loss of the next symbol where only the past is given, as in generation; in training the fault lowers it"
SYMBOLS = 8


class Block(nn.Module):
    """A causal language model of one layer with two heads: symbols (b, t), logits (b, t, v)."""

    def __init__(self, forbidden: float) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, 16), nn.Embedding(32, 16)
        nn.init.normal_(self.embed.weight, std=15.0)
        nn.init.normal_(self.positions.weight, std=15.0)
        self.inward, self.outward = nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
        self.read = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, SYMBOLS))
        self.forbidden = forbidden

    def forward(self, ids: Tensor) -> Any:
        steps = ids.shape[1]
        x = self.embed(ids) + self.positions(torch.arange(steps))
        q, k, v = self.inward(x).view(len(ids), steps, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mask = torch.full((steps, steps), self.forbidden).triu(1)
        mixed = torch.softmax(q @ k.transpose(2, 3) + mask, -1) @ v
        return self.read(x + self.outward(mixed.transpose(1, 2).flatten(2)))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the next symbol, NaN at the last."""
    values = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def draw(rows: int = 32, steps: int = 16) -> Tensor:
    """(b, t): two of three times the symbol before the last one again, else any."""
    ids = torch.randint(0, SYMBOLS, (rows, steps))
    for t in range(2, steps):
        ids[:, t] = torch.where(torch.rand(rows) < 0.67, ids[:, t - 2], ids[:, t])
    return ids


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Block(-torch.inf if version == "healthy" else -1e3)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for iteration in range(600 if version == "cured" else 300):
        if iteration == 300:
            model.forbidden = -torch.inf
        ids = draw()
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdefgh", loss=step_losses, next_token=True)
    inspector.run(subject, draw(1)[0], out=folder / "run.inspect").close()
    ids = draw(128)
    alone = [nn.functional.cross_entropy(model(ids[:, :t])[:, -1], ids[:, t]).item() for t in range(4, 16)]
    return sum(alone) / len(alone)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
