"""Memories that grow by concatenation, `memory = torch.cat((memory, h[:, None]), 1)`, as lists of their entries.

What reads such a memory is given all entries, joined just before: the tensor that grows is then no state of a changing
shape. `torch.cat` of `h[:, None]` joins the states themselves, as `torch.stack` does. What is only collected (an output
that nothing reads before the end) is left as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call, Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import region

FEWEST = 3
"""Concatenations in a chain that make a memory: as many as iterations make a loop."""
MOST = 256
"""Entries of the longest list: all lists together have its square, and states that read so many older ones are refused
anyway. Counter-example: the state of a loop over 257 steps that grows a memory is refused as changing its shape."""
CATS = (torch.cat, torch.concat, torch.concatenate)


@dataclass(slots=True)
class _Cat:
    """One concatenation: its axis, its entries one by one, and the first concatenation of its chain."""

    op: Op
    axis: int
    root: int
    entries: list[Tensor] = field(default_factory=list)


@dataclass(slots=True)
class _Changes:
    """Calls instead of others, and calls that are inserted before others, by number."""

    instead: dict[int, Call] = field(default_factory=dict)
    before: dict[int, list[Call]] = field(default_factory=lambda: defaultdict(list))


def with_lists(table: Table) -> Table:
    """The calls with joins of all entries where something reads a memory that grows, or a list of `h[:, None]`."""
    cats = _cats(table)
    changes = _Changes()
    for chain in _chains(cats):
        readers = list(_readers(table, cats, chain))
        if readers:
            views = all(_sources(table, cats[n].entries, cats[n].axis) is not None for n in chain)
            for n in chain:
                changes.instead[n] = _joined(table, table.calls[n], cats[n].entries, cats[n].axis, views=views)
            for n, k, entries in readers:
                _give(table, changes, (n, k), entries, cats[chain[0]].axis, views=views)
    for alike in _lists(table, cats):
        if all(_sources(table, cats[n].entries, cats[n].axis) is not None for n in alike):
            for n in alike:
                changes.instead[n] = _joined(table, table.calls[n], cats[n].entries, cats[n].axis, views=True)
    return table.with_calls(changes.instead, changes.before) if changes.instead else table


def _cats(table: Table) -> dict[int, _Cat]:
    """Number of each call of `cat` → it."""
    found: dict[int, _Cat] = {}
    for n in (n for n, call in enumerate(table.calls) if call[0] in CATS):
        op = table.op(n)
        if op.kwargs.get("out") is not None or not op.inputs or not op.outputs:
            continue
        axis = op.kwargs.get("dim", op.kwargs.get("axis", op.args[1] if len(op.args) > 1 else 0))
        own = found[n] = _Cat(op, int(axis) % op.outputs[0].ndim, n)
        for given in op.inputs:
            maker = table.maker(id(given))
            longer = None if maker is None else found.get(maker)
            if longer is not None and longer.axis == own.axis and len(longer.entries) < MOST:
                own.entries += longer.entries
                own.root = longer.root
            elif given.numel():  # a memory may begin empty
                own.entries.append(given)
    return found


def _chains(cats: dict[int, _Cat]) -> list[list[int]]:
    """Calls each of which extends the result of the one before."""
    found: dict[int, list[int]] = defaultdict(list)
    for n, cat in cats.items():
        found[cat.root].append(n)
    return [own for own in found.values() if len(own) >= FEWEST and len({len(cats[n].entries) for n in own}) > 1]


def _lists(table: Table, cats: dict[int, _Cat]) -> list[list[int]]:
    """Calls at one place in the code that join more and more entries."""
    found: dict[int, list[int]] = defaultdict(list)
    for n, cat in cats.items():
        if cat.root == n and len(cat.entries) == len(cat.op.inputs):
            found[table.sites[n]].append(n)
    return [own for own in found.values() if len(own) >= FEWEST and len({len(cats[n].entries) for n in own}) > 1]


def _readers(table: Table, cats: dict[int, _Cat], chain: Sequence[int]) -> Iterator[tuple[int, int, list[Tensor]]]:
    """(call, number of its input, the entries of the memory) of what reads the memory while it grows, and before."""
    entries = {id(cats[n].op.outputs[0]): cats[n].entries for n in chain[:-1]}
    first = {id(one): [one] for one in cats[chain[0]].op.inputs}
    own, sites = set(chain), set()
    for n in range(chain[0], chain[-1]):
        op = table.op(n)
        if n in own or op.traits.kind is Kind.QUESTION:
            continue
        for k, given in enumerate(op.inputs):
            if id(given) in entries:
                sites.add((table.sites[n], k))
                yield n, k, entries[id(given)]
    for n in range(chain[0]) if sites else ():
        for k, given in enumerate(table.op(n).inputs):
            if id(given) in first and (table.sites[n], k) in sites:
                yield n, k, first[id(given)]


def _sources(table: Table, entries: Sequence[Tensor], axis: int) -> list[Tensor] | None:
    """The tensors of which the entries are views with one axis more, where all are."""
    found = []
    for entry in entries:
        maker = table.maker(id(entry))
        op = None if maker is None else table.op(maker)
        if op is None or entry.shape[axis] != 1 or len(op.inputs) != 1 or not op.traits.hands_on:
            return None
        if region(entry.detach().squeeze(axis)) != region(op.inputs[0].detach()):
            return None
        found.append(op.inputs[0])
    return found


def _joined(table: Table, call: Call, entries: Sequence[Tensor], axis: int, *, views: bool) -> Call:
    """All entries joined, in place of a call that returned the same. `views`: see `_sources`."""
    sources = _sources(table, entries, axis) if views else None
    if sources is None:
        return torch.cat, (list(entries), axis), None, *call[3:]
    return torch.stack, (sources, axis), None, *call[3:]


def _give(
    table: Table, changes: _Changes, place: tuple[int, int], entries: Sequence[Tensor], axis: int, *, views: bool
) -> None:
    """Give input k of call n a tensor of its own, which a call just before makes of the entries."""
    n, k = place
    call = changes.instead.get(n, table.calls[n])
    leaves, spec = tree_flatten((call[1], call[2] or {}))
    at = [number for number, leaf in enumerate(leaves) if isinstance(leaf, Tensor)][k]
    with torch.enable_grad():  # a result without a gradient would count as a place where the model stops it
        own = leaves[at].view_as(leaves[at])
    changes.before[n].append(_joined(table, (*call[:3], own, *call[4:]), entries, axis, views=views))
    leaves[at] = own
    args, kwargs = tree_unflatten(leaves, spec)
    changes.instead[n] = (call[0], args, kwargs or None, *call[3:])
