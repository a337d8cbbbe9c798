"""GRU on copying memory, trained with truncated backpropagation, S3: what is asked for lies 20 steps back, K is 4.

Every 4 steps the state is handed on but its history cut off, so no gradient ever joins an answer to the symbol that it
needs. The gradient of the whole sequence, which is what is shown here, has that part: look at the share that K loses.
Trained so, it comes to 0.95 nat a symbol, of 1.39 for guessing: it reads what its state happens to hold on to. With
`build(truncate=None)`, on the whole sequence, the same network comes to 0.001 in as many steps.
Reference: Williams & Peng (1990).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sample_models import tasks
from sample_models.base import Plain, Sample, Training, seeded
from sample_models.readers import TokenTransducer

SAMPLE = {
    "name": "copy-truncated",
    "row": "S3",
    "title": "GRU trained with too short a truncation",
    "task": "say four symbols again that were read 20 steps ago; trained with a truncation of 4 steps",
    "shows": "the share of the gradient that truncation after K steps loses, and a model that did not learn for it",
}
HIDDEN, EMBEDDED, TRUNCATED, KINDS = 32, 6, 4, 4


def truncated(model: nn.Module, batch: Plain, length: int) -> Tensor:
    """The model's scores with the state's history cut off before steps `length`, 2 `length` …"""
    assert isinstance(model, TokenTransducer)
    state: Tensor | None = None
    pieces = []
    for piece in model.embedding(batch.inputs).split(length, dim=1):
        states, state = model.rnn(piece, state)
        assert state is not None
        state = state.detach()
        pieces.append(states)
    scores: Tensor = model.head(torch.cat(pieces, dim=1))
    return scores


def examples() -> dict[str, Any]:
    """Three sequences with the lag of training, and one with a shorter."""
    gaps = {"abcd": 16, "ddca": 16, "bbbb": 16, "acbd": 4}
    return {f"{word}, {gap} blanks": word + "·" * gap + "????" for word, gap in gaps.items()}


def build(truncate: int | None = TRUNCATED) -> Sample:
    """32 units, untrained; None trains with backpropagation through the whole sequence."""
    with seeded():
        model = TokenTransducer(nn.GRU(EMBEDDED, HIDDEN, batch_first=True), EMBEDDED, len(tasks.COPY), KINDS)
    training = Training(tasks.copying, rate=5e-3)
    if truncate is not None:
        training.forward = lambda model, batch: truncated(model, batch, truncate)
    return Sample(
        model=model, name="copy-truncated", kind="tokens", vocabulary=tasks.COPY, labels=tasks.COPY[:KINDS],
        loss=tasks.copying_loss, examples=examples(), training=training,
    )  # fmt: skip
