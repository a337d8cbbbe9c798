"""The whole model is in bfloat16, whose eight bits round most updates away. The cure keeps the parameters in
float32 and computes in bfloat16 by autocast."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import inspector

RULE = "IN113"


class Reader(nn.Module):
    """Says which of eight symbols was the third last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 16), nn.RNN(16, 32, batch_first=True), nn.Linear(32, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (b, 8)."""
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0][:, -1])
        return scores


def train(version: str, seed: int, folder: Path) -> float:
    """500 iterations with AdamW; healthy computes in float32."""
    torch.manual_seed(seed)
    model = Reader().to(torch.bfloat16 if version == "ill" else torch.float32)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 2e-4), []
    with inspector.watch(model, optimizer, folder / "run.inspect", every=10):
        for _ in range(500):
            ids = torch.randint(0, 8, (32, 6))
            with torch.autocast("cpu", torch.bfloat16, enabled=version == "cured"):
                loss = nn.functional.cross_entropy(model(ids).float(), ids[:, -3])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
