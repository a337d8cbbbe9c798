"""Laying a walk of a fused recurrent module open: layers, directions, states, gates, and the check on them.

Everything here works in the layout (t, b, …); see engine/recurrent/fused/calls.py for how a call gets into it.
Reference for the order of gates and states: torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.cells.base import Cell, Check
from inspector.engine.cells.gate_products import inside, resolution
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.rnn import RnnStep
from inspector.engine.recurrent.fused.calls import (
    UNKNOWN_COLUMN,
    FusedCall,
    Unfolded,
    column_of,
    flip_each,
    layer_weights,
    run_fused,
    unfold,
)
from inspector.engine.recurrent.fused.gradients import spread
from inspector.engine.recurrent.verification import (
    against_bound,
    allowed_error,
    distance,
    judge,
    largest,
    rounding_bound,
)
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import KEPT_BYTES, Recurrence

DROPPED = (
    "Dropout between the layers of {} is active (training mode) and what it dropped cannot be found out afterwards; "
    "run the model in eval mode to see the upper layers and the gradients."
)
OVERWRITTEN = (
    "The model changed the input, the output or the weights of {} in place after the call, so it cannot be shown."
)
CHANGED = "The model changed what {} returned in place, so the gradient that reached it is not known."
UNREPRODUCED = "Some layer of {} could not be reproduced, so gradients cannot be followed through it."
DISAGREEING = (
    "The gradients swept through {} differ from autograd's by {:.3g} of the largest (allowed {:.3g}), so they are "
    "not shown."
)
GRADIENT = "gradient/state_norm"


@dataclass(slots=True)
class Walk:
    """Calls of one module that follow each other: the state that each was given is the one returned before."""

    place: str
    module: nn.RNNBase
    calls: list[FusedCall]

    @property
    def first(self) -> FusedCall:
        """The call that began it; weights and settings are the same for all."""
        return self.calls[0]


def lay_open(walk: Walk, lengths: Tensor, sample: int, emit: Emitter, *, only: bool) -> list[Recurrence]:
    """One Recurrence for every layer and direction, lowest layer first; with `only`, of that sample alone."""
    place = walk.place
    if any(call.overwritten() for call in walk.calls):
        emit.refuse(f"{place}:h", OVERWRITTEN.format(place))
        return []
    whole = unfold(walk.module, walk.calls, lengths)
    columns = whole.x.shape[1]
    column = column_of(sample, lengths.numel(), columns)
    if column is None:
        reason = UNKNOWN_COLUMN.format(place=place, columns=columns, samples=lengths.numel())
        emit.refuse(f"{place}:h", reason)
        return []
    if columns == 1:
        whole.base = sample
    one = only and columns > 1
    plain = whole.one_sample(column, sample) if one else whole
    layers = _layers(walk, plain)
    if one and not _all_passed(layers):  # the kernel rounds otherwise for one row: where that grows, take them all
        again = _layers(walk, whole)
        layers, plain = (again, whole) if _all_passed(again) else (layers, plain)
    if len(layers) < walk.module.num_layers:
        emit.refuse(f"{place}.l{len(layers)}:h", DROPPED.format(place))
    _gradients(walk, layers, plain, column if plain is whole else 0, emit)
    return [recurrence for row in layers for recurrence in row]


def _all_passed(layers: list[list[Recurrence]]) -> bool:
    return all(item.check is not None and item.check.passed for row in layers for item in row)


def _layers(walk: Walk, plain: Unfolded) -> list[list[Recurrence]]:
    """Every layer from below: each one's output is the next one's input. Ends where dropout cannot be redone."""
    module, layers = walk.module, []
    below = plain.x
    for layer in range(module.num_layers):
        if layer and walk.first.dropping and not plain.masks:
            break
        row = [_direction(walk, plain, below, layer, d) for d in range(2 if module.bidirectional else 1)]
        layers.append([item.recurrence for item in row])
        if layer < module.num_layers - 1:
            below = torch.cat([forward_order(item.h, item.recurrence) for item in row], dim=-1)
            below = below * plain.masks[layer] if plain.masks else below
    return layers


def _gradients(walk: Walk, layers: list[list[Recurrence]], plain: Unfolded, column: int, emit: Emitter) -> None:
    """Fill `arriving` and `delta`, or say why not. Without a loss there is nothing to say."""
    if plain.arriving is None or len(layers) < walk.module.num_layers:
        return
    reason = ""
    if any(call.gradients_lost() for call in walk.calls):
        reason = CHANGED.format(walk.place)
    elif not _all_passed(layers):
        reason = UNREPRODUCED.format(walk.place)
    else:
        error, allowed = spread(walk.module, walk.first.weights, layers, plain, column)
        if not error <= allowed:
            reason = DISAGREEING.format(walk.place, error, allowed)
    if reason:
        for item in (item for row in layers for item in row):
            item.arriving = item.delta = None
            if item.check is not None and item.check.passed:
                emit.refuse(f"{item.place}:{GRADIENT}", reason)


@dataclass(slots=True)
class _Opened:
    """A Recurrence and the h part of its states after each step, in processing order."""

    recurrence: Recurrence
    h: Tensor


def class_name(module: nn.Module) -> str:
    """The class as the user wrote it: parametrisations make a subclass of their own."""
    return type(module).__name__.removeprefix("Parametrized")


def make_cell(module: nn.RNNBase, weights: Mapping[str, Tensor], layer: int, reverse: bool) -> Cell:
    """The step of one layer in one direction with the weights that the call used."""
    suffix = f"_l{layer}" + ("_reverse" if reverse else "")
    w_ih, w_hh = weights["weight_ih" + suffix], weights["weight_hh" + suffix]
    b_ih, b_hh = weights.get("bias_ih" + suffix), weights.get("bias_hh" + suffix)
    if isinstance(module, nn.LSTM):
        return LstmStep(w_ih, w_hh, b_ih, b_hh, weights.get("weight_hr" + suffix))
    if isinstance(module, nn.GRU):
        return GruStep(w_ih, w_hh, b_ih, b_hh)
    return RnnStep(w_ih, w_hh, b_ih, b_hh, "relu" if "RELU" in module.mode else "tanh")


def _direction(walk: Walk, plain: Unfolded, below: Tensor, layer: int, direction: int) -> _Opened:
    """One layer in one direction on its input: the module's own output (top layer) or one more fused run of it."""
    module, reverse = walk.module, direction == 1
    directions = 2 if module.bidirectional else 1
    number = layer * directions + direction
    cell = make_cell(module, walk.first.weights, layer, reverse)
    lengths = plain.ran if reverse else plain.lengths
    x = flip_each(below, lengths) if reverse else below
    start = {name: value[number] for name, value in plain.initial.items()}
    if layer == module.num_layers - 1:
        h = plain.output.chunk(directions, dim=-1)[direction]
        h = flip_each(h, lengths) if reverse else h
    else:
        h = _run_layer(walk, layer, direction, x, start)
    dtype = cell_dtype(cell)
    x = x.to(dtype)
    states, known, made = recomputed(cell, x, {name: value.to(dtype) for name, value in start.items()}, h.to(dtype))
    finals = {name: value[number].to(dtype) for name, value in plain.final.items()}
    check = _check(cell, x, states, (known, made), finals, plain.ran, _resolution(walk.first, plain))
    if not isinstance(cell, (LstmStep, GruStep)) or sum(value.nbytes for value in known) > KEPT_BYTES:
        known = ()
    name = f"{walk.place}.l{layer}" + (".reverse" if reverse else "")
    recurrence = Recurrence(
        name, class_name(module), cell, x, states, lengths.clone(), reverse, check, base=plain.base, known=known
    )
    return _Opened(recurrence, h)


