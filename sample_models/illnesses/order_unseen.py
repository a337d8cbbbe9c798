"""A transformer without positions is to say the symbol before each one, and sees its sequence as a set. The cure adds
learned positions to its inputs."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN117"
SEVERITY = "info"
SYMBOLS, STEPS = 8, 12


class Encoder(nn.Module):
    """One layer of nn.TransformerEncoderLayer: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, *, positions: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS, 24)
        self.positions = nn.Parameter(torch.randn(STEPS, 24)) if positions else None
        self.layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
        self.read = nn.Linear(24, SYMBOLS)

    def forward(self, ids: Tensor) -> Any:
        x = self.embed(ids)
        if self.positions is not None:
            x = x + self.positions[: ids.shape[1]]
        return self.read(self.layer(x))


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the symbol before, NaN at the first step."""
    values = nn.functional.cross_entropy(logits[:, 1:].transpose(1, 2), batch.inputs[:, :-1], reduction="none")
    return nn.functional.pad(values, (1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Encoder(positions=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(400):
        ids = torch.randint(0, SYMBOLS, (32, STEPS))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model.eval(), vocabulary="abcdefgh", loss=step_losses)
    inspector.run(subject, ids[0], out=folder / "run.inspect", also=["structure/order"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
