"""Scans that run over more steps than the sequence has: padded to a power of two, and cut to its length afterwards."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import given_to, name_of
from inspector.engine.scans.diagonal import Diagonal
from inspector.engine.scans.readout import AFTER
from inspector.engine.scans.values import Flow, Layout, Value


def as_read(flow: Flow, found: Diagonal, steps: int) -> Diagonal:
    """The recurrence over the steps of the sequence, its states as the rest of the model reads them.

    What a custom autograd function returns is another tensor than the one that it wrote into, with the graph that the
    first lacks.
    """
    layout = found.layout
    longer = layout.shape[layout.steps] > steps + 1
    if not longer and found.h.tensor.requires_grad:
        return found
    count = steps if longer else layout.shape[layout.steps]
    shape = tuple(count if n == layout.steps else size for n, size in enumerate(layout.shape))
    own = replace(layout, shape=shape)
    read = _alias(flow, found.h, shape)
    if read is None and not longer:
        return found
    h = Value(read if read is not None else found.h.tensor.narrow(layout.steps, 0, count), found.h.made)
    a = None if found.a is None else _cut(flow, found.a, layout, count)
    return Diagonal(h, _cut(flow, found.b, layout, count), a, own, found.error)


def _alias(flow: Flow, h: Value, shape: tuple[int, ...]) -> Tensor | None:
    """The tensor of a shape that holds the first of some states and has a graph."""
    for n in range(h.made + 1, min(h.made + AFTER + 1, len(flow.table.calls))):
        for one in given_to(flow.table.calls[n]):
            same = one.requires_grad and tuple(one.shape) == shape and one.data_ptr() == h.tensor.data_ptr()
            if same and one.stride() == h.tensor.stride():
                return one
    return None


def _cut(flow: Flow, value: Value, layout: Layout, count: int) -> Value:
    """What was padded, or the first `count` steps; a tensor without steps as it is."""
    axis = layout.steps - len(layout.shape)
    if value.tensor.dim() < -axis or value.tensor.shape[axis] <= count:
        return value
    number = flow.table.maker(id(value.tensor))
    call = None if number is None else flow.table.calls[number]
    if call is not None and name_of(call[0]) == "pad":
        given = given_to(call)[0]
        if given.dim() == value.tensor.dim() and given.shape[axis] == count:
            return replace(flow.value(given), exponent=value.exponent)
    return replace(value, tensor=value.tensor.narrow(value.tensor.dim() + axis, 0, count))
