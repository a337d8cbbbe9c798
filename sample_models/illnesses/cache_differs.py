"""With a cache, the position of a single step begins at 0 again, so that generation sees all symbols at the first
position. The cure goes on counting where the cache ends."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN108"
EVIDENCE = "loss where steps are given one at a time with the cache, as in generation; training has no cache"
SYMBOLS = 8


class Cached(nn.Module):
    """One causal head with a cache: symbols (b, t) → logits (b, t, v) and the keys and values so far."""

    def __init__(self, *, counts_on: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, 16), nn.Embedding(32, 16)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.read, self.counts_on = nn.Linear(16, SYMBOLS), counts_on

    def forward(self, ids: Tensor, cache: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        before = 0 if cache is None else cache[0].shape[1]
        x = self.embed(ids) + self.positions(before * self.counts_on + torch.arange(ids.shape[1]))
        keys, values = self.key(x), self.value(x)
        if cache is not None:
            keys, values = torch.cat((cache[0], keys), 1), torch.cat((cache[1], values), 1)
        later = torch.ones(ids.shape[1], keys.shape[1], dtype=torch.bool).triu(1 + before)
        scores = (self.query(x) @ keys.transpose(1, 2) / 4).masked_fill(later, -torch.inf)
        return self.read(x + torch.softmax(scores, -1) @ values), (keys, values)


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the next symbol, NaN at the last."""
    values = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(values, (0, 1), value=torch.nan)


def one_at_a_time(model: Cached, ids: Tensor) -> float:
    """The mean loss over the second half of the sequences."""
    logits, cache = model(ids[:, :8])
    losses = []
    for t in range(8, ids.shape[1]):
        losses.append(nn.functional.cross_entropy(logits[:, -1], ids[:, t]).item())
        logits, cache = model(ids[:, t : t + 1], cache)
    return sum(losses) / len(losses)


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam on sequences that repeat four symbols."""
    torch.manual_seed(seed)
    model = Cached(counts_on=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(300):
        ids = torch.randint(0, SYMBOLS, (32, 4)).repeat(1, 4)
        loss = step_losses(model(ids)[0], SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject = SimpleNamespace(
        model=model.eval(), vocabulary="abcdefgh", next_token=True,
        logits=lambda output: output[0], loss=lambda output, batch: step_losses(output[0], batch),
    )  # fmt: skip
    inspector.run(subject, ids[0], out=folder / "run.inspect", also=["structure/cache"]).close()
    return one_at_a_time(model, ids)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
