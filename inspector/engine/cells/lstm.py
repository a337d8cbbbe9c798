"""The long short-term memory as PyTorch computes it, with its state (h, c) and optional projection.

i, f, o = σ(W x + U h + b), g = tanh(W_g x + U_g h + b_g), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'), or W_hr times that.
Reference: Hochreiter & Schmidhuber (1997), with the forget gate of Gers et al. (2000); torch.nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.cells.base import Recomputed
from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.gate_info import GateInfo, MemoryGate, RecurrentWeight
from inspector.engine.cells.gate_products import joined_sums
from inspector.engine.cells.gated_algebra import (
    as_given,
    pre_activations,
    prepare,
)
from inspector.engine.cells.kept_gates import KeptGates, kept_gates
from inspector.engine.cells.lstm_block import LstmBlock, LstmWeights, exposed
from inspector.engine.cells.rounding import ROUNDINGS, absolute_sums
from inspector.engine.cells.torch_family import TorchFamily
from inspector.engine.cells.written import as_written

SOURCE = "Hochreiter & Schmidhuber 1997; Gers et al. 2000"
GATES = (
    GateInfo("gate/input", "input gate i", "i = σ(W_i x + U_i h + b_i)", SOURCE),
    GateInfo("gate/forget", "forget gate f", "f = σ(W_f x + U_f h + b_f), 1 keeps", SOURCE),
    GateInfo("candidate", "candidate g", "g = tanh(W_g x + U_g h + b_g)", SOURCE, (-1, 1)),
    GateInfo("gate/output", "output gate o", "o = σ(W_o x + U_o h + b_o)", SOURCE),
)
WEIGHTS = (("input", "U of gate i"), ("forget", "U of gate f"), ("candidate", "U of g"), ("output", "U of gate o"))

COMPARED = 16
"""Steps of which gates that a kernel kept are compared with the product, evenly spaced."""


class LstmStep(LstmWeights):
    """An LSTM step. Weights (4h, i), (4h, r) in the order i, f, g, o; projection `weight_hr` (r, h) or None."""

    family = "lstm"
    gate_names = tuple(gate.signal for gate in GATES)
    gate_info = GATES
    memory_gate = MemoryGate("gate/forget", True, "gate/input", "c")
    trained: ClassVar[Mapping[str, str]] = {
        "weight_ih": "w_ih",
        "weight_hh": "w_hh",
        "bias": "bias",
        "weight_hr": "w_hr",
    }

    def __init__(
        self,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor | None,
        bias_hh: Tensor | None,
        weight_hr: Tensor | None = None,
        *,
        live: bool = False,
    ) -> None:
        ready = as_given if live else prepare
        w_ih, w_hh = ready(weight_ih), ready(weight_hh)
        assert w_ih is not None and w_hh is not None
        self.w_ih, self.w_hh, self.w_hr = w_ih, w_hh, ready(weight_hr)
        self.b_ih, self.b_hh = ready(bias_ih), ready(bias_hh)
        self.bias = None if live or self.b_ih is None or self.b_hh is None else self.b_ih + self.b_hh
        self.hidden, self.exposed = w_hh.shape[0] // 4, w_hh.shape[1]
        self.parts: Mapping[str, slice] = {
            "h": slice(0, self.exposed),
            "c": slice(self.exposed, self.exposed + self.hidden),
        }

    @as_written
    def equations(self, a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """(h', c') from the pre-activations a (…, 4h) and c (…, h)."""
        i, f, g, o = a.chunk(4, -1)
        input = torch.sigmoid(i)
        forget = torch.sigmoid(f)
        candidate = torch.tanh(g)
        output = torch.sigmoid(o)
        c = forget * c + input * candidate
        h = output * torch.tanh(c)
        if self.w_hr is not None:
            h = h @ self.w_hr.T
        return h, c

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """(h', c') side by side from one step."""
        a = x @ self.w_ih.T + state[..., self.parts["h"]] @ self.w_hh.T
        return torch.cat(self.equations(a if self.bias is None else a + self.bias, state[..., self.parts["c"]]), -1)

    @as_written
    def eager_step(self, x: Tensor, *state: Tensor) -> tuple[Tensor, Tensor]:
        """(h', c') from x and (h, c), on the module's own weights."""
        h, c = state
        return self.equations(F.linear(x, self.w_ih, self.b_ih) + F.linear(h, self.w_hh, self.b_hh), c)

    def shown(self, x: Tensor, memory: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """(o ⊙ tanh(c'), c') at a given c', the gate o from x and h; with a projection W_hr times the first."""
        a = F.linear(x, self.w_ih, self.b_ih) + F.linear(state[0], self.w_hh, self.b_hh)
        h = exposed(torch.sigmoid(a.chunk(4, -1)[3]), memory)
        return (h if self.w_hr is None else h @ self.w_hr.T), memory

    def carry(self, x: Tensor, *state: Tensor) -> tuple[Tensor | None, ...]:
        """None on h, f on c."""
        a = F.linear(x, self.w_ih, self.b_ih) + F.linear(state[0], self.w_hh, self.b_hh)
        return None, torch.sigmoid(a.chunk(4, -1)[1])

    def activate_(self, a: Tensor) -> tuple[Tensor, ...]:
        """The gates i, f, g, o of all steps from their pre-activations (t, b, 4h), which become them in place.

        The first half of `equations` once more, for speed: without it 512 steps would be copied four times over.
        """
        n = self.hidden
        a[..., : 2 * n].sigmoid_()
        a[..., 2 * n : 3 * n].tanh_()
        a[..., 3 * n :].sigmoid_()
        return a.chunk(4, dim=-1)

    def inside(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """i, f, g, o of all steps by the fastest product, from x (t, b, i) and the h before each step (t, b, r)."""
        return self.activate_(joined_sums(x, h, self.w_ih, self.w_hh, self.bias))

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """Input, forget, candidate and output of all steps; of `previous` only h is read, so (t, b, r) is enough."""
        a = pre_activations(x, previous[..., : self.exposed], self.w_ih, self.w_hh, self.bias)
        return dict(zip(self.gate_names, self.activate_(a), strict=True))

    def recompute(
        self, x: Tensor, start: Mapping[str, Tensor], output: Tensor, known: tuple[Tensor, ...] = ()
    ) -> Recomputed:
        """Gates from the h that the module gave; c by the scan c' = f ⊙ c + i ⊙ g, which is stable, as f ≤ 1.

        The gates `known` (t, b, h) are taken where those of some steps prove to be the gates.
        """
        t, b, r = output.shape
        states = output.new_empty(t + 1, b, self.state_size)
        states[0, :, :r], states[1:, :, :r], states[0, :, r:] = start["h"], output, start["c"]
        if not known or not self._are_gates(known, x, states[:-1, :, :r]):
            known = self.inside(x, states[:-1, :, :r])
        i, f, g, o = known
        c = states[1:, :, r:]
        torch.mul(i, g, out=c)
        last = states[0, :, r:]
        for row, keep in zip(c.unbind(0), f.unbind(0), strict=True):
            last = row.addcmul_(keep, last)
        h = exposed(o, c)
        return Recomputed(states, known, h if self.w_hr is None else h @ self.w_hr.T)

    def _are_gates(self, known: tuple[Tensor, ...], x: Tensor, h: Tensor) -> bool:
        """Whether the gates of some steps, the first and the last among them, are those that the product gives."""
        picks = torch.linspace(0, len(x) - 1, min(len(x), COMPARED)).round().long().unique()
        there, before = x[picks], h[picks]
        sums = absolute_sums(there, before, self.w_ih, self.w_hh, self.bias)
        error = ROUNDINGS * torch.finfo(x.dtype).eps * (1 + sums)
        pairs = zip(known, self.inside(there, before), error.chunk(4, -1), strict=True)
        return all(bool(((one[picks] - other).abs() <= bound).all()) for one, other, bound in pairs)

    def rounding_bound(self, x: Tensor, states: Tensor, known: tuple[Tensor, ...], unit: float) -> Mapping[str, Tensor]:
        """σ′ ≤ 1/4 and tanh′ ≤ 1 times the error of the sums; c carries f times the error of the step before."""
        before = states[:-1, :, self.parts["h"]]
        i, f, g, o = known or self.inside(x, before)
        sums = absolute_sums(x, before, self.w_ih, self.w_hh, self.bias)
        e_i, e_f, e_g, e_o = (unit * sums).chunk(4, -1)
        c = states[:, :, self.parts["c"]]
        e_c = e_i / 4 * g.abs() + i * e_g + c[:-1].abs() * e_f / 4 + unit * (c[1:].abs() + 1e-3)
        for t in range(1, e_c.shape[0]):
            e_c[t].addcmul_(f[t], e_c[t - 1])
        squashed = torch.tanh(c[1:]).abs()
        e_h = squashed * e_o / 4 + o * e_c + unit * squashed
        if self.w_hr is not None:
            e_h = (e_h + unit * o * squashed) @ self.w_hr.abs().T
        return {"h": e_h, "c": e_c}

    def recurrent_weights(self) -> list[RecurrentWeight]:
        """U of each gate; with a projection W_hr the state is fed back through U_g W_hr, so those products."""
        parts = zip(WEIGHTS, self.w_hh.chunk(4), strict=True)
        if self.w_hr is None:
            return [RecurrentWeight(*names, part) for names, part in parts]
        return [RecurrentWeight(name, f"{symbol}, times Wₕᵣ", part @ self.w_hr) for (name, symbol), part in parts]

    def feeds_parts(self) -> bool:
        """True where torch computes h from the very c that an LSTMCell returns, which differs between its kernels: on
        the device of the weights."""
        with torch.enable_grad():
            one = torch.ones(1, 1, device=self.w_hh.device, requires_grad=True)
            weight = torch.ones(4, 1, device=self.w_hh.device)
            h, c = torch.lstm_cell(one, (one, one), weight, weight)
            return torch.autograd.grad(h.sum(), c, allow_unused=True)[0] is not None

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> LstmBlock:
        """The steps from `previous` to `following`; `known` are the gates in the order of `gate_names`."""
        block = LstmBlock(self, x, previous, following)
        if known:
            block.gates = dict(zip(self.gate_names, known, strict=True))
        return block


@FAMILIES.register("lstm")
class Lstm(TorchFamily):
    """torch.nn.LSTM and torch.nn.LSTMCell: state (h, c)."""

    summary = "nn.LSTM, nn.LSTMCell: input, forget and output gates around a cell state"
    modules = (nn.LSTM,)
    cells = (nn.LSTMCell,)
    parts = ("h", "c")
    kernels: ClassVar[Mapping[str, Any]] = {"lstm": torch.lstm}
    operations = ("lstm_cell",)

    def kept(self, module: nn.Module, output: Tensor) -> tuple[KeptGates, ...]:
        """The gates in the workspace of oneDNN's kernel."""
        stack = self.stack(module)
        return kept_gates(output, stack.layers, stack.directions)

    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> LstmStep:
        """A step of (w_ih, w_hh, b_ih, b_hh, w_hr)."""
        return LstmStep(*weights, live=live)
