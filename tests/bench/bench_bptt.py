"""All pairs (loss step, source step) by one sweep, against one backward pass a loss and against its bare products."""

from __future__ import annotations

import torch
from harness import Row, interleave
from torch import Tensor, nn

from inspector.engine.emitter import Emitter
from inspector.engine.itemised import sweep
from inspector.engine.quantities.bptt import Items, bptt
from inspector.engine.quantities.gradient_map import gradient_map
from inspector.engine.steps.lstm import LstmStep
from inspector.engine.steps.product import linear
from inspector.engine.trace import Recurrence

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


def one_pass_a_loss(item: Recurrence, module: nn.LSTMCell) -> list[Tensor]:
    """∂ℓ_t/∂h_k for PASSES evenly spaced t, each by a backward pass of its own over one graph of the cell's loop.

    This asks less than the itemised quantity does: the items of the parameters would need a leaf a step besides.
    """
    assert item.arriving is not None
    found, kept = [], []
    with torch.enable_grad():
        state = (torch.zeros(1, H), torch.zeros(1, H))
        for row in item.x:
            state = module(row, state)
            kept.append(state[0])
        for j in range(PASSES):
            t = round((j + 0.5) * T / PASSES)
            loss = (item.arriving[t, :, :H] * kept[t]).sum()
            found.append(torch.stack([g.norm() for g in torch.autograd.grad(loss, kept[: t + 1], retain_graph=True)]))
    return found


def products(fast: bool) -> None:
    """Nothing but the products of the sweep: (n, 4H) (4H, H) for n = 1 … T, by torch.mm or the kernel that is used."""
    rows, weight = torch.randn(T, 4 * H), torch.randn(4 * H, H)
    back = weight.T.contiguous()
    for n in range(1, T + 1):
        if fast:
            linear(rows[:n], back)
        else:
            torch.mm(rows[:n], weight)


def itemise(item: Recurrence) -> None:
    """Maps, sums by lag and totals of every parameter; without the check and the writing."""
    assert item.arriving is not None
    items = Items(T, item.arriving[:, 0])
    for source in sweep(item, 0, Emitter(Nowhere()), ""):
        items.add(source)


def rows() -> list[Row]:
    """LSTM, T = 512, H = 256, one thread; passes are measured for 16 losses and scaled to 512."""
    torch.set_num_threads(1)
    item, module = walk()
    emit = Emitter(Nowhere())
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
                "passes": lambda: one_pass_a_loss(item, module),
            },
            5,
        )
    passes = times["passes"] * T / PASSES
    note = f"{PASSES} passes measured, scaled to {T}"
    where = f"T={T}, H={H}"
    names = {
        "map": "gradient from step to step",
        "items": "itemised BPTT, every parameter",
        "whole": "the same with its check by autograd",
    }
    found = [
        Row(f"{names[key]}, {where}: {T} backward passes / one sweep", times[key], passes, passes / times[key],
            "≥ 40" if key != "whole" else "", note)
        for key in names
    ]  # fmt: skip
    for key in ("map", "items"):
        for how, text, aim in (("mm", "its products by torch.mm", "≤ 1.5"), ("fast", "its products alone", "")):
            ratio = times[key] / times[how]
            found.append(Row(f"{names[key]}, {where}: sweep / {text}", times[key], times[how], ratio, aim))
    return found
