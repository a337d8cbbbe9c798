"""Runs of recurrences whose paths and masks are asked for."""

from __future__ import annotations

import torch
from kept import Kept
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Trace

D = torch.float64

KEYS = ("paths", "paths/lag", "masks")

KINDS = {
    "tanh": lambda **more: nn.RNN(3, 4, **more),
    "relu": lambda **more: nn.RNN(3, 4, nonlinearity="relu", **more),
    "gru": lambda **more: nn.GRU(3, 4, **more),
    "lstm": lambda **more: nn.LSTM(3, 4, **more),
}


class Packed(OnlyOutput):
    """Different lengths, as packed sequences: the backward direction begins at each sample's own end."""

    lengths = torch.tensor([12, 9])

    def forward(self, x: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, self.lengths, batch_first=True)
        out: Tensor = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]
        return out


def run(kind: str, quantities: tuple[str, ...] = KEYS, look_at: int = 1) -> tuple[Trace, Kept]:
    torch.manual_seed(3)
    net = Packed(KINDS[kind](num_layers=2, bidirectional=True, batch_first=True)).double().eval()
    kept = Kept()
    x = torch.randn(2, 12, 3, dtype=D)
    subject = Subject(model=net, kind="vectors", width=3)
    trace = perform(subject, Batch(x, net.lengths, look_at=look_at), kept, RunOptions(only=tuple(quantities)))
    return trace, kept
