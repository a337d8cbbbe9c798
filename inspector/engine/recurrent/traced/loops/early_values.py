"""Values of a variable from more than one step before the loop: `h[t] = f(h[t - 2])` begins with two initial values.

A place that reads a value of a certain age at every later iteration reads the initial value of that age at the first
ones. The recorded calls of those reads get a tensor of their own, as in `first_values`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.loops.iteration_classes import Twins
from inspector.engine.recurrent.traced.loops.loop import Label
from inspector.engine.recurrent.traced.record.values import ids_of, same_entries

Site = tuple[Label, int]
"""Where a value is read: the operation of the loop's body, and the number of its input."""


class Older(Protocol):
    """A carried variable; `early`: number of steps before the first value → the value then."""

    values: list[Tensor]
    made: list[int]
    early: dict[int, Tensor]
    lags: int


Reads = Callable[[Label, int], Older | None]


def take_early(twins: Twins, reads: Reads) -> None:
    """Give variables that are read at some age all their initial values.

    Counter-example: one that some iterations leave as it is keeps the one initial value that its first reader is given.
    """
    ages = _ages(twins, reads)
    for (label, n), (slot, own) in sorted(ages.items(), key=lambda one: min(one[1][1])):
        if len(own) > 1:
            continue
        for i in range(min(min(own) + 1, len(twins.first))):
            labels = twins.loop.iterations.labels[i]
            if label in labels:
                _take(twins, slot, min(own) - i, (i, labels.index(label), n))
    for slot in {id(slot): slot for slot, _ in ages.values()}.values():
        if slot.early:
            first = slot.early.pop(0, None)
            slot.values[0] = torch.zeros_like(slot.values[-1], requires_grad=False) if first is None else first


def _take(twins: Twins, slot: Older, before: int, place: tuple[int, int, int]) -> None:
    """What is read at this place is the variable's value so many steps before the first one."""
    i, j, n = place
    inputs = twins.loop.iterations[i][j][1].inputs
    if n >= len(inputs):  # a list that grows
        return
    given = inputs[n]
    maker = twins.source.get(id(given))
    if given.shape != slot.values[-1].shape:
        return
    if maker is not None and not (maker[0] == i and twins.loop.iterations[i][maker[1]][1].traits.forgets):
        return
    known = slot.early.get(before)
    if known is None:
        known = slot.early[before] = given if given is slot.values[0] and not before else given.detach()
    elif known is not given and not same_entries(known, given):
        return
    if known is not given:
        twins.give((i, j), n, known)


def _ages(twins: Twins, reads: Reads) -> dict[Site, tuple[Older, set[int]]]:
    """At which ages each place reads a variable that every iteration makes anew, of what the loop made itself."""
    held: dict[int, dict[int, int]] = {}
    found: dict[Site, tuple[Older, set[int]]] = {}
    for i in twins.members:
        for label, op in twins.loop.iterations[i]:
            for n, given in enumerate(op.inputs):
                slot = reads(label, n)
                if slot is None or not slot.lags or min(slot.made) < 0:
                    continue
                if id(slot) not in held:
                    held[id(slot)] = {number: step for step, number in enumerate(ids_of(slot.values[1:]).tolist(), 1)}
                made = held[id(slot)].get(id(given))
                if made is not None:
                    found.setdefault((label, n), (slot, set()))[1].add(i - made)
    return found
