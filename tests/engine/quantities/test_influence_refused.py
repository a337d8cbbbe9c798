"""Why influence is not measured of models whose sequences cannot be copied within a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import inspector


class BatchOfOne(nn.Module):
    """A batch of 1 is written into the model."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(5, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, 5)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(self.embed(ids).reshape(1, -1, 3))[0])
        return out


class AlongTheBatch(BatchOfOne):
    """batch_first was forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(self.embed(ids))[0])
        return out


@pytest.mark.parametrize(("kind", "reason"), [
    (BatchOfOne, "a batch of 1 seems to be written into it"), (AlongTheBatch, "rnn runs along the batch"),
])  # fmt: skip
def test_what_keeps_copies_of_a_sequence_apart_is_said(kind: type[nn.Module], reason: str) -> None:
    def loss(scores: Tensor, batch: Any) -> Tensor:
        own = torch.nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
        return torch.nn.functional.pad(own, (0, 1), value=torch.nan)

    torch.manual_seed(0)
    subject = SimpleNamespace(model=kind(), vocabulary="abcde", loss=loss, next_token=True)
    capture = inspector.run(subject, "abcdeabcdeab", also=["influence"])
    reasons = [one.reason for one in capture.refusals if one.channel.startswith("input:influence")]
    assert len(reasons) == 1 and reason in reasons[0], reasons
