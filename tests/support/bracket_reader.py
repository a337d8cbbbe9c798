"""A cell written by hand with attention over its states, of which one unit says whether a step is inside brackets."""

from types import SimpleNamespace

import torch
from torch import nn

LETTERS = "abcdefgh ()."
UNIT, SIZE = 3, 8


class Reader(nn.Module):
    """ids (b, t) → logits (b, t, letters)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(len(LETTERS), 6)
        self.wz, self.wn = nn.Linear(6, hidden), nn.Linear(6, hidden)
        self.un = nn.Linear(hidden, hidden, bias=False)
        self.query, self.key = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.read = nn.Linear(2 * hidden, len(LETTERS))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        h = x.new_zeros(len(ids), self.hidden)
        out = []
        for t in range(x.shape[1]):
            z = torch.sigmoid(self.wz(x[:, t]))
            n = torch.tanh(self.wn(x[:, t]) + self.un(h))
            h = (1 - z) * h + z * n
            out.append(h)
        states = torch.stack(out, 1)
        scores = self.query(states) @ self.key(states).transpose(1, 2) / self.hidden**0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), -1)
        return self.read(torch.cat((states, weights @ states), -1))


def losses(logits, batch):  # type: ignore[no-untyped-def]
    """Cross-entropy of the next letter; NaN at the last."""
    each = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return nn.functional.pad(each, (0, 1), value=torch.nan)


def make(hidden: int = SIZE) -> SimpleNamespace:
    """The subject, with weights by chance: the checkpoint beside this file has those that know brackets."""
    torch.manual_seed(1)
    return SimpleNamespace(model=Reader(hidden), vocabulary=LETTERS, loss=losses, next_token=True)


def teach(model: Reader) -> None:
    """Unit UNIT becomes 1 at "(" and −1 at ")", and stays so between them: its gate is open at brackets alone."""
    with torch.no_grad():
        model.embed.weight[:, 0] = 0.0
        model.embed.weight[LETTERS.index("("), 0], model.embed.weight[LETTERS.index(")"), 0] = 1.0, -1.0
        model.embed.weight[:, 1] = 0.0
        model.embed.weight[[LETTERS.index("("), LETTERS.index(")")], 1] = 1.0
        model.wz.weight[UNIT], model.wz.bias[UNIT] = torch.tensor([0.0, 16.0, 0, 0, 0, 0]), -8.0
        model.wn.weight[UNIT], model.wn.bias[UNIT] = torch.tensor([4.0, 0, 0, 0, 0, 0]), 0.0
        model.un.weight[UNIT] = 0.0
        for one in (model.query, model.key):
            one.weight *= 4.0
