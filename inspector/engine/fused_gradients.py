"""Gradients inside a fused module: from what reached its outputs to the total gradient at every state of every layer.

A layer's own gradients are swept back by hand (steps/sweep.py); the gradient of its inputs is what arrives at the
layer below. One sample of it is compared with what autograd finds through torch's fused kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.fused_calls import Segment, Unfolded, flip_each, layer_weights, run_fused
from inspector.engine.fused_check import distance, judge, largest
from inspector.engine.products import resolution
from inspector.engine.steps.sweep import sweep
from inspector.engine.trace import Recurrence

PIECE = 1024
"""Steps whose graph is held at once: that of 100,000 steps of 64 units took three gigabytes."""


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
    gradient, moved = _by_autograd(walk, item, x[:steps, one], states[: steps + 1, one], arriving[:steps, one])
    allowed = 64 * steps**0.5 * max(walk.unit, moved)
    return to_input, first, (_relative(to_input[:steps, one], gradient), allowed)


def _store(item: Recurrence, arriving: Tensor, segment: Segment, flowing: Tensor | None) -> None:
    """Keep what arrives from outside: without what flowed back from the next call of the same walk."""
    assert item.arriving is not None
    item.arriving[segment.start : segment.stop] = arriving
    if flowing is not None:
        item.arriving[segment.stop - 1] -= flowing


def _by_autograd(walk: _Weights, item: Recurrence, x: Tensor, states: Tensor, arriving: Tensor) -> tuple[Tensor, float]:
    """(input gradient of one sample (t, 1, i) through torch's fused kernel, how far its states were from ours).

    A network that amplifies differences walks elsewhere when run again; its gradients are then compared as loosely.
    Piece by piece from the end, each from the state it began with: the graph of one piece is held at a time.
    """
    h, c = item.cell.parts["h"], item.cell.parts.get("c")
    weights = [value.detach().to(states.dtype) for value in walk.of(item)]
    gradient, moved = torch.zeros_like(x), 0.0
    flowing = torch.zeros_like(states[0])  # of the state at the piece's end, from later pieces
    for first in reversed(range(0, len(x), PIECE)):
        piece = slice(first, min(first + PIECE, len(x)))
        with torch.enable_grad():
            given = x[piece].detach().clone().requires_grad_()
            start = [states[first][None, :, part].clone().requires_grad_() for part in item.cell.parts.values()]
            out = run_fused(walk.module, given, start, weights)
            total = (out[0] * arriving[piece][..., h]).sum() + (out[1][0] * flowing[:, h]).sum()
            if c is not None:  # inside a walk nothing but the step after it reads c
                total = total + (out[2][0] * (flowing[:, c] + arriving[piece.stop - 1, :, c])).sum()
            gradient[piece], *before = torch.autograd.grad(total, [given, *start])
        flowing = torch.cat([value[0] for value in before], dim=-1)
        moved = max(moved, distance(out[0].detach(), states[first + 1 : piece.stop + 1, :, h]))
    return gradient, moved / max(1.0, largest(states))


def _relative(found: Tensor, expected: Tensor) -> float:
    """Largest difference in units of the largest entry; 0 where a gradient is not finite (nothing to compare)."""
    if not bool(torch.isfinite(expected).all()) or not bool(torch.isfinite(found).all()):
        return 0.0
    size = largest(expected)
    return distance(found, expected) / size if size > 0 else largest(found)
