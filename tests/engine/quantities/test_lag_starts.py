"""The map of norms by start and lag: which row belongs to which step of the sequence, forwards and backwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
X, H, LENGTH, PADDED = 3, 4, 8, 11


class Both(nn.Module):
    """An Elman layer in both directions, packed, so that the way back begins at each sequence's own end."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(X, H, bidirectional=True, batch_first=True)
        self.lengths = torch.tensor([PADDED, LENGTH])

    def forward(self, x: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, self.lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


def norms(model: Both, x: Tensor, suffix: str) -> dict[int, list[float]]:
    """{sequence step at which a change begins: ‖J … J‖_F / √H by lag}, by the equations of the layer."""
    w_ih, w_hh = (getattr(model.rnn, f"weight_{kind}_l0{suffix}").detach() for kind in ("ih", "hh"))
    bias = (getattr(model.rnn, f"bias_ih_l0{suffix}") + getattr(model.rnn, f"bias_hh_l0{suffix}")).detach()
    order = list(range(LENGTH))[:: -1 if suffix else 1]
    h, jacobians = torch.zeros(H, dtype=D), {}
    for step in order:
        h = torch.tanh(w_ih @ x[step] + w_hh @ h + bias)
        jacobians[step] = (1 - h.square())[:, None] * w_hh
    found = {}
    for n, start in enumerate(order[:-1]):
        product, row = torch.eye(H, dtype=D), [1.0]
        for step in order[n + 1 :]:
            product = jacobians[step] @ product
            row.append(float(product.norm()) / H**0.5)
        found[start] = row
    return found


@pytest.mark.parametrize(("place", "suffix"), [("rnn.l0", ""), ("rnn.l0.reverse", "_reverse")])
def test_each_row_begins_at_the_step_that_its_label_says(place: str, suffix: str) -> None:
    torch.manual_seed(0)
    model, x = Both().to(D), torch.randn(2, PADDED, X, dtype=D)
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=X)
    perform(subject, Batch(x, model.lengths, look_at=1), kept, RunOptions(only=("jacobian/lag",)))
    channel = kept.channel(f"{place}:jacobian/lag_map")
    rows, expected = kept.array(channel.name), norms(model, x[1], suffix)
    labels = [int(label) for label in channel.labels["start"]]
    assert labels == sorted(expected), "in the order of the sequence"
    assert labels[0] == (1 if suffix else 0) and labels[-1] == (LENGTH - 1 if suffix else LENGTH - 2)
    for label, row in zip(labels, rows, strict=True):
        np.testing.assert_allclose(row[np.isfinite(row)], expected[label], rtol=1e-9)
