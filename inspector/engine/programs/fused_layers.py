"""The fused recurrent operators of torch (aten::lstm.input and so on) as the modules that call them.

An operator takes its weights as one list: for each layer and direction `weight_ih`, `weight_hh`, then both biases where
there are any, then `weight_hr` where the state is projected (torch.nn.RNNBase, `_flat_weights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

KINDS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "lstm": (nn.LSTM, 4, {}),
    "gru": (nn.GRU, 3, {}),
    "rnn_tanh": (nn.RNN, 1, {"nonlinearity": "tanh"}),
    "rnn_relu": (nn.RNN, 1, {"nonlinearity": "relu"}),
}
"""By the name of the operator: the module, its gates, and what else tells it."""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of a call behind its weights, in their order."""

    biases: bool
    layers: int
    dropout: float
    train: bool
    both: bool
    batch_first: bool

    @property
    def drops(self) -> bool:
        """Whether it draws random numbers."""
        return self.train and self.dropout > 0 and self.layers > 1


def layer_of(kind: str, weights: Sequence[nn.Parameter], options: Options) -> nn.RNNBase | None:
    """The module of these weights, which it shares; None where there is no such module of torch's."""
    if kind not in KINDS or options.drops or not weights:
        return None
    base, gates, said = KINDS[kind]
    places = options.layers * (2 if options.both else 1)
    parts = len(weights) // places
    plain = 4 if options.biases else 2
    if parts * places != len(weights) or parts not in (plain, plain + 1) or (parts > plain and kind != "lstm"):
        return None
    hidden = int(weights[0].shape[0]) // gates
    projected = {"proj_size": int(weights[plain].shape[0])} if parts > plain else {}
    with torch.device("meta"):
        made: nn.RNNBase = base(
            int(weights[0].shape[1]), hidden, num_layers=options.layers, bias=options.biases,
            batch_first=options.batch_first, bidirectional=options.both, **said, **projected,
        )  # fmt: skip
    names = made._flat_weights_names
    if len(names) != len(weights) or any(
        getattr(made, n).shape != w.shape for n, w in zip(names, weights, strict=True)
    ):
        return None
    for name, weight in zip(names, weights, strict=True):
        setattr(made, name, weight)
    made._init_flat_weights()
    return made.eval()


def results(returned: Any) -> tuple[Tensor, ...]:
    """What a module returned as the operator returns it: the output, then the parts of the last state."""
    output, state = returned
    return (output, *(state if isinstance(state, tuple) else (state,)))
