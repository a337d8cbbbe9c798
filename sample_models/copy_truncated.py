"""GRU on copying memory, trained with truncated backpropagation, S3: what is asked for lies 14 steps back, K is 8.

Every 8 steps the state is handed on but its history cut off, so no gradient ever joins an answer to the symbol that it
needs. The gradient of the whole sequence, which is what is shown here, has that part: look at the share that K loses.
`build(truncate=None)` is trained on the whole sequence. Reference: Williams & Peng (1990).
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
    "task": "say four symbols again that were read 14 steps ago; trained with a truncation of 8 steps",
    "shows": "the share of the gradient that truncation after K steps loses, and a model that did not learn for it",
}
HIDDEN, EMBEDDED, TRUNCATED, KINDS = 32, 6, 8, 4


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
    """Three symbol sequences with the lag of training, and a shorter one."""
    return {
        "abcd": "abcd··········????", "ddca": "ddca··········????", "bbbb": "bbbb··········????",
        "shorter": "abcd··????",
    }  # fmt: skip


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
