"""A model of texts whose symbols go on in equal steps is only ever given right ones: after a slip of its own it no
longer knows the step, and is lost for good. The cure is noise on the symbols that it is given in training."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

import inspector

RULE, KEY = "IN209", "exposure-bias"
EVIDENCE = "share of symbols that are not one step further, in what the model goes on with; in training the fault \
lowers the loss"
SYMBOLS, STEPS = 17, 64


class Reader(nn.Module):
    """Scores of the next symbol: (b, t) → (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(SYMBOLS, 24), nn.GRU(24, 64, batch_first=True)
        self.head = nn.Linear(64, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


def draw(rows: int) -> Tensor:
    """Texts (b, t): each goes on in steps of its own."""
    step, first = torch.randint(1, SYMBOLS, (rows, 1)), torch.randint(0, SYMBOLS, (rows, 1))
    return (first + step * torch.arange(STEPS)) % SYMBOLS


def wrong(model: Reader) -> float:
    """Of second halves that are drawn after right first ones."""
    right = draw(200)
    ids = right[:, : STEPS // 2]
    with torch.no_grad():
        for _ in range(STEPS // 2):
            ids = torch.cat([ids, torch.multinomial(model(ids)[:, -1].softmax(-1), 1)], 1)
    return float((ids != right)[:, STEPS // 2 :].float().mean())


def train(version: str, seed: int, folder: Path) -> float:
    """400 iterations with Adam; 1000 with the cure, or after it."""
    torch.manual_seed(seed)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for iteration in range({"ill": 400, "healthy": 1000, "cured": 1400}[version]):
        texts, noise = draw(48), 0.2 * (version == "healthy" or iteration >= 400)
        given = torch.where(torch.rand(texts.shape) < noise, torch.randint(0, SYMBOLS, texts.shape), texts)
        scores = model(given[:, :-1]).flatten(0, 1)
        loss = nn.functional.cross_entropy(scores, texts[:, 1:].flatten(), label_smoothing=0.03)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    data = list(draw(48))
    subject = SimpleNamespace(
        model=model, vocabulary="abcdefghijklmnopq", next_token=True, data=data, examples={"one": data[0]}
    )
    inspector.decode(subject, longest=STEPS, out=folder / "run.inspect", only=["states"]).close()
    return wrong(model)


if __name__ == "__main__":
    for version in [one for one in ("ill", "healthy", "cured") if one in sys.argv] or sys.exit("ill, healthy, cured?"):
        to = Path(tempfile.mkdtemp(prefix=f"{version}-"))
        print(version, EVIDENCE, train(version, 0, to), "in", to)
        for finding in inspector.diagnose(to / "run.inspect").findings:
            print(f"{finding.severity}: {finding.message} [{finding.id}]")
