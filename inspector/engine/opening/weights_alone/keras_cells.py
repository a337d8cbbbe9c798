"""Recurrent layers of Keras that torch does not have: a reset gate before the product, other activations.

Source: keras.layers.LSTMCell, GRUCell and SimpleRNNCell, their `call`; keras.activations. `hard_sigmoid` is
clip(0.2 x + 0.5, 0, 1) in Keras 2 and relu6(x + 3) / 6 in Keras 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.opening.weights_alone.stacks import Stack

Function = Callable[[Tensor], Tensor]
GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}


def _linear(x: Tensor) -> Tensor:
    return x


def _hard_sigmoid_of_two(x: Tensor) -> Tensor:
    return (0.2 * x + 0.5).clamp(0, 1)


def _hard_sigmoid_of_three(x: Tensor) -> Tensor:
    return torch.nn.functional.relu6(x + 3) / 6


def activation(name: str, keras: str) -> Function:
    """A function by its name in Keras of this version ("2", "3"). Raises KeyError for others."""
    known: dict[str, Function] = {
        "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "linear": _linear,
    }  # fmt: skip
    hard = {"2": _hard_sigmoid_of_two, "3": _hard_sigmoid_of_three}
    return hard[keras] if name == "hard_sigmoid" else known[name]


@dataclass(frozen=True, slots=True)
class KerasStack(Stack):
    """A layer of Keras as it is. `settings`: activation, recurrent_activation, reset_after, and Keras' version."""

    settings: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def module(self, nonlinearity: str = "tanh") -> nn.Module:
        """The layer, sequences first."""
        kinds: dict[str, type[_Layer]] = {"LSTM": KerasLSTM, "GRU": KerasGRU, "SimpleRNN": KerasSimpleRNN}
        return kinds[self.kind](self.width, self.hidden, self.bias, self.settings)

    def told(self) -> str:
        """In words, with its settings."""
        said = ", ".join(f"{key} {value}" for key, value in self.settings.items() if key != "keras")
        return f"{self.place}: {self.kind} of Keras {self.width} → {self.out} ({said})"


class _Layer(nn.Module):
    """The weights of a layer: `kernel` (i, G·u), `recurrent_kernel` (u, G·u), `bias` (G·u,) or (2, G·u)."""

    gates = 1

    def __init__(self, width: int, hidden: int, bias: bool, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.hidden, self.reset_after = hidden, bool(settings.get("reset_after"))
        rows = self.gates * hidden
        self.kernel, self.recurrent_kernel = (nn.Parameter(torch.empty(n, rows)) for n in (width, hidden))
        shape = (2, rows) if self.reset_after else (rows,)
        self.bias = nn.Parameter(torch.empty(shape)) if bias else None
        keras = str(settings.get("keras", ""))
        self.activation = activation(str(settings["activation"]), keras)
        self.recurrent_activation = activation(str(settings.get("recurrent_activation", "linear")), keras)

    def given(self, x: Tensor) -> Tensor:
        """(b, t, G·u) what the inputs give to the gates, with the bias of the input."""
        bias = None if self.bias is None else self.bias[0] if self.reset_after else self.bias
        return x @ self.kernel if bias is None else x @ self.kernel + bias


class KerasSimpleRNN(_Layer):
    """h' = φ(x W + b + h U)."""

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, i) → (b, t, u)."""
        h, rows = x.new_zeros(len(x), self.hidden), []
        for given in self.given(x).unbind(1):
            h = self.activation(given + h @ self.recurrent_kernel)
            rows.append(h)
        return torch.stack(rows, 1)


class KerasLSTM(_Layer):
    """i, f, c, o in this order."""

    gates = 4

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, i) → (b, t, u)."""
        h, c, rows = x.new_zeros(len(x), self.hidden), x.new_zeros(len(x), self.hidden), []
        for given in self.given(x).unbind(1):
            i, f, g, o = (given + h @ self.recurrent_kernel).chunk(4, -1)
            input_gate, forget_gate = self.recurrent_activation(i), self.recurrent_activation(f)
            c = forget_gate * c + input_gate * self.activation(g)
            h = self.recurrent_activation(o) * self.activation(c)
            rows.append(h)
        return torch.stack(rows, 1)


class KerasGRU(_Layer):
    """z, r, h in this order; h' = z h + (1 - z) hh. The reset gate is before the product, or after it."""

    gates = 3

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, i) → (b, t, u)."""
        h, rows, u = x.new_zeros(len(x), self.hidden), [], self.hidden
        of_gates, of_candidate = self.recurrent_kernel[:, : 2 * u], self.recurrent_kernel[:, 2 * u :]
        bias = self.bias[1] if self.bias is not None and self.reset_after else x.new_zeros(3 * u)
        for given in self.given(x).unbind(1):
            z, r = self.recurrent_activation(given[:, : 2 * u] + h @ of_gates + bias[: 2 * u]).chunk(2, -1)
            state = r * (h @ of_candidate + bias[2 * u :]) if self.reset_after else (r * h) @ of_candidate
            h = z * h + (1 - z) * self.activation(given[:, 2 * u :] + state)
            rows.append(h)
        return torch.stack(rows, 1)


def stacks_of(cells: Mapping[str, Mapping[str, Any]], tensors: Mapping[str, Tensor]) -> list[Stack]:
    """The layers that hints say how to run (`contracts.REBUILDING`, `cells`)."""
    found: list[Stack] = []
    for place, said in cells.items():
        names = [f"{place}.{part}" for part in ("kernel", "recurrent_kernel", "bias") if f"{place}.{part}" in tensors]
        if len(names) < 2:
            continue
        kernel = tensors[names[0]]
        settings = {key: value for key, value in said.items() if key != "kind"}
        found.append(
            KerasStack(
                place, str(said["kind"]), int(kernel.shape[0]), int(tensors[names[1]].shape[0]), 0, 1, False,
                len(names) == 3, frozenset(names), settings=settings,
            )
        )  # fmt: skip
    return found
