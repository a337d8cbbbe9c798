"""Values of a variable from more than one step before the loop: `h[t] = f(h[t - 2])` begins with two initial values.

A place that reads a value of a certain age at every later iteration reads the initial value of that age at the first
ones. The recorded calls of those reads get a tensor of their own, as in `first_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
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


def take_early(twins: Twins, reads: Reads, lists: Sequence[Set[Site]] = ()) -> None:
    """Give variables that are read at some age all their initial values. `lists`: see `growing_lists`.

    Counter-example: one that some iterations leave as it is keeps the one initial value that its first reader is given.
    """
    ages = _ages(twins, reads)
    steady = {site: min(own) for site, (_, own) in ages.items() if len(own) == 1}
    shorter = [_shorter(twins, sites, steady) for sites in lists]
    for (label, n), age in sorted(steady.items(), key=lambda one: one[1]):
        slot = ages[label, n][0]
        missing = next((own for own, sites in zip(shorter, lists, strict=True) if (label, n) in sites), {})
        for i in range(min(age + 1, len(twins.first))):
            labels = twins.loop.iterations.labels[i]
            before = age - i - missing.get(i, 0)
            if label in labels and before >= 0:
                _take(twins, slot, before, (i, labels.index(label), n))
    for slot in {id(slot): slot for slot, _ in ages.values()}.values():
        if slot.early:
            first = slot.early.pop(0, None)
            slot.values[0] = torch.zeros_like(slot.values[-1], requires_grad=False) if first is None else first


def _shorter(twins: Twins, sites: Set[Site], steady: Mapping[Site, int]) -> dict[int, int]:
    """How many entries fewer than later a list has in each of the first iterations, where its oldest entry is first.

    What is read at a place is that much newer there.
    """
    found: dict[int, list[Site]] = {}
    for i in range(min(max((steady[site] for site in sites if site in steady), default=-1) + 2, len(twins.first))):
        ops = twins.loop.iterations[i]
        found[i] = [(label, n) for label, op in ops for n in range(len(op.inputs)) if (label, n) in sites]
    longest = max(found.values(), key=len, default=[])
    ages = [steady[site] for site in longest if site in steady]
    if len(ages) < 2 or ages[0] < ages[-1]:
        return {}
    return {i: len(longest) - len(own) for i, own in found.items()}


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
