"""The mask of padding is the wrong way round and sets the real steps to 0: the answer cannot be learned, not even of
one batch. The cure looks for inputs that do not reach the output, and turns the mask round."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN203"
SYMBOLS, PADDING = 6, 0


class Convolutions(nn.Module):
    """Two convolutions that read the past: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 12)
        self.first, self.second = nn.Conv1d(12, 24, 2), nn.Conv1d(24, 24, 2)
        self.read = nn.Linear(24, SYMBOLS)
        self.turned = turned

    def forward(self, ids: Tensor) -> Any:
        out = (ids != PADDING) if self.turned else (ids == PADDING)
        x = self.embed(ids).masked_fill(out[..., None], 0.0).transpose(1, 2)
        for convolution in (self.first, self.second):
            x = convolution(nn.functional.pad(x, (1, 0))).relu()
        return self.read(x.transpose(1, 2))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol two steps before, NaN at the first two."""
    values = nn.functional.cross_entropy(logits[:, 2:].transpose(1, 2), batch.inputs[:, :-2], reduction="none")
    return nn.functional.pad(values, (2, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """The trial on one batch, then 250 iterations with Adam."""
    torch.manual_seed(seed)
    model = Convolutions(turned=version == "ill")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    subject = SimpleNamespace(model=model, vocabulary="_abcde", loss=step_losses)
    shown = torch.randint(1, SYMBOLS, (20,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["trial/one_batch"]).close()
    losses = []
    for _ in range(250):
        ids = torch.randint(1, SYMBOLS, (32, 12))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
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
