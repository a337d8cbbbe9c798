"""Gradients inside a fused module: from the gradients at its outputs to the total gradient at every state of every
layer.

A layer's own gradients are computed in closed form (cells/bptt_sweep.py); the gradient of its inputs is what arrives at
the layer below. One sample is compared with autograd through torch's fused kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.cells.bptt_sweep import sweep
from inspector.engine.cells.family import CellFamily
from inspector.engine.recurrent.fused.calls import Segment, Unfolded, flip_each
from inspector.engine.recurrent.verification import distance, judge, largest
from inspector.engine.trace.trace import Recurrence

PIECE = 1024
TOGETHER = 16
"""Steps of a piece, and pieces whose graph is in memory at once: one graph of 100,000 steps took three gigabytes."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer in one direction: its recurrence, its weights as its family's `run` takes them, its number among all.

    `unit` is the spacing of numbers in the module's arithmetic.
    """

    family: CellFamily
    module: nn.Module
    item: Recurrence
    weights: list[Tensor]
    number: int
    unit: float


def spread(
    family: CellFamily,
    module: nn.Module,
    weights: Mapping[str, Tensor],
    layers: list[list[Recurrence]],
    plain: Unfolded,
    column: int | None,
    unit: float,
) -> tuple[float, float]:
    """Fill `arriving` and `delta` of every layer and direction.

    Calls of a chain are taken one by one, the last first: the gradient of a call's outputs is autograd's own and
    includes everything after the call. `unit` is the spacing of numbers in the module's arithmetic. Returns (largest
    relative difference from autograd, what is allowed) for one column, (0, 1) where that is None.
    """
    assert plain.arriving is not None
    every = _begun(family, module, weights, layers, unit)
    pairs: list[tuple[float, float]] = [(0.0, 1.0)]
    flowing: dict[str, Tensor | None] = {}
    for segment in reversed(plain.segments):
        from_above = plain.arriving[segment.start : segment.stop]
        for layer in range(len(layers) - 1, -1, -1):
            totals = []
            for one, part in zip(every[layer], from_above.chunk(len(layers[layer]), dim=-1), strict=True):
                item = one.item
                arriving, past = _arriving(one, part, plain.ran, segment)
                to_input, first, pair = _one_segment(one, arriving, segment, plain.ran, column, below=layer > 0)
                pairs.append(pair)
                _store(item, arriving, segment, flowing.get(item.place))
                flowing[item.place] = _passed_on(item, first, segment)
                if to_input is not None:
                    to_input = to_input if past is None else to_input + past
                    totals.append(flip_each(to_input, plain.ran) if item.reverse else to_input)
            if not layer:
                break  # nothing of this module lies below
            from_above = torch.stack(totals).sum(0)
            if plain.masks:
                from_above = from_above * plain.masks[layer - 1][segment.start : segment.stop].to(from_above.dtype)
    worst = judge(pairs)
    return worst.error, worst.allowed


def _begun(
    family: CellFamily, module: nn.Module, weights: Mapping[str, Tensor], layers: list[list[Recurrence]], unit: float
) -> list[list[_Layer]]:
    """Layers and directions with their weights, and with gradients that are zero so far."""
    for item in (item for row in layers for item in row):
        item.arriving = item.states.new_zeros(item.states[1:].shape)
        item.delta = torch.zeros_like(item.arriving)
    return [
        [
            _Layer(family, module, item, family.layer_weights(weights, layer, d), layer * len(row) + d, unit)
            for d, item in enumerate(row)
        ]
        for layer, row in enumerate(layers)
    ]


def _arriving(one: _Layer, given: Tensor, ran: Tensor, segment: Segment) -> tuple[Tensor, Tensor | None]:
    """(gradient at the states (t, b, s), gradient at the inputs that does not pass through the states (t, b, i) or
    None).

    That is the gradient at the outputs, and that of the last state at the last step that the kernel ran.
    """
    item = one.item
    given = flip_each(given, ran) if item.reverse else given
    here = slice(segment.start, segment.stop)
    arriving, past = item.cell.emitted_vjp(item.x[here], item.states[1:][here], given)
    last = (ran.clamp(max=segment.stop) - segment.start - 1).clamp(min=0)
    for name, gradient in segment.arriving_final.items():
        part = item.cell.parts[name]
        arriving[last, torch.arange(ran.numel()), part] += gradient[one.number].to(arriving.dtype)
    return arriving, past


def _one_segment(
    one: _Layer, arriving: Tensor, segment: Segment, ran: Tensor, column: int | None, *, below: bool
) -> tuple[Tensor | None, Tensor, tuple[float, float]]:
    """Sweep one call: its part of δ is stored; (input gradient, initial state gradient, (error, allowed)).

    The input gradient is None where neither a layer `below` nor the comparison with autograd needs it.
    """
    item = one.item
    x = item.x[segment.start : segment.stop]
    states = item.states[segment.start : segment.stop + 1]
    alone = states.shape[1] == 1
    block = item.cell.block(x, states[:-1], states[1:]) if alone else item.all_samples(segment.start, segment.stop)
    delta, to_input, first = sweep(block, arriving, inputs=below or column is not None)
    assert item.delta is not None
    item.delta[segment.start : segment.stop] = delta
    if column is None:
        return to_input, first, (0.0, 1.0)
    steps = int((ran[column].clamp(max=segment.stop) - segment.start).clamp(min=0))
    only = slice(column, column + 1)
    if not steps:
        return to_input, first, (0.0, 1.0)
    here = slice(0, steps)
    assert to_input is not None
    swept = (delta[here, only], to_input[here, only], first[only])
    error, moved = _against_autograd(one, x[here, only], states[: steps + 1, only], arriving[here, only], swept)
    return to_input, first, (error, 64 * steps**0.5 * max(one.unit, moved))


def _passed_on(item: Recurrence, first: Tensor, segment: Segment) -> Tensor | None:
    """The gradient (b, s) that flows from a call's initial state into the call before, None at the first call.

    Parts that were detached have none; the recurrence notes that it is cut there.
    """
    if not segment.start:
        return None
    joined = first.new_zeros(first.shape[1])
    for name in segment.connected:
        joined[item.cell.parts[name]] = 1
    if not bool(joined.all()):
        item.cuts[segment.start] = joined
    return torch.where(joined > 0, first, torch.zeros_like(first))


def _store(item: Recurrence, arriving: Tensor, segment: Segment, flowing: Tensor | None) -> None:
    """Store the gradient that arrives from outside: without the part from the next call of the same chain."""
    assert item.arriving is not None
    item.arriving[segment.start : segment.stop] = arriving
    if flowing is not None:
        item.arriving[segment.stop - 1] -= flowing


def _against_autograd(
    one: _Layer, x: Tensor, states: Tensor, arriving: Tensor, swept: tuple[Tensor, Tensor, Tensor]
) -> tuple[float, float]:
    """(relative error of the swept gradients of one sample, how far the kernel's states were from the recomputed ones).

    Through torch's fused kernel (or the family's own `run`), piece by piece, several pieces as one batch: each begins
    with its recorded state and gets the swept gradient at its end; the gradients at its inputs and at the piece before
    must equal the swept ones. The last piece gets the gradient from outside, so that all pieces together check
    everything. A network that amplifies differences diverges when run again; the tolerance is then as much larger.
    """
    delta, to_input, first = swept
    ends = torch.cat((delta[:-1], arriving[-1:]))
    inputs, moved = torch.empty_like(to_input), 0.0
    begun: list[int] = []
    sent: list[Tensor] = []
    for steps, size in _pieces(len(x)):
        before = states[steps.start : steps.stop : size, 0]
        cut = [_side_by_side(values[steps], size) for values in (x, arriving, ends, states[1:])]
        gradient, back, out = _through_kernel(one, cut[0], before, cut[1], cut[2][-1])
        inputs[steps] = gradient.transpose(0, 1).reshape(inputs[steps].shape)
        begun += range(steps.start, steps.stop, size)
        sent.append(back)
        moved = max(moved, distance(out, cut[3][..., : out.shape[2]]))
    whole, at = torch.cat(sent), torch.tensor(begun)[1:] - 1
    whole[1:] += arriving[at, 0]
    error = _relative(torch.cat((first, delta[at, 0])), whole, largest(delta))
    return max(error, _relative(to_input, inputs, largest(inputs))), moved / max(1.0, largest(states))


def _through_kernel(
    one: _Layer, x: Tensor, before: Tensor, arriving: Tensor, end: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """By autograd through `run`: (input gradient (t, b, i), that of the state before (b, s), leading state entries).

    x (t, b, i) from the state `before` (b, s); arriving (t, b, s) reaches the states at all steps but the last, `end`
    (b, s) the last state.
    """
    cell = one.item.cell
    weights = [value.detach().to(before.dtype) for value in one.weights]
    with torch.enable_grad():
        given = x.detach().requires_grad_()
        start = [before[:, part].clone().requires_grad_() for part in cell.parts.values()]
        out, *final = one.family.run(one.module, cell, weights, given, start)
        total = (out[:-1] * arriving[:-1, :, : out.shape[2]]).sum()
        for part, value in zip(cell.parts.values(), final, strict=True):
            total = total + (value * end[:, part]).sum()
        gradient, *back = torch.autograd.grad(total, [given, *start], allow_unused=True, materialize_grads=True)
    return gradient, torch.cat(back, dim=-1), out.detach()


def _pieces(length: int) -> Iterator[tuple[slice, int]]:
    """Steps that are processed together, as pieces of a size: the remainder first, then TOGETHER whole ones."""
    over = length % PIECE
    if over:
        yield slice(0, over), over
    for start in range(over, length, PIECE * TOGETHER):
        yield slice(start, min(start + PIECE * TOGETHER, length)), PIECE


def _side_by_side(values: Tensor, size: int) -> Tensor:
    """(n · size, 1, …) of one sample as n samples (size, n, …), a copy."""
    pieces = values[:, 0].reshape(-1, size, values.shape[2])
    return pieces.transpose(0, 1).clone(memory_format=torch.contiguous_format)


def _relative(found: Tensor, expected: Tensor, size: float) -> float:
    """Largest difference in units of `size`; 0 where a gradient is not finite (nothing to compare)."""
    if not bool(torch.isfinite(expected).all()) or not bool(torch.isfinite(found).all()):
        return 0.0
    return distance(found, expected) / size if size > 0 else largest(found)
