"""LSTM, GRU and RNN of ONNX in torch: torch's own layers where these compute the same, else a loop over steps.

X is (t, b, i). Weights of a direction are W (G·h, i), R (G·h, h), B (2·G·h,): input biases, then recurrent ones. Gates
lie in the order i, o, f, c (LSTM) and z, r, h (GRU); torch has i, f, g, o and r, z, n. Peepholes P (3·h,) are i, o, f.

    LSTM   i = f(x W_i + h R_i + P_i c + b)   f = f(… + P_f c …)   c' = f c + i g(x W_c + h R_c + b)
           o = f(… + P_o c' …)                h' = o h(c')         with input_forget: f = 1 − i
    GRU    z, r = f(x W + h R + b)            h' = (1 − z) ñ + z h
           ñ = g(x W_h + (r h) R_h + b), with linear_before_reset g(x W_h + W_b + r (h R_h + R_b))
    RNN    h' = f(x W + h R + b)

`clip` bounds what every activation is given. At steps behind the length of a sequence the output is 0 and the state
stays. Source: the schemas of LSTM, GRU and RNN, onnx.ai/onnx/operators.

The functions here count as a user's when operations are recorded: gates are named by the variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Function = Callable[[Tensor], Tensor]
State = tuple[Tensor, ...]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True, slots=True)
class Form:
    """How the cells of a node compute.

    Attributes:
        kind: "LSTM", "GRU" or "RNN"; hidden: units of the state.
        clip: the bound of what activations are given, or None.
        input_forget: the forget gate is 1 − the input gate. reset_after: linear_before_reset.
    """

    kind: str
    hidden: int
    clip: float | None = None
    input_forget: bool = False
    reset_after: bool = False


class OnnxCell(nn.Module):
    """One direction, step by step; `W`, `R`, `B` and `P` are its weights as the file has them."""

    B: nn.Parameter | None
    P: nn.Parameter | None

    def __init__(self, form: Form, weights: Sequence[Tensor | None], activations: Sequence[Function]) -> None:
        super().__init__()
        self.form, self.activations = form, tuple(activations)
        for name, value in zip(("W", "R", "B", "P"), (*weights, None)[:4], strict=True):
            self.register_parameter(name, None if value is None else nn.Parameter(value))

    def clipped(self, value: Tensor) -> Tensor:
        """What an activation is given."""
        return value if self.form.clip is None else value.clamp(-self.form.clip, self.form.clip)

    def weight(self, name: str) -> Tensor:
        """One of the weights that are always there."""
        found: Tensor = getattr(self, name)
        return found

    def given(self, x: Tensor) -> Tensor:
        """(t, b, G·h) what inputs give to the gates, with their bias."""
        rows = self.form.hidden * GATES[self.form.kind]
        return x @ self.weight("W").t() if self.B is None else x @ self.weight("W").t() + self.B[:rows]

    def recurrent_bias(self) -> Tensor:
        """(G·h,) the biases of the state; zeros where there are none."""
        rows = self.form.hidden * GATES[self.form.kind]
        return self.weight("R").new_zeros(rows) if self.B is None else self.B[rows:]

    def parts(self, h: Tensor, c: Tensor) -> State:
        """The state before the first step, of the parts that the cell has."""
        return (h, c) if self.form.kind == "LSTM" else (h,)

    def forward(self, x: Tensor, h: Tensor, c: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """x (t, b, i), h and c (b, h), real (t, b) or None → (outputs (t, b, h), the last h, the last c)."""
        if self.form.kind == "LSTM":
            return self.lstm(x, h, c, real)
        return self.gru(x, h, c, real) if self.form.kind == "GRU" else self.rnn(x, h, c, real)

    def lstm(self, x: Tensor, h: Tensor, c: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The steps of an LSTM."""
        f, g, out = self.activations
        recurrent, bias, rows = self.weight("R").t(), self.recurrent_bias(), []
        p_i, p_o, p_f = x.new_zeros(3, self.form.hidden) if self.P is None else self.P.view(3, -1)
        for step, gates in enumerate(self.given(x)):
            pre_i, pre_o, pre_f, pre_c = (gates + h @ recurrent + bias).chunk(4, -1)
            input_gate = f(self.clipped(pre_i + p_i * c))
            forget_gate = 1 - input_gate if self.form.input_forget else f(self.clipped(pre_f + p_f * c))
            candidate = g(self.clipped(pre_c))
            new_c = forget_gate * c + input_gate * candidate
            output_gate = f(self.clipped(pre_o + p_o * new_c))
            new_h = output_gate * out(new_c)
            h = new_h if real is None else torch.where(real[step, :, None], new_h, h)
            c = new_c if real is None else torch.where(real[step, :, None], new_c, c)
            rows.append(h if real is None else h * real[step, :, None])
        return torch.stack(rows), h, c

    def gru(self, x: Tensor, h: Tensor, c: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The steps of a GRU."""
        f, g = self.activations
        n, rows, bias = self.form.hidden, [], self.recurrent_bias()
        of_gates, of_candidate = self.weight("R")[: 2 * n].t(), self.weight("R")[2 * n :].t()
        for step, gates in enumerate(self.given(x)):
            pre_z, pre_r = (gates[:, : 2 * n] + h @ of_gates + bias[: 2 * n]).chunk(2, -1)
            update_gate, reset_gate = f(self.clipped(pre_z)), f(self.clipped(pre_r))
            if self.form.reset_after:
                state = reset_gate * (h @ of_candidate + bias[2 * n :])
            else:
                state = (reset_gate * h) @ of_candidate + bias[2 * n :]
            candidate = g(self.clipped(gates[:, 2 * n :] + state))
            new_h = (1 - update_gate) * candidate + update_gate * h
            h = new_h if real is None else torch.where(real[step, :, None], new_h, h)
            rows.append(h if real is None else h * real[step, :, None])
        return torch.stack(rows), h, c

    def rnn(self, x: Tensor, h: Tensor, c: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The steps of an RNN."""
        (f,) = self.activations
        recurrent, bias, rows = self.weight("R").t(), self.recurrent_bias(), []
        for step, given in enumerate(self.given(x)):
            new_h = f(self.clipped(given + h @ recurrent + bias))
            h = new_h if real is None else torch.where(real[step, :, None], new_h, h)
            rows.append(h if real is None else h * real[step, :, None])
        return torch.stack(rows), h, c


class OnnxRecurrent(nn.Module):
    """A recurrent node: X (t, b, i) → Y (t, d, b, h), Y_h (d, b, h), Y_c (d, b, h)."""

    def __init__(
        self, hidden: int, directions: Sequence[str], fused: nn.RNNBase | None, cells: Sequence[OnnxCell]
    ) -> None:
        super().__init__()
        self.hidden, self.directions = hidden, tuple(directions)
        self.name = "" if fused is None else type(fused).__name__.lower()
        if fused is not None:
            self.add_module(self.name, fused)
        for direction, cell in zip(directions, cells, strict=False):
            self.add_module(f"{direction}_steps", cell)

    def forward(
        self, x: Tensor, lengths: Tensor | None, h: Tensor | None, c: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The initial states are (d, b, h), lengths (b,)."""
        first = x.new_zeros(len(self.directions), x.shape[1], self.hidden)
        h, c = first if h is None else h, first if c is None else c
        whole = lengths is None or bool((lengths == x.shape[0]).all())
        if self.name:
            return self.fused(x, h, c)
        made = [
            self.one(n, x, h[n], c[n], None if whole or lengths is None else lengths)
            for n in range(len(self.directions))
        ]
        outputs, last_h, last_c = zip(*made, strict=True)
        return torch.stack(outputs, 1), torch.stack(last_h), torch.stack(last_c)

    def fused(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """By torch's layer."""
        layer = getattr(self, self.name)
        backward = self.directions == ("reverse",)
        given = x.flip(0) if backward else x
        output, state = layer(given, (h, c) if self.name == "lstm" else h)
        output = output.flip(0) if backward else output
        sides = output.reshape(x.shape[0], x.shape[1], len(self.directions), self.hidden).transpose(1, 2)
        return (sides, *state) if self.name == "lstm" else (sides, state, c)

    def one(self, n: int, x: Tensor, h: Tensor, c: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """One direction by its loop; the backward one reads each sequence from its own end."""
        cell, backward = getattr(self, f"{self.directions[n]}_steps"), self.directions[n] == "reverse"
        if lengths is None:
            outputs, h, c = cell(x.flip(0) if backward else x, h, c, None)
            return (outputs.flip(0) if backward else outputs), h, c
        steps = torch.arange(x.shape[0], device=x.device)[:, None]
        real = steps < lengths
        order = torch.where(real, lengths - 1 - steps, steps)[..., None] if backward else None
        given = x if order is None else x.gather(0, order.expand(x.shape))
        outputs, h, c = cell(given, h, c, real)
        return (outputs if order is None else outputs.gather(0, order.expand(outputs.shape))), h, c


def _affine(alpha: float, beta: float) -> Function:
    return lambda x: alpha * x + beta


ALPHAS = {"LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "ScaledTanh": 1.0, "HardSigmoid": 0.2, "Elu": 1.0, "Affine": 1.0}
BETAS = {"ScaledTanh": 1.0, "HardSigmoid": 0.5, "Affine": 0.0}
"""What the optional numbers of activations are where they are not given."""


def activation(name: str, alpha: float, beta: float) -> Function:
    """An activation by its name in ONNX. Raises KeyError for others."""
    known: dict[str, Function] = {
        "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Relu": torch.relu, "Softsign": F.softsign,
        "Softplus": F.softplus, "Affine": _affine(alpha, beta),
        "LeakyRelu": lambda x: F.leaky_relu(x, alpha),
        "ThresholdedRelu": lambda x: torch.where(x > alpha, x, torch.zeros_like(x)),
        "ScaledTanh": lambda x: alpha * torch.tanh(beta * x),
        "HardSigmoid": lambda x: (alpha * x + beta).clamp(0, 1),
        "Elu": lambda x: F.elu(x, alpha),
    }  # fmt: skip
    return known[name]
