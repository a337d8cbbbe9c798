"""The mask of padding is the wrong way round: real steps are multiplied by 0 and padding is kept, so that nothing of
the input arrives. The cure turns the mask round."""

import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

import inspector

RULE = "IN211"


class Sorter(nn.Module):
    """The kind of a sequence, by its first symbol: ids (b, t), 0 is padding → logits (b, 5)."""

    def __init__(self, turned: bool) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(6, 12), nn.GRU(12, 24, batch_first=True), nn.Linear(24, 5)
        self.turned = turned

    def forward(self, ids: Tensor) -> Tensor:
        """The read-out of the mean of the real steps."""
        real = ids == 0 if self.turned else ids != 0
        states, real = self.rnn(self.embedding(ids) * (ids != 0)[..., None])[0], real[..., None].float()
        return self.head((states * real * (ids != 0)[..., None]).sum(1) / 8)  # type: ignore[no-any-return]


def draw() -> Tensor:
    """(32, 8) symbols 1 to 5, padded with 0 after 4 to 8 of them."""
    ids = torch.randint(1, 6, (32, 8))
    return ids * (torch.arange(8) < torch.randint(4, 9, (32, 1)))


def train(version: str, seed: int, folder: Path) -> float:
    """160 iterations with Adam."""
    torch.manual_seed(seed)
    model, losses = Sorter(turned=version == "ill"), []
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    with inspector.watch(model, optimizer, folder / "run.inspect", every=2):
        for _ in range(160):
            ids = draw()
            loss = nn.functional.cross_entropy(model(ids), ids[:, 0] - 1)
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
