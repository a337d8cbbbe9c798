"""A head that counts needs a key to count against, and takes the first one, a sign of beginning that says nothing: no
fault, but known. Where it is unwanted, the cure is a score without a key in every softmax, in place of the sign."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN414"
SEVERITY = "info"
EVIDENCE = "none: a sink is no illness, and the loss does not suffer"
SYMBOLS, STEPS, WIDTH, HEADS = 3, 40, 32, 4


class Causal(nn.Module):
    """Four causal heads: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, may_rest: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.read = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 3))
        self.rest = nn.Parameter(torch.zeros(HEADS, 1, 1)) if may_rest else None

    def forward(self, ids: Tensor) -> Any:
        parts = (part(self.embed(ids)) for part in (self.query, self.key, self.value))
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in parts)
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5).masked_fill(later, -torch.inf)
        if self.rest is not None:
            scores = torch.cat((self.rest.expand(*scores.shape[:3], 1), scores), -1)
        weights = torch.softmax(scores, -1)[..., -ids.shape[1] :]
        return self.read((weights @ v).transpose(1, 2).flatten(2))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of how many times 1 was read, up to two."""
    counts = (batch.inputs == 1).cumsum(1).clamp(max=2)
    return nn.functional.cross_entropy(logits.transpose(1, 2), counts, reduction="none")


def draw(rows: int, *, begins: bool) -> Tensor:
    """(b, t): a sign of beginning, then symbol 2, one in twenty a 1."""
    ids = torch.full((rows, STEPS), 2).masked_fill(torch.rand(rows, STEPS) < 0.05, 1)
    if begins:
        ids[:, 0] = 0
    return ids


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Causal(may_rest=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for _ in range(400):
        ids = draw(16, begins=version == "ill")
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="^1a", loss=step_losses)
    inspector.run(subject, ids[0], out=folder / "run.inspect").close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
