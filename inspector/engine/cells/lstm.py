"""The long short-term memory as PyTorch computes it, with its state (h, c) and optional projection.

i, f, o = σ(W x + U h + b), g = tanh(W_g x + U_g h + b_g), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'), or W_hr times that.
Reference: Hochreiter & Schmidhuber (1997), with the forget gate of Gers et al. (2000); torch.nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.cells.base import Cell, Recomputed
from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.gate_info import GateInfo, MemoryGate, RecurrentWeight
from inspector.engine.cells.gate_products import joined_sums
from inspector.engine.cells.gated_algebra import (
    as_given,
    gate_rows,
    linear_factors,
    pre_activations,
    prepare,
    quadratic,
    row_gram,
    scaled_matrix,
)
from inspector.engine.cells.linear import linear
from inspector.engine.cells.rounding import absolute_sums
from inspector.engine.cells.spread_block import Spread, SpreadBlock
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


class LstmStep(Cell):
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

    @cached_property
    def w_back(self) -> Tensor:
        """U as the backward pass multiplies with it: (r, 4h)."""
        return self.w_hh.T.contiguous()

    @cached_property
    def gram(self) -> Tensor:
        """Row inner products of U_i, U_f, U_g, U_o: (h, 4, 4)."""
        return row_gram(self.w_hh, 4)

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

    def recompute(self, x: Tensor, start: Mapping[str, Tensor], output: Tensor) -> Recomputed:
        """Gates from the h that the module gave; c by the scan c' = f ⊙ c + i ⊙ g, which is stable, as f ≤ 1."""
        t, b, r = output.shape
        states = output.new_empty(t + 1, b, self.state_size)
        states[0, :, :r], states[1:, :, :r], states[0, :, r:] = start["h"], output, start["c"]
        i, f, g, o = known = self.inside(x, states[:-1, :, :r])
        c = states[1:, :, r:]
        torch.mul(i, g, out=c)
        last = states[0, :, r:]
        for row, keep in zip(c.unbind(0), f.unbind(0), strict=True):
            last = row.addcmul_(keep, last)
        h = exposed(o, c)
        return Recomputed(states, known, h if self.w_hr is None else h @ self.w_hr.T)

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


def exposed(o: Tensor, c: Tensor) -> Tensor:
    """o ⊙ tanh(c'), the hidden state before any projection: (…, h)."""
    return o * torch.tanh(c)


