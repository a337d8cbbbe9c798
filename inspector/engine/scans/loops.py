"""Loops over the steps whose step is h_t = a_t ⊙ h_{t−1} + b_t: what iterations make is put side by side and tried.

What an operation of the loop returns in every iteration, and what the loop reads step by step, are sequences like those
of a scan. a and b must not be made from the states: then the step is linear, and its Jacobian is the diagonal a.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import given_to, name_of, results_of
from inspector.engine.scans.diagonal import Diagonal, best_of, laid_into
from inspector.engine.scans.factors import laid_operands
from inspector.engine.scans.readout import Reading, reading_behind
from inspector.engine.scans.values import Flow, Layout, Value

UNBOUND = 2
"""Operations back from what an iteration reads within which the whole sequence is looked for (x.unbind(1), x[:, t])."""
MOST_BYTES = 1 << 28
"""Of what one operation made in all iterations: larger ones are not tried."""
FEWEST = 4
PARTS = 8
"""Results of one call that are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Looped:
    """A linear recurrence in a loop, and where what reads its states is looked for."""

    found: Diagonal
    reading: Reading


def looped(
    flow: Flow, sites: Sequence[Sequence[int]], states: Sequence[Tensor], batch: int, sample: int
) -> Looped | None:
    """The recurrence of a loop; None where its step is not linear entry by entry, or that is not seen.

    sites: for each operation of the loop the numbers of its calls, one an iteration. states: after each iteration.
    """
    shape = tuple(states[0].shape)
    axis = next((n for n, size in enumerate(shape) if size == batch), None)
    if len(states) < FEWEST or (axis is None and batch > 1) or any(tuple(one.shape) != shape for one in states):
        return None
    own = {id(one) for one in states}
    made = [one for site in sites for one in _made(flow, site)]
    free = [one for one in made if id(one[0]) not in own and not _reads(flow, one[2], own)]
    of_einsums = [one for site in sites for one in _weighing(flow, site, shape) if not _reads(flow, one[1], own)]
    whole, rest = _sequences(flow, sites, len(states)), None
    for dim in dict.fromkeys((min(1, len(shape)), 0, *range(2, len(shape) + 1))):  # where sequences have their steps
        h = Value(torch.stack([one.detach() for one in states], dim), len(flow.table.calls))
        batch_axis = None if axis is None else axis + (dim <= axis)
        layout = Layout(tuple(h.tensor.shape), dim, batch_axis, sample if axis is not None else 0)
        stacks = [flow.stack(one, dim) for one in (*free, *of_einsums) if one[0].dim() == len(shape)]
        found = best_of(h, layout, _candidates([*whole, *stacks], h, layout))
        if found is not None and found.exact:
            outputs = [torch.stack([part.detach() for part in one], dim) for one in made if one[0].dim() >= dim]
            behind = reading_behind(flow, max(site[-1] for site in sites), layout)
            inside = [one for one in free if dim <= one[0].dim() < len(shape)]  # a C that each iteration makes
            rows = [torch.stack([part.detach() for part in one], dim) for one in inside]
            given = [*(one.tensor for one in (*whole, *stacks)), *rows, *behind.given]
            one = Looped(found, Reading([*outputs, *behind.outputs], given))
            if any(found.b.tensor is sequence.tensor for sequence in whole):
                return one  # what a sequence is made of is known, unlike what iterations made
            rest = rest or one
    return rest


def _candidates(values: Sequence[Value], h: Value, layout: Layout) -> Iterator[tuple[Value, Tensor]]:
    for one in values:
        yield from laid_into(one, h, layout)


def _made(flow: Flow, site: Sequence[int]) -> Iterator[tuple[Tensor, ...]]:
    """What the calls of a site returned, of one shape each; of several results (split, chunk) each by itself."""
    found = [results_of(flow.table.calls[n][3]) for n in site]
    count = len(found[0])
    if not 0 < count <= PARTS or any(len(one) != count for one in found):
        return
    for own in zip(*found, strict=True):
        first = own[0]
        if not (first.is_floating_point() or first.is_complex()) or first.nbytes * len(own) > MOST_BYTES:
            continue
        if all(one.shape == first.shape for one in own):
            yield own


def _weighing(flow: Flow, site: Sequence[int], shape: tuple[int, ...]) -> Iterator[tuple[Tensor, ...]]:
    """The operands of an einsum that gives something like a state, of each iteration, in the axes of the state."""
    ops = [flow.table.op(n) for n in site] if name_of(flow.table.calls[site[0]][0]) == "einsum" else []
    laid = [laid_operands(op) for op in ops if tuple(op.outputs[0].shape) == shape]
    if ops and len(laid) == len(ops) and all(laid) and len({len(one) for one in laid}) == 1:
        yield from (one for one in zip(*laid, strict=True) if len({tuple(part.shape) for part in one}) == 1)


def _reads(flow: Flow, tensor: Tensor, states: set[int]) -> bool:
    """Whether a tensor was computed from one of the states."""
    return any(id(one.tensor) in states for one in flow.before(flow.value(tensor)))


def _sequences(flow: Flow, sites: Sequence[Sequence[int]], steps: int) -> list[Value]:
    """The tensors with an axis of so many steps that the calls of the loop read, whole, and those without one."""
    first = min(site[0] for site in sites)
    waiting = [one for site in sites for one in given_to(flow.table.calls[site[min(1, len(site) - 1)]])]
    found: dict[int, Value] = {}
    for _ in range(UNBOUND):
        further: list[Tensor] = []
        for one in waiting:
            value = flow.value(one)
            number = flow.table.maker(id(one))
            if steps in one.shape or number is None or number < first:
                found.setdefault(id(one), value)
            if number is not None:
                further += given_to(flow.table.calls[number])
        waiting = further
    return [one for one in found.values() if one.made < first]
