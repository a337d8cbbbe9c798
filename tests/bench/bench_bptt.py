"""All pairs (loss step, source step) by one sweep, against one backward pass a loss and against its bare products."""

from __future__ import annotations

import torch
from harness import Row, interleave
from torch import Tensor, nn

from inspector.engine.cells.linear import linear
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.quantities.gradient.bptt import PROBES, bptt, itemised
from inspector.engine.quantities.gradient.gradient_map import gradient_map
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence

T, H, PASSES = 512, 256, 16


class Nowhere:
    """A sink that forgets."""

    def write(self, record: object) -> None:
        """Forget."""


def walk() -> tuple[Recurrence, nn.LSTMCell]:
    """An LSTM over T random inputs with a gradient at every h, float32; its gates are known from the capture."""
    torch.manual_seed(0)
    module = nn.LSTMCell(H, H)
    cell = LstmStep(module.weight_ih, module.weight_hh, module.bias_ih, module.bias_hh)
    x, states = torch.randn(T, 1, H), [torch.zeros(1, 2 * H)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    arriving = torch.zeros(T, 1, 2 * H)
    arriving[..., :H] = torch.randn(T, 1, H)
    return Recurrence("p", "LSTM", cell, x, torch.stack(states), torch.tensor([T]), arriving=arriving), module


class Unrolled:
    """The graph of T steps, built once; `states` and `activations` are what gradients are asked for."""

    def __init__(self, item: Recurrence, module: nn.LSTMCell) -> None:
        self.item = item
        self.states: list[Tensor] = []
        self.activations: list[Tensor] = []
        with torch.enable_grad():
            state = (torch.zeros(1, H), torch.zeros(1, H))
            for row in item.x:
                state = module(row, state)
                self.states.append(state[0])
            h, c = torch.zeros(1, H), torch.zeros(1, H)
            self.by_hand: list[Tensor] = []
            for row in item.x:
                a = row @ module.weight_ih.T + h @ module.weight_hh.T + module.bias_ih + module.bias_hh
                i, f, g, o = a.chunk(4, -1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
                self.activations.append(a)
                self.by_hand.append(h)

    def passes(self, outputs: list[Tensor], inputs: list[Tensor], weights: tuple[Tensor, ...] = ()) -> list[Tensor]:
        """Norms of the gradients of PASSES evenly spaced losses, each by a backward pass of its own."""
        assert self.item.arriving is not None
        found = []
        for j in range(PASSES):
            t = round((j + 0.5) * T / PASSES)
            given = self.item.arriving[t, :, :H]
            gradients = torch.autograd.grad(outputs[t], [*inputs[: t + 1], *weights], given, retain_graph=True)
            found.append(torch.cat(gradients[: t + 1]).norm(dim=1))
        return found


def products(fast: bool) -> None:
    """Nothing but the products of a plain sweep: (n, 4H) (4H, H) for n = 1 … T, by torch.mm or the fastest kernel."""
    rows, weight = torch.randn(T, 4 * H), torch.randn(4 * H, H)
    back = weight.T.contiguous()
    for n in range(1, T + 1):
        if fast:
            linear(rows[:n], back)
        else:
            torch.mm(rows[:n], weight)


def folded_products(more: int) -> None:
    """The products as the sweep makes them, the four gates folded to one matrix: (n, 2H) (2H, H + probes)."""
    rows, back = torch.randn(T, 2 * H), torch.randn(H + more, 2 * H)
    for n in range(1, T + 1):
        linear(rows[:n], back)


def itemise(item: Recurrence) -> None:
    """Maps, sums by lag and totals of every parameter; without the check and the writing."""
    itemised(item, 0, Emitter(Nowhere()), "")


def rows() -> list[Row]:
    """LSTM, T = 512, H = 256, one thread; 16 passes are measured and scaled to 512.

    A pass asks for the gradient of every state, with or without those of the weights (as loss.backward() does), or of
    every pre-activation, from which the items of the weights follow.
    """
    torch.set_num_threads(1)
    item, module = walk()
    emit, graph = Emitter(Nowhere()), Unrolled(item, module)
    assert bptt.function is not None and gradient_map.function is not None
    whole, lag_map = bptt.function, gradient_map.function
    with torch.no_grad():
        times = interleave(
            {
                "items": lambda: itemise(item),
                "whole": lambda: whole(item, emit, 0),
                "map": lambda: lag_map(item, emit, 0),
                "mm": lambda: products(False),
                "fast": lambda: products(True),
                "folded map": lambda: folded_products(0),
                "folded items": lambda: folded_products(PROBES),
                "to states": lambda: graph.passes(graph.states, graph.states),
                "to states and weights": lambda: graph.passes(graph.states, graph.states, tuple(module.parameters())),
                "to activations": lambda: graph.passes(graph.by_hand, graph.activations),
            },
            5,
        )
    where, note = f"T={T}, H={H}", f"{PASSES} passes measured, scaled to {T}"
    names = {"map": "gradient from step to step", "items": "itemised BPTT", "whole": "itemised BPTT with its check"}
    found = []
    for key, peer, aim in (
        ("map", "to states", ""),
        ("map", "to states and weights", "≥ 40"),
        ("items", "to activations", ""),
        ("items", "to states and weights", "≥ 40"),
        ("whole", "to activations", ""),
    ):
        passes = times[peer] * T / PASSES
        what = f"{names[key]}, {where}: {T} backward passes {peer} / one sweep"
        found.append(Row(what, times[key], passes, passes / times[key], aim, note))
    for key in ("map", "items"):
        for how, text, aim in (
            ("mm", "bare products of a plain sweep, torch.mm", "≤ 1.5"),
            ("fast", "bare products of a plain sweep, fastest kernel", "≤ 1.5"),
            (f"folded {key}", "its own bare products, gates folded", ""),
        ):
            what = f"{names[key]}, {where}: sweep / {text}"
            found.append(Row(what, times[key], times[how], times[key] / times[how], aim))
    return found
