"""The first of twenty symbols has to be said at the end, by a recurrence whose gradient is gone after a few steps. The
cure is a recurrence with gates that stay open, an LSTM with a forget bias of 5."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

import inspector

RULE = "IN206"


class Recall(nn.Module):
    """Reads symbols, and says at each step which it was asked for."""

    def __init__(self, *, gates: bool) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(4, 8), nn.Linear(24, 4)
        self.rnn: nn.RNNBase = (nn.LSTM if gates else nn.RNN)(8, 24, batch_first=True)
        values = dict(self.rnn.named_parameters())
        _ = values["bias_ih_l0"].data[24:48].fill_(5.0) if gates else values["weight_hh_l0"].data.mul_(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, 4)."""
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def of_last(output: Tensor, batch: Any) -> Tensor:
    """(b, t) cross-entropy of the last step, NaN at the others."""
    found = nn.functional.cross_entropy(output.transpose(1, 2), batch.targets, reduction="none", ignore_index=-100)
    return found.masked_fill(batch.targets < 0, torch.nan)


def train(version: str, seed: int, folder: Path) -> float:
    """The run before training, which the rule reads, and the mean loss of the last 50 of 400 iterations."""
    torch.manual_seed(seed)
    model = Recall(gates=version != "ill")
    data = [(one, torch.where(torch.arange(20) == 19, one[0], -100)) for one in torch.randint(0, 4, (400, 20))]
    subject = SimpleNamespace(model=model, kind="tokens", loss=of_last, data=data, examples={"one": data[0]})
    inspector.run(subject, only=["trial/reach"], out=str(folder / "run.inspect")).close()
    optimizer, losses = torch.optim.Adam(model.parameters(), 3e-3), list[float]()
    for ids in torch.randint(0, 4, (400, 32, 20)):
        loss = nn.functional.cross_entropy(model(ids)[:, -1], ids[:, 0])
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