class LstmBlock(SpreadBlock):
    """The four blocks of the 2H × 2H step Jacobian:

    ∂c'/∂c = diag(f); ∂c'/∂h = diag(c f(1−f)) U_f + diag(g i(1−i)) U_i + diag(i(1−g²)) U_g;
    ∂h'/∂c = diag(o(1−tanh²c') f); ∂h'/∂h = diag(tanh(c') o(1−o)) U_o + diag(o(1−tanh²c')) ∂c'/∂h.
    """

    cell: LstmStep
    recurrent = "activations"

    def __init__(self, cell: LstmStep, x: Tensor, previous: Tensor, following: Tensor) -> None:
        self.cell, self.x, self.previous, self.following = cell, x, previous, following

    @cached_property
    def gates(self) -> Mapping[str, Tensor]:  # type: ignore[override]
        """Input, forget, candidate, output, (t, b, h) each."""
        return self.cell.gates(self.x, self.previous)

    @cached_property
    def to_cell(self) -> Tensor:
        """Row factors of U_i, U_f, U_g in ∂c'/∂h: (t, b, 3, h)."""
        i, f, g, _ = (self.gates[name] for name in self.cell.gate_names)
        before = self.part("c", self.previous)
        return torch.stack((g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)), dim=2)

    @cached_property
    def to_output(self) -> Tensor:
        """Row factor of U_o in ∂(o tanh c')/∂h, c' held fixed: (t, b, h)."""
        o = self.gates["gate/output"]
        return torch.tanh(self.part("c", self.following)) * o * (1 - o)

    @cached_property
    def leak(self) -> Tensor:
        """k = o (1 − tanh² c'), how a change of c' reaches o tanh(c'): (t, b, h)."""
        squashed = torch.tanh(self.part("c", self.following))
        return self.gates["gate/output"] * (1 - squashed * squashed)

    @property
    def forget(self) -> Tensor:
        """The forget gate, the whole of ∂c'/∂c: (t, b, h)."""
        return self.gates["gate/forget"]

    def jvp(self, v: Tensor) -> Tensor:
        """J v for v (t, b, s, p)."""
        given = v.transpose(2, 3)
        rows = gate_rows(self.cell.w_hh, v[:, :, self.cell.parts["h"]], 4)
        inner = rows[..., :3, :].mul_(self.to_cell[:, :, None]).sum(3)
        dc = inner.addcmul_(self.forget[:, :, None], given[..., self.cell.parts["c"]])
        dh = rows[..., 3, :].mul_(self.to_output[:, :, None]).addcmul_(self.leak[:, :, None], dc)
        return torch.cat((dh if self.cell.w_hr is None else dh @ self.cell.w_hr.T, dc), dim=3).transpose(2, 3)

    def _back(self, u: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """(gradient at the pre-activations (t, b, p, 4·h), gradient at c' (t, b, p, h)) from u (t, b, s, p)."""
        given = u.transpose(2, 3)
        uh = given[..., self.cell.parts["h"]]
        uh = uh if self.cell.w_hr is None else uh @ self.cell.w_hr
        uc = torch.addcmul(given[..., self.cell.parts["c"]], self.leak[at][:, :, None], uh)
        gates = u.new_empty(*uc.shape[:3], 4, self.cell.hidden)
        torch.mul(uc.unsqueeze(3), self.to_cell[at][:, :, None], out=gates[..., :3, :])
        torch.mul(uh, self.to_output[at][:, :, None], out=gates[..., 3, :])
        return gates.flatten(3), uc

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u for u (t, b, s, p)."""
        gates, uc = self._back(u, at)
        before = linear(gates.flatten(0, 2), self.w_back).view(*gates.shape[:3], -1)
        return torch.cat((before, self.forget[at][:, :, None] * uc), dim=3).transpose(2, 3)

    def input_vjp(self, u: Tensor) -> Tensor:
        """W_ihᵀ times the gradient at the pre-activations."""
        return (self._back(u, slice(None))[0] @ self.cell.w_ih).transpose(2, 3)

    def jacobian(self) -> Tensor:
        """J, (t, b, s, s), the four blocks side by side."""
        t, b, s = self.shape
        w, n, h, c = self.cell.w_hh, self.cell.hidden, self.cell.parts["h"], self.cell.parts["c"]
        matrix = w.new_empty(t, b, s, s)
        matrix[..., c].zero_()
        matrix[:, :, c, h] = scaled_matrix(w[: 3 * n], self.to_cell)
        matrix[:, :, c, c].diagonal(dim1=2, dim2=3).copy_(self.forget)
        to_h = scaled_matrix(w, self.through_output)
        if self.cell.w_hr is not None:
            matrix[:, :, h, h] = self.cell.w_hr @ to_h
            matrix[:, :, h, c] = self.cell.w_hr @ torch.diag_embed(self.leak * self.forget)
        else:
            matrix[:, :, h, h] = to_h
            matrix[:, :, h, c].diagonal(dim1=2, dim2=3).copy_(self.leak * self.forget)
        return matrix

    def direct(self) -> Tensor:
        """The carousel: f on c, nothing on h."""
        on_h = self.following.new_zeros((*self.shape[:2], self.cell.exposed))
        return torch.cat((on_h, self.forget), dim=2)

    @property
    def through_output(self) -> Tensor:
        """Row factors of U_i, U_f, U_g, U_o in ∂(o tanh c')/∂h: (t, b, 4, h)."""
        return torch.cat((self.to_cell * self.leak[:, :, None], self.to_output[:, :, None]), dim=2)

    def frobenius(self) -> Tensor:
        """Block by block from row Gram matrices; with a projection the blocks of h' are mixed, so J is built."""
        if self.cell.w_hr is not None:
            built: Tensor = self.jacobian().flatten(2).norm(dim=2)
            return built
        return (self._through_squared() + self.forget.square().sum(-1)).sqrt()

    def through_frobenius(self) -> Tensor:
        """All blocks but the diagonal c → c: they do not overlap with it, so nothing cancels."""
        if self.cell.w_hr is not None:
            return super().through_frobenius()
        return self._through_squared().sqrt()

    def _through_squared(self) -> Tensor:
        below = quadratic(self.cell.gram[:, :3, :3], self.to_cell)
        above = quadratic(self.cell.gram, self.through_output)
        return below + above + (self.leak * self.forget).square().sum(-1)

    @property
    def w_back(self) -> Tensor:
        """U of all gates."""
        return self.cell.w_back

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        """δ of i, f, g from the gradient at c', of o from that at o ⊙ tanh c'; with a projection there is none."""
        if self.cell.w_hr is not None:
            return {}
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        return {"activations": Spread((c, self.to_cell[:, 0]), (h, self.to_output[:, :1]))}

    def hold_fixed_(self, delta: Tensor) -> None:
        """∂L/∂c' without k ⊙ ∂L/∂h', the path through h' = o ⊙ tanh(c')."""
        delta[..., self.cell.parts["c"]] -= self.leak * delta[..., self.cell.parts["h"]]

    def pushed(self, rows: Tensor, at: int) -> Tensor | None:
        """J of rows (n, s): one product with U of all gates; with a projection by no closed form."""
        if self.cell.w_hr is not None:
            return None
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        gates = linear(rows[:, h], self.cell.w_hh).unflatten(1, (4, -1))
        out = torch.empty_like(rows)
        inner = torch.mul(gates[:, 0], self.to_cell[at, 0, 0], out=out[:, c])
        inner.addcmul_(gates[:, 1], self.to_cell[at, 0, 1]).addcmul_(gates[:, 2], self.to_cell[at, 0, 2])
        inner.addcmul_(rows[:, c], self.forget[at, 0])
        torch.mul(gates[:, 3], self.to_output[at, 0], out=out[:, h]).addcmul_(inner, self.leak[at, 0])
        return out

    def open_(self, rows: Tensor, at: int) -> None:
        """The gradient at c' plus the gradient that reaches it through o ⊙ tanh c'."""
        rows[:, self.cell.parts["c"]].addcmul_(rows[:, self.cell.parts["h"]], self.leak[at, 0])

    def close_(self, rows: Tensor, moved: Tensor, at: int) -> None:
        """h from the weights, c through the forget gate."""
        rows[:, self.cell.parts["h"]].copy_(moved)
        rows[:, self.cell.parts["c"]].mul_(self.forget[at, 0])

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """δ of i, f, g, o (n, 4·h), and the gradient at the exposed h' where it is projected (n, r)."""
        if self.cell.w_hr is None:
            return super().pull_(rows, at)
        at_h, at_c = rows[:, self.cell.parts["h"]], rows[:, self.cell.parts["c"]]
        exposed = at_h.clone()
        inner = exposed @ self.cell.w_hr
        at_c.addcmul_(inner, self.leak[at, 0])
        gates = torch.cat((at_c[:, None] * self.to_cell[at, 0], (inner * self.to_output[at, 0])[:, None]), dim=1)
        self.close_(rows, linear(gates.flatten(1), self.w_back), at)
        return {"activations": gates.flatten(1), "exposed": exposed}

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """x for W_ih, h before for W_hh, 1 for the bias, o ⊙ tanh c' for the projection."""
        found = linear_factors(self.cell.bias, self.x, self.part("h", self.previous))
        if self.cell.w_hr is not None:
            found["weight_hr"] = ("exposed", exposed(self.gates["gate/output"], self.part("c", self.following)))
        return found


@FAMILIES.register("lstm")
class Lstm(TorchFamily):
    """torch.nn.LSTM and torch.nn.LSTMCell: state (h, c)."""

    summary = "nn.LSTM, nn.LSTMCell: input, forget and output gates around a cell state"
    modules = (nn.LSTM,)
    cells = (nn.LSTMCell,)
    parts = ("h", "c")
    kernels: ClassVar[Mapping[str, Any]] = {"lstm": torch.lstm}
    operations = ("lstm_cell",)

    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> LstmStep:
        """A step of (w_ih, w_hh, b_ih, b_hh, w_hr)."""
        return LstmStep(*weights, live=live)
