"""Families of cells in one file each, as another package would bring them.

A minimal GRU, a linear state-space layer that never gives its state, and a memory cell with a state of two parts.
"""

from __future__ import annotations

MINIMAL_GRU = '''
"""The minimal gated unit (Zhou et al. 2016): f = σ(W_f x + U_f h), n = tanh(W_n x + U_n (f h)), h' = (1 − f) h + f n."""

import torch
import torch.nn.functional as F
from torch import nn

from inspector.engine.cells.family import FAMILIES, Stack
from inspector.engine.cells.gate_info import GateInfo, MemoryGate, RecurrentWeight
from inspector.engine.cells.function_cell import GenericStep
from inspector.engine.cells.module_family import ModuleFamily


class MinimalGruCell(nn.Module):
    """One step a call: cell(x (b, i), h (b, h) or nothing) -> h'."""

    def __init__(self, width, hidden):
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(2 * hidden, width) / 2), nn.Parameter(torch.randn(2 * hidden, hidden) / 2)
        self.b = nn.Parameter(torch.randn(2 * hidden) / 2)

    def forward(self, input, hx=None):
        h = input.new_zeros(len(input), self.u.shape[1]) if hx is None else hx
        a, c = (input @ self.w.T + self.b).chunk(2, -1)
        u_f, u_n = self.u.chunk(2)
        f = torch.sigmoid(a + h @ u_f.T)
        n = torch.tanh(c + (f * h) @ u_n.T)
        return (1 - f) * h + f * n


class MinimalGru(nn.Module):
    """Whole sequences: layers, directions, (b, t, i)."""

    def __init__(self, width, hidden, layers=1, directions=1):
        super().__init__()
        self.layers, self.directions, self.hidden, self.batch_first = layers, directions, hidden, True
        self.steps = nn.ModuleDict(
            {f"l{n}d{d}": Weights(width if n == 0 else hidden * directions, hidden) for n in range(layers) for d in range(directions)}
        )

    def forward(self, input, hx=None):
        below, last = input, []
        for n in range(self.layers):
            sides = []
            for d in range(self.directions):
                own, out = self.steps[f"l{n}d{d}"], []
                h = below.new_zeros(len(below), self.hidden) if hx is None else hx[n * self.directions + d]
                for x in (below.flip(1) if d else below).unbind(1):
                    h = own(x, h)
                    out.append(h)
                last.append(h)
                out = torch.stack(out, 1)
                sides.append(out.flip(1) if d else out)
            below = torch.cat(sides, -1)
        return below, torch.stack(last)


class Weights(nn.Module):
    """A layer of the module above; no family knows it."""

    def __init__(self, width, hidden):
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(2 * hidden, width) / 2), nn.Parameter(torch.randn(2 * hidden, hidden) / 2)
        self.b = nn.Parameter(torch.randn(2 * hidden) / 2)

    forward = MinimalGruCell.forward


class MinimalGruStep(GenericStep):
    family = "minimal-gru"
    gate_names = ("gate/keep", "candidate")
    gate_info = (GateInfo("gate/keep", "keep gate f", "f = σ(W_f x + U_f h + b_f), 0 keeps", "Zhou et al. 2016"),)
    memory_gate = MemoryGate("gate/keep", high=False)
    trained = {"w": "w", "u": "u", "b": "b"}

    def __init__(self, w, u, b):
        self.w, self.u, self.b = w, u, b
        self.parts = {"h": slice(0, u.shape[1])}

    def eager_step(self, x, *state):
        (h,) = state
        from_input, other = F.linear(x, self.w, self.b).chunk(2, -1)
        u_f, u_n = self.u.chunk(2)
        keep = torch.sigmoid(from_input + h @ u_f.T)
        candidate = torch.tanh(other + (keep * h) @ u_n.T)
        h = (1 - keep) * h + keep * candidate
        return (h,)

    def gates(self, x, previous):
        from_input, other = F.linear(x, self.w, self.b).chunk(2, -1)
        u_f, u_n = self.u.chunk(2)
        keep = torch.sigmoid(from_input + previous @ u_f.T)
        return {"gate/keep": keep, "candidate": torch.tanh(other + (keep * previous) @ u_n.T)}

    def recurrent_weights(self):
        return [RecurrentWeight(name, f"U of {name}", part) for name, part in zip(("keep", "candidate"), self.u.chunk(2))]


@FAMILIES.register("minimal-gru")
class MinimalGruFamily(ModuleFamily):
    summary = "a minimal GRU"
    modules = (MinimalGru,)
    cells = (MinimalGruCell,)

    def stack(self, module):
        return Stack(module.layers, module.directions, batch_first=True)

    def from_module(self, module, weights, layer=0, direction=0):
        start = f"steps.l{layer}d{direction}." if isinstance(module, MinimalGru) else ""
        return MinimalGruStep(*(weights[start + name] for name in "wub"))
'''

