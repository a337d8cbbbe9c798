"""What characters that are typed for a model are at first: ids where it has no way to read text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.engine.model.subject import adopt
from inspector.engine.opening.open_subject import Opened
from inspector.engine.session.service import describe
from inspector.records import Load


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens)


@pytest.mark.parametrize("declared, typed", [
    ({}, "ids"), ({"vocabulary": "abcdefghij"}, ""), ({"encode": lambda text: torch.tensor([len(text)])}, ""),
    ({"kind": "vectors", "width": 4}, ""),
])  # fmt: skip
def test_a_model_without_a_vocabulary_reads_ids(declared: dict[str, Any], typed: str) -> None:
    subject = adopt(SimpleNamespace(model=Reads(), **{"kind": "tokens", **declared}))
    assert describe(Opened(subject, "m", None), Load(subject="m")).typed == typed
