"""An array with a batch axis, as the model itself is called with, is a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.errors import InputError


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.rnn = nn.Embedding(9, 4), nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.rnn(self.table(x))[0])


IDS = np.random.default_rng(0).integers(0, 9, (3, 6))


@pytest.mark.parametrize(
    "given", [IDS, torch.from_numpy(IDS), IDS[:1], IDS[0], IDS[0][:, None], IDS[:, :1], IDS.tolist()]
)
@pytest.mark.parametrize("last", [False, True])
def test_ids_of_several_sequences(given: Any, last: bool) -> None:
    torch.manual_seed(0)
    model, rows = Tagger().eval(), np.asarray(given)
    one = rows.reshape(-1) if rows.ndim == 1 or 1 in rows.shape else rows[-1 if last else 0]
    look_at = len(rows) - 1 if last and rows.ndim == 2 and 1 not in rows.shape else 0
    with inspector.run(model, given, look_at=look_at, only=("states",)) as capture:
        known = model(torch.from_numpy(np.ascontiguousarray(one))[None])[0].detach()
        assert torch.allclose(torch.tensor(capture.array("rnn.l0:h")), known, atol=1e-6)


def test_vectors_of_several_sequences() -> None:
    torch.manual_seed(0)
    model, x = nn.GRU(3, 4, batch_first=True), torch.randn(2, 6, 3)
    with inspector.run(model, x, look_at=1, only=("states",)) as capture:
        assert torch.allclose(torch.tensor(capture.array("gru.l0:h")), model(x)[0][1].detach(), atol=1e-6)


def test_the_batch_axis_is_where_the_model_wants_it() -> None:
    torch.manual_seed(0)
    model, x = nn.GRU(3, 4), torch.randn(6, 2, 3)
    subject = SimpleNamespace(model=model, inputs={"x": {"kind": "vectors", "width": 3, "batch_dim": 1}})
    with inspector.run(subject, x, look_at=1, only=("states",)) as capture:
        assert torch.allclose(torch.tensor(capture.array("gru.l0:h")), model(x)[0][:, 1].detach(), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((0, 5), dtype=np.int64), "The array holds no sequences."),
        (np.zeros((2, 3, 6), dtype=np.int64), "Token ids have one axis"),
        (np.full((2, 3), 9), "Id 9 at step 0 does not exist; ids go from 0 to 8."),
        (np.full((2, 3), 0.5), "Token ids are whole numbers"),
    ],
)
def test_what_is_no_batch_has_its_sentence(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        inspector.run(Tagger().eval(), given)
