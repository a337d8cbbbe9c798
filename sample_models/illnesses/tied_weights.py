"""A model with tied weights is copied parameter by parameter before training, which leaves two parameters where there
was one. The cure ties them again."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN121"
EVIDENCE = "‖embedding − last layer‖ after training"


class Reader(nn.Module):
    """Predicts the next symbol with the embedding as its last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(8, 24), nn.GRU(24, 24, batch_first=True)
        self.head = nn.Linear(24, 8, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, 8)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def untied(model: Reader) -> Reader:
    """As wrappers do that copy what each module holds."""
    for module in model.modules():
        for name, one in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(one.detach().clone()))
    return model


def train(version: str, seed: int, folder: Path) -> float:
    """The run before training, then 300 iterations with Adam; how far the two are apart afterwards."""
    torch.manual_seed(seed)
    model = Reader() if version == "healthy" else untied(Reader())
    if version == "cured":
        model.head.weight = model.embedding.weight
    inspector.run(model, [1, 2, 3, 4, 5], only=["structure/tied"], out=str(folder / "run.inspect")).close()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(300):
        ids = torch.randint(0, 3, (32, 24)).cumsum(1) % 8
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