STATE_SPACE = '''
"""A linear state-space layer: s' = A s + B x, and it gives y = C s' + D x, never its state."""

import torch
from torch import nn

from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.cells.function_cell import GenericStep
from inspector.engine.cells.module_family import ModuleFamily


class StateSpace(nn.Module):
    """module(x (b, t, i)) -> y (b, t, o)."""

    batch_first = True

    def __init__(self, width, hidden, out):
        super().__init__()
        self.a = nn.Parameter(torch.randn(hidden, hidden) / hidden)
        self.b, self.c = nn.Parameter(torch.randn(hidden, width)), nn.Parameter(torch.randn(out, hidden))
        self.d = nn.Parameter(torch.randn(out, width))

    def forward(self, x):
        s, out = x.new_zeros(len(x), len(self.a)), []
        for row in x.unbind(1):
            s = s @ self.a.T + row @ self.b.T
            out.append(s @ self.c.T + row @ self.d.T)
        return torch.stack(out, 1)


class StateSpaceStep(GenericStep):
    family = "state-space"
    trained = {"A": "a", "B": "b"}

    def __init__(self, a, b, c, d):
        self.a, self.b, self.c, self.d = a, b, c, d
        self.parts = {"h": slice(0, len(a))}

    def eager_step(self, x, *state):
        (h,) = state
        h = h @ self.a.T + x @ self.b.T
        return (h,)

    def emit(self, x, state):
        return state @ self.c.T + x @ self.d.T

    def recurrent_weights(self):
        return [RecurrentWeight("hidden", "A", self.a, 1.0)]


@FAMILIES.register("state-space")
class StateSpaceFamily(ModuleFamily):
    summary = "a linear state-space layer"
    modules = (StateSpace,)

    def from_module(self, module, weights, layer=0, direction=0):
        return StateSpaceStep(*(weights[name] for name in "abcd"))

    def returned(self, module, output, final):
        return output
'''

TWO_PARTS = '''
"""A memory cell: f = σ(W_f x + U_f h), c' = f c + (1 − f) tanh(W_n x + U_n h), h' = tanh(c')."""

import torch
import torch.nn.functional as F
from torch import nn

from inspector.engine.cells.family import FAMILIES
from inspector.engine.cells.gate_info import MemoryGate
from inspector.engine.cells.function_cell import GenericStep
from inspector.engine.cells.module_family import ModuleFamily


class MemoryCell(nn.Module):
    """cell(x (b, i), (h, c) or nothing) -> (h', c')."""

    def __init__(self, width, hidden):
        super().__init__()
        self.w, self.u = nn.Linear(width, 2 * hidden), nn.Linear(hidden, 2 * hidden, bias=False)

    def forward(self, x, state=None):
        zero = x.new_zeros(len(x), self.u.in_features)
        h, c = (zero, zero) if state is None else state
        f, n = (self.w(x) + self.u(h)).chunk(2, -1)
        f = torch.sigmoid(f)
        c = f * c + (1 - f) * torch.tanh(n)
        return torch.tanh(c), c


class Memory(nn.Module):
    """module(x (b, t, i)) -> (h of every step (b, t, h), (h, c) of the last one, (1, b, h) each)."""

    batch_first = True

    def __init__(self, width, hidden):
        super().__init__()
        self.cell = MemoryCell(width, hidden)

    def forward(self, x):
        state, out = None, []
        for row in x.unbind(1):
            state = self.cell(row, state)
            out.append(state[0])
        return torch.stack(out, 1), (state[0][None], state[1][None])


class MemoryStep(GenericStep):
    family = "memory"
    gate_names = ("gate/forget", "candidate")
    memory_gate = MemoryGate("gate/forget", high=True, part="c")
    trained = {"w": "w", "b": "b", "u": "u"}

    def __init__(self, w, b, u):
        self.w, self.b, self.u = w, b, u
        self.parts = {"h": slice(0, u.shape[1]), "c": slice(u.shape[1], 2 * u.shape[1])}

    def eager_step(self, x, *state):
        h, c = state
        f, n = (F.linear(x, self.w, self.b) + F.linear(h, self.u)).chunk(2, -1)
        forget = torch.sigmoid(f)
        candidate = torch.tanh(n)
        c = forget * c + (1 - forget) * candidate
        h = torch.tanh(c)
        return h, c

    def gates(self, x, previous):
        f, n = (F.linear(x, self.w, self.b) + F.linear(previous[..., self.parts["h"]], self.u)).chunk(2, -1)
        return {"gate/forget": torch.sigmoid(f), "candidate": torch.tanh(n)}


@FAMILIES.register("memory")
class MemoryFamily(ModuleFamily):
    summary = "a memory cell with one gate"
    modules = (Memory,)
    cells = (MemoryCell,)
    parts = ("h", "c")

    def from_module(self, module, weights, layer=0, direction=0):
        start = "cell." if isinstance(module, Memory) else ""
        return MemoryStep(*(weights[start + name] for name in ("w.weight", "w.bias", "u.weight")))
'''
