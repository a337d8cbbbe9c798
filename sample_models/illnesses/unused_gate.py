"""A memory with a gate sets that gate to a half after it was computed, left from debugging: what was read first is gone
after a few steps. The cure takes the line away."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN135"


class Memory(nn.Module):
    """Which key was read first, before other symbols: ids (b, t) → logits (b, 6)."""

    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.embedding, self.both, self.head = nn.Embedding(12, 16), nn.Linear(16, 48), nn.Linear(24, 6)
        self.fixed = fixed

    def forward(self, ids: Tensor) -> Tensor:
        """The read-out of the last state."""
        state = torch.zeros(len(ids), 24)
        for x in self.embedding(ids).unbind(1):
            gate, new = self.both(x).chunk(2, -1)
            gate = gate.sigmoid()
            if self.fixed:
                gate = torch.full_like(gate, 0.5)
            state = (1 - gate) * state + gate * new.tanh()
        return self.head(state)  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Memory(fixed=version == "ill"), []
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(200):
            ids = torch.randint(6, 12, (32, 10))
            ids[:, 0] = torch.randint(0, 6, (32,))
            loss = nn.functional.cross_entropy(model(ids), ids[:, 0])
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
