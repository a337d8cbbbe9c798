"""Unpacks a chain of calls of a fused recurrent module: layers, directions, states, gates, and the check on them.

Everything here works in the layout (t, b, …); see `calls.py` for how a call gets into it. What differs from one family
of cells to the next is in its own file (engine/cells/).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from inspector.engine.cells.base import Cell, Recomputed
from inspector.engine.cells.check import Check
from inspector.engine.cells.family import CellFamily, Stack
from inspector.engine.cells.gate_products import resolution
from inspector.engine.cells.module_family import model_weights
from inspector.engine.cells.rounding import ROUNDINGS
from inspector.engine.recurrent.fused.calls import UNKNOWN_COLUMN, FusedCall, Unfolded, column_of, flip_each, unfold
from inspector.engine.recurrent.fused.gradients import spread
from inspector.engine.recurrent.verification import against_bound, allowed_error, distance, judge, largest
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.time_major import across
from inspector.engine.trace.trace import KEPT_BYTES, Recurrence

DROPPED = (
    "Dropout between the layers of {} is active (training mode) and what it dropped cannot be determined afterwards; "
    "run the model in eval mode to see the upper layers and the gradients."
)
OVERWRITTEN = (
    "The model changed the input, the output or the weights of {} in place after the call, so it cannot be shown."
)
CHANGED = "The model changed what {} returned in place, so the gradient that reached it is not known."
UNREPRODUCED = "Some layer of {} could not be reproduced, so gradients cannot be followed through it."
DISAGREEING = (
    "The gradients computed through {} differ from autograd's by {:.3g} of the largest (allowed {:.3g}), so they are "
    "not shown."
)
GRADIENT = "gradient/state_norm"


@dataclass(slots=True)
class CallChain:
    """Calls of one module that follow each other: the state that each was given is the one returned before."""

    place: str
    module: nn.Module
    family: CellFamily
    calls: list[FusedCall]

    @property
    def stack(self) -> Stack:
        """How the module is built."""
        return self.family.stack(self.module)

    @property
    def first(self) -> FusedCall:
        """The call that began it; weights and settings are the same for all."""
        return self.calls[0]


def _unknown_column(chain: CallChain, whole: Unfolded, lengths: Tensor) -> str:
    """Why it is not known which column belongs to the selected sequence: it went along the batch, where its steps are
    as many as the sequences and its columns as many as their steps.

    Counter-example: an input of these sizes that has nothing to do with the batch's, as a table of the same size.
    """
    (steps, columns), samples = whole.x.shape[:2], lengths.numel()
    longest = int(lengths.max())
    if not chain.stack.batch_first and (steps, columns) == (samples, longest):
        return across(chain.place, samples, longest)
    return UNKNOWN_COLUMN.format(place=chain.place, columns=columns, samples=samples)


def unpack(
    chain: CallChain, lengths: Tensor, sample: int, emit: Emitter, *, only: bool, compare: bool = True
) -> tuple[list[Recurrence], Callable[[], None]]:
    """One Recurrence for every layer and direction, lowest layer first; with `only`, of that sample alone.

    The second result fills in the gradients, which takes most of the time; states and gates need none.
    `compare`: check the gradients inside by autograd.
    """
    place = chain.place
    if any(call.overwritten() for call in chain.calls):
        emit.refuse(f"{place}:h", OVERWRITTEN.format(place))
        return [], _nothing
    changed = any(call.gradients_lost() for call in chain.calls)
    for call in chain.calls:
        call.fetch()
    whole = unfold(chain.stack, chain.calls, lengths)
    columns = whole.x.shape[1]
    column = column_of(sample, lengths.numel(), columns)
    if column is None:
        emit.refuse(f"{place}:h", _unknown_column(chain, whole, lengths))
        return [], _nothing
    if columns == 1:
        whole.base = sample
    one = only and columns > 1
    plain = whole.one_sample(column, sample) if one else whole
    layers = _layers(chain, plain)
    if one and not _all_passed(layers):  # the kernel rounds differently for one row: where that grows, take them all
        again = _layers(chain, whole)
        layers, plain = (again, whole) if _all_passed(again) else (layers, plain)
    if len(layers) < chain.stack.layers:
        emit.refuse(f"{place}.l{len(layers)}:h", DROPPED.format(place))
    compared = column if plain is whole else 0
    fill = partial(_gradients, chain, layers, plain, compared if compare else None, emit, changed=changed)
    return [recurrence for row in layers for recurrence in row], fill


def _nothing() -> None:
    """There is no gradient to fill in."""


def _all_passed(layers: list[list[Recurrence]]) -> bool:
    return all(item.check is not None and item.check.passed for row in layers for item in row)


def _layers(chain: CallChain, plain: Unfolded) -> list[list[Recurrence]]:
    """Every layer from below: each one's output is the next one's input. Ends where dropout cannot be reproduced."""
    stack, layers = chain.stack, []
    below = plain.x
    for layer in range(stack.layers):
        if layer and chain.first.dropping and not plain.masks:
            break
        row = [_direction(chain, plain, below, layer, d) for d in range(stack.directions)]
        layers.append([item.recurrence for item in row])
        if layer < stack.layers - 1:
            below = torch.cat([forward_order(item.given, item.recurrence) for item in row], dim=-1)
            below = below * plain.masks[layer] if plain.masks else below
    return layers


def _gradients(
    chain: CallChain,
    layers: list[list[Recurrence]],
    plain: Unfolded,
    column: int | None,
    emit: Emitter,
    *,
    changed: bool,
) -> None:
    """Fill `arriving` and `delta`, or report why not. Without a loss nothing is reported."""
    if plain.arriving is None or len(layers) < chain.stack.layers:
        return
    reason = ""
    if changed:
        reason = CHANGED.format(chain.place)
    elif not _all_passed(layers):
        reason = UNREPRODUCED.format(chain.place)
    else:
        unit = resolution(plain.output.dtype, chain.first.device)
        error, allowed = spread(chain.family, chain.module, chain.first.weights, layers, plain, column, unit)
        if not error <= allowed:
            reason = DISAGREEING.format(chain.place, error, allowed)
    if reason:
        for item in (item for row in layers for item in row):
            item.arriving = item.delta = None
            if item.check is not None and item.check.passed:
                emit.refuse(f"{item.place}:{GRADIENT}", reason)


@dataclass(slots=True)
class _Opened:
    """A Recurrence and its layer's output at each step, (t, b, o), in processing order."""

    recurrence: Recurrence
    given: Tensor


