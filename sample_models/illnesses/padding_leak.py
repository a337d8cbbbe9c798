"""A bidirectional GRU uses the lengths that it is told only in its loss, so that its backward direction reads
padding. The cure packs the sequences, so that each direction runs over real steps alone."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import inspector

RULE = "IN105"
EVIDENCE = "loss on sequences of several lengths in one batch; the batches of training have one length each"
SYMBOLS, PADDING = 6, 0


class Tagger(nn.Module):
    """Logits (b, t, 2) of symbols (b, t) of the given lengths (b)."""

    def __init__(self, *, packs: bool) -> None:
        super().__init__()
        self.packs = packs
        self.embed = nn.Embedding(SYMBOLS, 8)
        self.gru = nn.GRU(8, 12, batch_first=True, bidirectional=True)
        self.read = nn.Linear(24, 2)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        vectors = self.embed(ids)
        if not self.packs:
            whole: Tensor = self.read(self.gru(vectors)[0])
            return whole
        packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
        steps = ids.shape[1]
        logits: Tensor = self.read(pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=steps)[0])
        return logits


def draw(rows: int, shortest: int) -> tuple[Tensor, Tensor]:
    """Sequences of `shortest` to 16 steps in one batch, and their lengths."""
    lengths = torch.randint(shortest, 17, (rows,))
    ids = torch.randint(1, SYMBOLS, (rows, int(lengths.max())))
    return ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], PADDING), lengths


def mean_loss(model: Tagger, ids: Tensor, lengths: Tensor) -> Tensor:
    """Is an odd number of real steps still to come? Only the backward direction can know."""
    to_come = lengths[:, None] - torch.arange(ids.shape[1])
    values = nn.functional.cross_entropy(model(ids, lengths).transpose(1, 2), to_come % 2, reduction="none")
    return values[to_come > 0].mean()


def train(version: str, seed: int, folder: Path) -> float:
    """200 iterations with Adam, sorted by length as for speed."""
    torch.manual_seed(seed)
    model = Tagger(packs=version != "ill")
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(200):
        ids, lengths = draw(1, 10)
        ids = torch.randint(1, SYMBOLS, (32, int(lengths)))
        loss = mean_loss(model, ids, lengths.expand(32))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    subject = SimpleNamespace(
        model=model.eval(), vocabulary="_abcde", forward=lambda model, ids, lengths: model(ids, lengths)
    )
    shown = torch.randint(1, SYMBOLS, (14,))
    inspector.run(subject, shown, out=folder / "run.inspect", also=["structure/padding"]).close()
    return mean_loss(model, *draw(256, 10)).item()


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, "loss", train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
