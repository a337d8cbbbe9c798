"""A script that changes torch's default dtype is run with every number that it has without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.model.subject import Subject

IDS = [1, 2, 3, 1, 2, 4, 5]


class Speaking(nn.Module):
    """A recurrent language model in float64."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.rnn, self.out = nn.Embedding(7, 5), nn.GRU(5, 5, batch_first=True), nn.Linear(5, 7)
        self.double()

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.out(self.rnn(self.embed(ids))[0])
        return found


@pytest.fixture(params=[torch.float64, torch.float16])
def default(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    before = torch.get_default_dtype()
    yield request.param
    torch.set_default_dtype(before)


def test_numbers_are_those_of_the_usual_default(default: torch.dtype) -> None:
    model = Speaking()
    subject = Subject(model=model, next_token=True, vocabulary=list("abcdefg"))
    with inspector.run(subject, IDS) as usual:
        torch.set_default_dtype(default)
        with inspector.run(subject, IDS) as capture:
            for name in ("output:probability", "output:entropy", "rnn.l0:h", "rnn.l0:jacobian/spectral_norm"):
                assert capture.channel(name).dtype == usual.channel(name).dtype
                assert np.allclose(
                    capture.array(name), usual.array(name), rtol=1e-2 if default is torch.float16 else 1e-5
                )