def class_name(module: nn.Module) -> str:
    """The class as the user wrote it: parametrisations make a subclass of their own."""
    return type(module).__name__.removeprefix("Parametrized")


def _direction(chain: CallChain, plain: Unfolded, below: Tensor, layer: int, direction: int) -> _Opened:
    """One layer in one direction on its input: the module's own output (top layer) or one more run of it."""
    stack, reverse = chain.stack, direction == 1
    number = layer * stack.directions + direction
    cell = chain.family.from_module(chain.module, chain.first.weights, layer, direction)
    lengths = plain.ran if reverse else plain.lengths
    x = flip_each(below, lengths) if reverse else below
    start = plain.start(cell, number)
    if layer == stack.layers - 1:
        given = plain.output.chunk(stack.directions, dim=-1)[direction]
        given = flip_each(given, lengths) if reverse else given
    else:
        given = _run_layer(chain, cell, layer, direction, x, start)
    dtype = cell.dtype
    x, output = x.to(dtype), given.to(dtype)
    begin = {name: value.to(dtype) for name, value in start.items()}
    finals = {name: value[number].to(dtype) for name, value in plain.final.items()}
    kept = plain.gates[number].chunk(4, -1) if plain.gates else ()
    for known in [kept, ()] if kept else [()]:  # what a kernel kept and does not give its output is not what it seems
        found = cell.recompute(x, begin, output, known) if known else cell.recompute(x, begin, output)
        check = _check(cell, x, found, output, finals, plain.ran, _resolution(chain.first, plain))
        if check.passed:
            break
    known = () if sum(value.nbytes for value in found.known) > KEPT_BYTES else found.known
    name = f"{chain.place}.l{layer}" + (".reverse" if reverse else "")
    recurrence = Recurrence(
        name, class_name(chain.module), cell, x, found.states, lengths.clone(), reverse, check, base=plain.base,
        known=known, weights=partial(model_weights, chain.family, chain.module, layer, direction),
        followed_input=any(call.followed for call in chain.calls), upstream=_upstream(chain),
    )  # fmt: skip
    return _Opened(recurrence, given)


