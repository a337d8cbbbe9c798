"""The task of two recorded trainings: say, after forty symbols, which one came first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sample_models.base import Batch, Plain
from sample_models.readers import TokenTransducer

SYMBOLS, STEPS, ROWS = 8, 40, 64
EMBEDDED = 8


def draw(generator: torch.Generator) -> Plain:
    """Random symbols; only the first one matters."""
    ids = torch.randint(0, SYMBOLS, (ROWS, STEPS), generator=generator)
    return Plain(ids, torch.full((ROWS,), STEPS))


def first_symbol_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p(the first symbol) at the last step, NaN elsewhere. Guessing costs ln 8 = 2.079 nat.

    After the latch and recall problems of Bengio, Simard & Frasconi (1994).
    """
    values = nn.functional.cross_entropy(scores[:, -1], batch.inputs[:, 0], reduction="none")
    earlier = scores.new_full((len(values), scores.shape[1] - 1), torch.nan)
    return torch.cat((earlier, values[:, None]), dim=1)


def reader(rnn: nn.RNNBase) -> TokenTransducer:
    """Embedding, a recurrence over `EMBEDDED` numbers, a read-out."""
    return TokenTransducer(rnn, EMBEDDED, SYMBOLS, SYMBOLS)