def _resolution(call: FusedCall, plain: Unfolded) -> float:
    own = resolution(plain.output.dtype, plain.output.device)
    return own if call.autocast is None else max(own, float(torch.finfo(call.autocast[1]).eps))


def recomputed(cell: Cell, x: Tensor, start: dict[str, Tensor], h: Tensor) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
    """(states (t + 1, b, s), what is inside every step, h of every step recomputed from the h before it)."""
    t, b, r = h.shape
    states = h.new_empty(t + 1, b, cell.state_size)
    states[0, :, :r], states[1:, :, :r] = start["h"], h
    before = states[:-1, :, :r]
    known = inside(cell, x, before)
    if isinstance(cell, LstmStep):
        i, f, g, o = known
        c = states[1:, :, r:]
        states[0, :, r:] = start["c"]
        torch.mul(i, g, out=c)
        last = states[0, :, r:]
        for row, keep in zip(c.unbind(0), f.unbind(0), strict=True):
            last = row.addcmul_(keep, last)
        return states, known, cell.exposed_state({"gate/output": o}, c)
    return states, known, torch.lerp(known[2], before, known[1]) if isinstance(cell, GruStep) else known[0]


def _check(
    cell: Cell,
    x: Tensor,
    states: Tensor,
    found: tuple[tuple[Tensor, ...], Tensor],
    finals: dict[str, Tensor],
    ran: Tensor,
    unit: float,
) -> Check:
    """Every step that the kernel ran against the recomputation, and the last states against those returned.

    The plain tolerance is some roundings of the largest state; where that is not enough, a running error bound
    (large weights, wide layers, an LSTM's c over very many steps).
    """
    known, made = found
    h = states[1:, :, cell.parts["h"]]
    real = torch.arange(h.shape[0])[:, None] < ran
    every = bool(real.all())
    size = largest(states if every else states[1:][real])
    allowed = allowed_error(unit, size)
    last = states[ran, torch.arange(ran.numel())]
    steps = max(1, h.shape[0]) ** 0.5
    ends = {name: distance(last[:, cell.parts[name]], final) for name, final in finals.items()}
    pairs = [(distance(made, h) if every else distance(made[real], h[real]), allowed)]
    pairs += [(error, allowed * steps) for error in ends.values()]
    if judge(pairs).passed or not real.any():
        return judge(pairs)
    bound_h, bound_c = rounding_bound(cell, x, states, known, unit)
    pairs = [against_bound(made, h, bound_h, real), (ends["h"], allowed * steps)]
    if bound_c is not None:
        at = (ran - 1).clamp(min=0), torch.arange(ran.numel())
        final, computed = finals["c"][None], last[None, :, cell.parts["c"]]
        pairs.append(against_bound(computed, final, bound_c[at][None], (ran > 0)[None]))
    return judge(pairs)


def cell_dtype(cell: Cell) -> torch.dtype:
    """The dtype in which a cell computes."""
    assert isinstance(cell, (LstmStep, GruStep, RnnStep))
    return cell.w_hh.dtype


def forward_order(values: Tensor, recurrence: Recurrence) -> Tensor:
    """Values in processing order brought back to sequence order."""
    return flip_each(values, recurrence.lengths) if recurrence.reverse else values


def _run_layer(walk: Walk, layer: int, direction: int, x: Tensor, start: dict[str, Tensor]) -> Tensor:
    """h of one layer in one direction, by torch's own fused kernel with the weights of the call: (t, b, h)."""
    call = walk.first
    weights = layer_weights(call.weights, f"_l{layer}" + ("_reverse" if direction else ""))
    states = [value[None].contiguous() for value in start.values()]
    same = torch.autocast(*call.autocast) if call.autocast is not None else nullcontext()
    with same:
        return run_fused(walk.module, x.contiguous(), states, weights)[0]
