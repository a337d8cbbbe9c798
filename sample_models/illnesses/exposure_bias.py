"""A tagger of a noisy series is only ever given the right tag before (teacher forcing), and learns to count on from it:
by itself it goes on from its own wrong tag. The cure is scheduled sampling, training on tags of its own."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN209"
EVIDENCE = "share of wrong tags where the model goes on from its own; in training the fault lowers the loss"
TAGS, STEPS = 6, 16


class Tagger(nn.Module):
    """Reads one number and the tag before at each step: (b, t), (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.said = nn.Embedding(TAGS, 12), nn.Embedding(TAGS + 1, 12)
        self.cell, self.head = nn.GRUCell(24, 48), nn.Linear(48, TAGS)

    def forward(self, ids: Tensor, tags: Tensor, own: float = 0.0) -> Tensor:
        """`own`: the share of steps at which the model is given the tag that it has said itself."""
        h, before, scores = torch.zeros(len(tags), 48), torch.full((len(tags),), TAGS), []
        for t in range(tags.shape[1]):
            h = self.cell(torch.cat([self.read(ids[:, t]), self.said(before)], -1), h)
            scores.append(self.head(h))
            before = torch.where(torch.rand(len(tags)) < own, scores[-1].argmax(-1), tags[:, t])
        return torch.stack(scores, 1)


def draw(rows: int) -> tuple[Tensor, Tensor]:
    """Tags count on, but for one step in twelve; a fifth of the numbers that tell them are wrong."""
    steps = torch.where(torch.rand(rows, STEPS) < 1 / 12, torch.randint(0, TAGS, (rows, STEPS)), 1)
    tags = (steps.cumsum(1) + torch.randint(0, TAGS, (rows, 1))) % TAGS
    return torch.where(torch.rand(rows, STEPS) < 0.2, torch.randint(0, TAGS, (rows, STEPS)), tags), tags


def next_logits(model: Any, batch: Any, beginnings: Tensor) -> Tensor:
    tags = nn.functional.pad(beginnings, (0, 1))  # what follows the last one is asked for, so any tag stands there
    return model(batch.inputs.expand(len(tags), -1), tags)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """600 iterations with Adam; as many more after the cure."""
    torch.manual_seed(seed)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for iteration in range(1200 if version == "cured" else 600):
        (ids, tags), own = draw(64), 0.9 * (version == "healthy" or iteration >= 600)
        loss = nn.functional.cross_entropy(model(ids, tags, own).transpose(1, 2), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids, tags = draw(256)
    subject = SimpleNamespace(
        model=model, forward=lambda model, batch: model(batch.inputs, batch.targets), vocabulary="abcdef",
        loss=lambda y, batch: nn.functional.cross_entropy(y.transpose(1, 2), batch.targets, reduction="none"),
        answer=lambda _output, batch: batch.targets, next_logits=next_logits,
        data=list(zip(ids[:24], tags[:24], strict=True)), examples={"first": (ids[0], tags[0])},
    )  # fmt: skip
    inspector.decode(subject, longest=STEPS, out=folder / "run.inspect", only=["states"]).close()
    with torch.no_grad():
        return float((model(ids, tags, 1.0).argmax(-1) != tags).float().mean())


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
