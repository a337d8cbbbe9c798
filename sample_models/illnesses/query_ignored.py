"""The score of additive attention has no nonlinearity, so that the query's part cancels in the softmax and every
query reads the same. The cure puts a tanh between the sum of query and key and the score."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN109"
SYMBOLS = 6


class Additive(nn.Module):
    """Additive self-attention beside a GRU: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, bends: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 16)
        self.positions = nn.Parameter(torch.randn(12, 16))
        self.query, self.key = nn.Linear(16, 24), nn.Linear(16, 24)
        self.score, self.read = nn.Linear(24, 1), nn.Linear(16, SYMBOLS)
        self.bend = nn.Tanh() if bends else nn.Identity()

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids)
        place = self.positions[: ids.shape[1]].expand_as(x)
        scores = self.score(self.bend(self.query(place)[:, :, None] + self.key(place)[:, None])).squeeze(-1)
        return self.read(torch.softmax(scores, -1) @ x)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the sequence said backwards."""
    return nn.functional.cross_entropy(logits.transpose(1, 2), batch.inputs.flip(1), reduction="none")


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Additive(bends=version == "healthy")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for iteration in range(800 if version == "cured" else 400):
        if iteration == 400:
            model.bend = nn.Tanh()
        ids = torch.randint(0, SYMBOLS, (32, 10))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdef", loss=step_losses)
    shown = torch.randint(0, SYMBOLS, (10,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["structure/query"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
