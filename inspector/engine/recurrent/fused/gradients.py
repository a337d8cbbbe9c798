"""Gradients inside a fused module: from what reached its outputs to the total gradient at every state of every layer.

A layer's own gradients are swept back by hand (steps/sweep.py); the gradient of its inputs is what arrives at the
layer below. One sample of it is compared with what autograd finds through torch's fused kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.cells.bptt_sweep import sweep
from inspector.engine.cells.gate_products import resolution
from inspector.engine.recurrent.fused.calls import Segment, Unfolded, flip_each, layer_weights, run_fused
from inspector.engine.recurrent.verification import distance, judge, largest
from inspector.engine.trace.trace import Recurrence

PIECE = 1024
TOGETHER = 16
"""Steps of a piece, and pieces whose graph is held at once: one graph of 100,000 steps took three gigabytes."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """The module with the weights of the call, and the spacing of numbers in its arithmetic."""

    module: nn.RNNBase
    weights: Mapping[str, Tensor]
    unit: float

    def of(self, item: Recurrence) -> list[Tensor]:
        """The weights of one layer in one direction, in the order in which the fused kernels take them."""
        return layer_weights(self.weights, "_l" + item.place.rpartition(".l")[2].replace(".", "_"))


def spread(
    module: nn.RNNBase, weights: Mapping[str, Tensor], layers: list[list[Recurrence]], plain: Unfolded, column: int
) -> tuple[float, float]:
    """Fill `arriving` and `delta` of every layer and direction.

    Calls of a walk are taken one by one, the last first: the gradient of what a call returned is autograd's own and
    holds whatever came later. Returns (largest relative difference from autograd, what is allowed) for one column.
    """
    assert plain.arriving is not None
    walk = _Weights(module, weights, resolution(plain.output.dtype, plain.output.device))
    for item in (item for row in layers for item in row):
        item.arriving = item.states.new_zeros(item.states[1:].shape)
        item.delta = torch.zeros_like(item.arriving)
    pairs: list[tuple[float, float]] = [(0.0, 1.0)]
    flowing: dict[str, Tensor | None] = {}
    for segment in reversed(plain.segments):
        from_above = plain.arriving[segment.start : segment.stop]
        for layer in range(len(layers) - 1, -1, -1):
            parts = from_above.chunk(len(layers[layer]), dim=-1)
            totals = []
            for direction, item in enumerate(layers[layer]):
                number = layer * len(layers[layer]) + direction
                arriving = _arriving(item, parts[direction], plain.ran, segment, number)
                to_input, first, pair = _one_segment(walk, item, arriving, segment, plain.ran, column)
                pairs.append(pair)
                _store(item, arriving, segment, flowing.get(item.place))
                flowing[item.place] = first if segment.connected else None
                totals.append(flip_each(to_input, plain.ran) if item.reverse else to_input)
            from_above = torch.stack(totals).sum(0)
            if plain.masks and layer:
                from_above = from_above * plain.masks[layer - 1][segment.start : segment.stop].to(from_above.dtype)
    worst = judge(pairs)
    return worst.error, worst.allowed


def _arriving(item: Recurrence, at_h: Tensor, ran: Tensor, segment: Segment, number: int) -> Tensor:
    """(t, b, s): the gradient at the outputs, plus that of h_n and c_n at the last step that the kernel ran."""
    steps = segment.stop - segment.start
    arriving = item.states.new_zeros((steps, *item.states.shape[1:]))
    arriving[..., item.cell.parts["h"]] = (flip_each(at_h, ran) if item.reverse else at_h).to(arriving.dtype)
    last = (ran.clamp(max=segment.stop) - segment.start - 1).clamp(min=0)
    for name, gradient in segment.arriving_final.items():
        part = item.cell.parts[name]
        arriving[last, torch.arange(ran.numel()), part] += gradient[number].to(arriving.dtype)
    return arriving


def _one_segment(
    walk: _Weights, item: Recurrence, arriving: Tensor, segment: Segment, ran: Tensor, column: int
) -> tuple[Tensor, Tensor, tuple[float, float]]:
    """Sweep one call: its part of δ is stored; (input gradient, initial state gradient, (error, allowed))."""
    x = item.x[segment.start : segment.stop]
    states = item.states[segment.start : segment.stop + 1]
    delta, to_input, first = sweep(item.cell, x, states, arriving)
    assert item.delta is not None
    item.delta[segment.start : segment.stop] = delta
    steps = int((ran[column].clamp(max=segment.stop) - segment.start).clamp(min=0))
    one = slice(column, column + 1)
    if not steps:
        return to_input, first, (0.0, 1.0)
    here = slice(0, steps)
    swept = (delta[here, one], to_input[here, one], first[one])
    error, moved = _against_autograd(walk, item, x[here, one], states[: steps + 1, one], arriving[here, one], swept)
    return to_input, first, (error, 64 * steps**0.5 * max(walk.unit, moved))


def _store(item: Recurrence, arriving: Tensor, segment: Segment, flowing: Tensor | None) -> None:
    """Keep what arrives from outside: without what flowed back from the next call of the same walk."""
    assert item.arriving is not None
    item.arriving[segment.start : segment.stop] = arriving
    if flowing is not None:
        item.arriving[segment.stop - 1] -= flowing


def _against_autograd(
    walk: _Weights, item: Recurrence, x: Tensor, states: Tensor, arriving: Tensor, swept: tuple[Tensor, Tensor, Tensor]
) -> tuple[float, float]:
    """(relative error of what was swept for one sample, how far the kernel's states were from ours).

    Through torch's fused kernel, piece by piece, several pieces as one batch: each begins with the state it began with
    and is given what was swept at its end; what it sends to its inputs and to the piece before must be what was swept
    there. The last piece is given what arrives from outside, so that all pieces together leave nothing unchecked. A
    network that amplifies differences walks elsewhere when run again; it is then compared as loosely.
    """
    delta, to_input, first = swept
    ends = torch.cat((delta[:-1], arriving[-1:]))
    inputs, moved = torch.empty_like(to_input), 0.0
    begun: list[int] = []
    sent: list[Tensor] = []
    for steps, size in _pieces(len(x)):
        before = states[steps.start : steps.stop : size, 0]
        cut = [_side_by_side(values[steps], size) for values in (x, arriving, ends, states[1:])]
        gradient, back, out = _through_kernel(walk, item, cut[0], before, cut[1], cut[2][-1])
        inputs[steps] = gradient.transpose(0, 1).reshape(inputs[steps].shape)
        begun += range(steps.start, steps.stop, size)
        sent.append(back)
        moved = max(moved, distance(out, cut[3][..., item.cell.parts["h"]]))
    whole, at = torch.cat(sent), torch.tensor(begun)[1:] - 1
    whole[1:] += arriving[at, 0]
    error = _relative(torch.cat((first, delta[at, 0])), whole, largest(delta))
    return max(error, _relative(to_input, inputs, largest(inputs))), moved / max(1.0, largest(states))


def _through_kernel(
    walk: _Weights, item: Recurrence, x: Tensor, before: Tensor, arriving: Tensor, end: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(input gradient (t, b, i), that of the state before (b, s), outputs) by autograd through torch's fused kernel.

    x (t, b, i) from the state `before` (b, s); arriving (t, b, s) reaches h at all steps but the last, `end` (b, s) the
    last state.
    """
    parts = item.cell.parts
    weights = [value.detach().to(before.dtype) for value in walk.of(item)]
    with torch.enable_grad():
        given = x.detach().requires_grad_()
        start = [before[None, :, part].clone().requires_grad_() for part in parts.values()]
        out, *final = run_fused(walk.module, given, start, weights)
        total = (out[:-1] * arriving[:-1, :, parts["h"]]).sum()
        for part, value in zip(parts.values(), final, strict=True):
            total = total + (value[0] * end[:, part]).sum()
        gradient, *back = torch.autograd.grad(total, [given, *start])
    return gradient, torch.cat([value[0] for value in back], dim=-1), out.detach()


def _pieces(length: int) -> Iterator[tuple[slice, int]]:
    """Steps that are worked on together, as pieces of a size: what is left over first, then TOGETHER whole ones."""
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
