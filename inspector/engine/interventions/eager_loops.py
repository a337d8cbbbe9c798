"""torch's own recurrent modules written out as loops, so that a value in the middle of a step can be changed.

Only edited runs use them: what is changed inside a fused kernel cannot be seen outside it. The recorder treats this
file as a user's code; its local names are the names of the channels.
Reference of the equations: torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from inspector.engine.errors import InputError

WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


@dataclass(eq=False)
class Layer:
    """One layer in one direction, or one cell: its place and its weights; `relu` of a plain RNN."""

    place: str
    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    w_hr: Any = None
    relu: bool = False


def lstm(self: Layer, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """x (t, b, i) → outputs (t, b, h) and the last (h, c)."""
    out = []
    for x_t in x.unbind(0):
        i, f, g, o = (
            nn.functional.linear(x_t, self.w_ih, self.b_ih) + nn.functional.linear(h, self.w_hh, self.b_hh)
        ).chunk(4, -1)
        input = torch.sigmoid(i)
        forget = torch.sigmoid(f)
        candidate = torch.tanh(g)
        output = torch.sigmoid(o)
        c = forget * c + input * candidate
        h = output * torch.tanh(c) if self.w_hr is None else (output * torch.tanh(c)) @ self.w_hr.T
        out.append(h)
    return torch.stack(out), (h, c)


def gru(self: Layer, x: Tensor, h: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """x (t, b, i) → outputs (t, b, h) and the last (h,)."""
    out = []
    for x_t in x.unbind(0):
        xr, xz, xn = nn.functional.linear(x_t, self.w_ih, self.b_ih).chunk(3, -1)
        hr, hz, hn = nn.functional.linear(h, self.w_hh, self.b_hh).chunk(3, -1)
        reset = torch.sigmoid(xr + hr)
        update = torch.sigmoid(xz + hz)
        candidate = torch.tanh(xn + reset * hn)
        h = (1 - update) * candidate + update * h
        out.append(h)
    return torch.stack(out), (h,)


def rnn(self: Layer, x: Tensor, h: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """x (t, b, i) → outputs (t, b, h) and the last (h,)."""
    out = []
    for x_t in x.unbind(0):
        a = nn.functional.linear(x_t, self.w_ih, self.b_ih) + nn.functional.linear(h, self.w_hh, self.b_hh)
        h = torch.relu(a) if self.relu else torch.tanh(a)
        out.append(h)
    return torch.stack(out), (h,)


def layers_of(module: nn.RNNBase, place: str) -> list[list[Layer]]:
    """Layers from below, each with its directions."""
    found = []
    for layer in range(module.num_layers):
        row = []
        for direction in range(2 if module.bidirectional else 1):
            suffix = f"_l{layer}" + ("_reverse" if direction else "")
            w_ih, w_hh, b_ih, b_hh, w_hr = (getattr(module, kind + suffix, None) for kind in WEIGHTS)
            where = f"{place}.l{layer}" + (".reverse" if direction else "")
            row.append(Layer(where, w_ih, w_hh, b_ih, b_hh, w_hr, module.mode == "RNN_RELU"))
        found.append(row)
    return found


def forward_of(module: nn.RNNBase, layers: list[list[Layer]]) -> Callable[..., Any]:
    """What to put in the place of the module's forward."""
    steps: dict[str, Callable[..., tuple[Tensor, tuple[Tensor, ...]]]] = {"LSTM": lstm, "GRU": gru}
    step = steps.get(module.mode, rnn)

    def forward(given: Any, hx: Any = None) -> Any:
        packed = isinstance(given, PackedSequence)
        if packed and int(given.batch_sizes[0]) > 1:
            raise InputError("Packed sequences of a batch cannot be edited; run one sequence alone.")
        if packed:
            sizes, rows = given.batch_sizes, given.data
            given = rows[None] if module.batch_first else rows[:, None]
        batched = given.dim() == 3
        x = given if batched else given[:, None] if not module.batch_first else given[None]
        x = x.transpose(0, 1) if module.batch_first else x
        parts = () if hx is None else hx if isinstance(hx, tuple) else (hx,)
        if not batched:
            parts = tuple(part[:, None] for part in parts)
        finals: list[tuple[Tensor, ...]] = []
        for n, row in enumerate(layers):
            if n and module.dropout and module.training:
                x = nn.functional.dropout(x, module.dropout, True)
            sides = []
            for d, layer in enumerate(row):
                first = _first(module, layer, x, [part[n * len(row) + d] for part in parts])
                out, final = step(layer, x.flip(0) if d else x, *first)
                sides.append(out.flip(0) if d else out)
                finals.append(final)
            x = torch.cat(sides, -1) if len(sides) > 1 else sides[0]
        last = tuple(torch.stack(values) for values in zip(*finals, strict=True))
        x = x.transpose(0, 1) if module.batch_first else x
        if packed:
            x = PackedSequence(x.reshape(-1, x.shape[-1]), sizes)
        if not batched:
            x, last = x.squeeze(0 if module.batch_first else 1), tuple(part[:, 0] for part in last)
        return x, last if module.mode == "LSTM" else last[0]

    return forward


def _first(module: nn.RNNBase, layer: Layer, x: Tensor, given: list[Tensor]) -> list[Tensor]:
    if given:
        return given
    widths = [module.proj_size or module.hidden_size] + [module.hidden_size] * (module.mode == "LSTM")
    return [x.new_zeros(x.shape[1], width) for width in widths]


def cell_forward_of(module: nn.RNNCellBase, place: str) -> tuple[Callable[..., Any], Layer]:
    """The same for a cell, and its layer."""
    relu = getattr(module, "nonlinearity", "") == "relu"
    layer = Layer(place, module.weight_ih, module.weight_hh, module.bias_ih, module.bias_hh, None, relu)

    def forward(given: Tensor, hx: Any = None) -> Any:
        self = layer
        if hx is None:
            zero = given.new_zeros(*given.shape[:-1], module.hidden_size)
            hx = (zero, zero) if isinstance(module, nn.LSTMCell) else zero
        x_h = nn.functional.linear(given, self.w_ih, self.b_ih)
        if isinstance(module, nn.LSTMCell):
            i, f, g, o = (x_h + nn.functional.linear(hx[0], self.w_hh, self.b_hh)).chunk(4, -1)
            input = torch.sigmoid(i)
            forget = torch.sigmoid(f)
            candidate = torch.tanh(g)
            output = torch.sigmoid(o)
            c = forget * hx[1] + input * candidate
            h = output * torch.tanh(c)
            return h, c
        u_h = nn.functional.linear(hx, self.w_hh, self.b_hh)
        if isinstance(module, nn.GRUCell):
            xr, xz, xn = x_h.chunk(3, -1)
            hr, hz, hn = u_h.chunk(3, -1)
            reset = torch.sigmoid(xr + hr)
            update = torch.sigmoid(xz + hz)
            candidate = torch.tanh(xn + reset * hn)
            h = (1 - update) * candidate + update * hx
            return h
        h = torch.relu(x_h + u_h) if self.relu else torch.tanh(x_h + u_h)
        return h

    return forward, layer
