"""A loss is divided by many pieces and computed in float16, whose smallest number is 6e-8: most of its gradient is 0.
The cure is a GradScaler, which multiplies the loss before the backward pass and divides before the step."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN422"
PIECES = 4096


class Reader(nn.Module):
    """The symbol before, at each step: ids (b, t) → logits (b, t, 8)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(8, 16), nn.GRU(16, 32, batch_first=True)
        self.hidden, self.head = nn.Linear(32, 32), nn.Linear(32, 8)

    def forward(self, ids: Tensor) -> Tensor:
        """By a hidden layer over the states."""
        return self.head(self.hidden(self.rnn(self.embedding(ids))[0]).tanh())  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam; healthy computes in bfloat16, which has the range of float32."""
    torch.manual_seed(seed)
    model, losses = Reader(), []
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, eps=1e-15)
    scaler = torch.amp.GradScaler("cpu", enabled=version == "cured")
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(200):
            ids = torch.randint(0, 8, (32, 16))
            with torch.autocast("cpu", torch.bfloat16 if version == "healthy" else torch.float16):
                logits = model(ids)[:, 1:].flatten(0, 1).float()
                loss = nn.functional.cross_entropy(logits, ids[:, :-1].flatten())
            optimizer.zero_grad()
            scaler.scale(loss / PIECES).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    return sum(losses[-20:]) / 20


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