def _upstream(chain: CallChain) -> frozenset[int] | None:
    found = [call.upstream for call in chain.calls]
    return None if None in found else frozenset().union(*(one for one in found if one is not None))


def _resolution(call: FusedCall, plain: Unfolded) -> float:
    own = resolution(plain.output.dtype, call.device)
    return own if call.autocast is None else max(own, float(torch.finfo(call.autocast[1]).eps))


def _check(
    cell: Cell, x: Tensor, found: Recomputed, given: Tensor, finals: dict[str, Tensor], ran: Tensor, unit: float
) -> Check:
    """Compare every step that the kernel ran with the recomputation, and the last states against those returned.

    The plain tolerance is some roundings of the largest state; where that is not enough, a running error bound
    (large weights, wide layers, an LSTM's c over very many steps), if the family has one.
    """
    states, made = found.states, found.made
    real = torch.arange(len(made))[:, None] < ran
    every = bool(real.all())
    size = largest(states if every else states[1:][real])
    allowed = allowed_error(unit, size)
    last = states[ran, torch.arange(ran.numel())]
    steps = max(1, len(made)) ** 0.5
    ends = {name: distance(last[:, cell.parts[name]], final) for name, final in finals.items()}
    pairs = [(distance(made, given) if every else distance(made[real], given[real]), allowed)]
    pairs += [(error, allowed * steps) for error in ends.values()]
    if judge(pairs).passed or not real.any():
        return judge(pairs)
    bounds = cell.rounding_bound(x, states, found.known, ROUNDINGS * unit)
    if bounds is None:
        return judge(pairs)
    pairs = [against_bound(made, given, bounds[cell.main], real)]
    at = (ran - 1).clamp(min=0), torch.arange(ran.numel())
    for name, final in finals.items():
        if name == cell.main:
            pairs.append((ends[name], allowed * steps))
        else:
            computed = last[None, :, cell.parts[name]]
            pairs.append(against_bound(computed, final[None], bounds[name][at][None], (ran > 0)[None]))
    return judge(pairs)


def forward_order(values: Tensor, recurrence: Recurrence) -> Tensor:
    """Values in processing order brought back to sequence order."""
    return flip_each(values, recurrence.lengths) if recurrence.reverse else values


def _run_layer(chain: CallChain, cell: Cell, layer: int, direction: int, x: Tensor, start: dict[str, Tensor]) -> Tensor:
    """The output of one layer in one direction, run once more with the weights of the call: (t, b, o)."""
    if not cell.gives_state:
        x = x.to(cell.dtype)
        return cell.emit(x, cell.unroll(x, [value.to(cell.dtype) for value in start.values()]))
    call = chain.first
    weights = chain.family.layer_weights(call.weights, layer, direction)
    states = [value.contiguous() for value in start.values()]
    same = torch.autocast(*call.autocast) if call.autocast is not None else nullcontext()
    with same:
        return chain.family.run(chain.module, cell, weights, x.contiguous(), states)[0][..., cell.parts[cell.main]]
