"""The recurrent weight begins at nine tenths of an orthogonal one's size and nothing holds it: the gradient falls
below a thousandth before it reaches the symbol that is asked for. The cure begins with an orthogonal matrix."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN205"
SEVERITY = "info"
SYMBOLS, STEPS = 4, 20


class Reader(nn.Module):
    """nn.RNN: symbols (b, t) → logits (b, t, v)."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(SYMBOLS, 8), nn.RNN(8, 32, batch_first=True)
        self.read = nn.Linear(32, SYMBOLS)
        nn.init.orthogonal_(self.rnn.get_parameter("weight_hh_l0"), gain)

    def forward(self, ids: Tensor) -> Any:
        return self.read(self.rnn(self.embed(ids))[0])


def step_losses(logits: Tensor, batch: Any) -> Tensor:
    """(b, t): −ln p of the first symbol at the last step, NaN before. Guessing costs ln 4 = 1.386."""
    values = nn.functional.cross_entropy(logits[:, -1], batch.inputs[:, 0], reduction="none")
    return nn.functional.pad(values[:, None], (logits.shape[1] - 1, 0), value=torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    torch.manual_seed(seed)
    model = Reader(0.5 if version == "ill" else 1.0)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    losses = []
    for _ in range(300):
        ids = torch.randint(0, SYMBOLS, (64, STEPS))
        loss = step_losses(model(ids), SimpleNamespace(inputs=ids)).nanmean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    subject = SimpleNamespace(model=model, vocabulary="abcd", loss=step_losses)
    out = folder / "run.inspect"
    inspector.run(subject, [*ids[:16]], out=out, also=["weight/spectrum", "influence"]).close()
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
