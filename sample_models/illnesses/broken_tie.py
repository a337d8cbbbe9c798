"""Weights are loaded with assign=True, which puts a tensor of its own in each place: the embedding and the last layer,
tied when the model was made, are two in the training. The cure ties them again after loading."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN138"
EVIDENCE = "‖embedding − last layer‖ after training"
SYMBOLS = 24


class Reader(nn.Module):
    """Predicts the next symbol with the embedding as its last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 16), nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, SYMBOLS, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def train(version: str, seed: int, folder: Path) -> float:
    """300 iterations with Adam from weights that were kept; how far the two are apart afterwards."""
    torch.manual_seed(seed)
    kept, model = {name: one.clone() for name, one in Reader().state_dict().items()}, Reader()
    model.load_state_dict(kept, assign=version != "healthy")
    if version == "cured":
        model.head.weight = model.embedding.weight
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=3):
        for _ in range(300):
            ids = torch.randint(0, 3, (32, 24)).cumsum(1) % SYMBOLS
            loss = nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float(torch.dist(model.embedding.weight, model.head.weight).detach())


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
