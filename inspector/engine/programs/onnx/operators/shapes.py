"""Operators that make tensors of other shapes, and those that compute shapes."""

from __future__ import annotations

import operator as python
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from inspector.engine.programs.onnx.operands import (
    Calls,
    Operand,
    Operator,
    Untranslated,
    ints,
    known_ints,
    shape_of,
)
from inspector.engine.programs.onnx.operators.table import at, first, operator

END = 1 << 31
"""From this number on an end of a slice is none."""


@operator("Shape")
def _shape(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(shape_of, first(inputs), op.attributes.get("start", 0), op.attributes.get("end"))


@operator("Size")
def _size(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.tensor, calls.call(Tensor.numel, first(inputs)))


def new_shape(value: Tensor, shape: list[int], *, zeros: bool) -> list[int]:
    """The sizes that Reshape gives: 0 copies one, unless `zeros`."""
    return [value.shape[n] if size == 0 and not zeros else size for n, size in enumerate(shape)]


@operator("Reshape")
def _reshape(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    shape, zeros = ints(calls, inputs[1]), bool(op.attributes.get("allowzero", 0))
    if not isinstance(shape, list) or 0 in shape:
        shape = calls.call(new_shape, first(inputs), shape, zeros=zeros)
    return calls.call(torch.reshape, first(inputs), shape)


@operator("Flatten")
def _flatten(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    axis = op.attributes.get("axis", 1)
    if axis == 0:
        return calls.call(torch.reshape, first(inputs), (1, -1))
    return calls.call(
        torch.flatten, calls.call(torch.flatten, first(inputs), 0, axis - 1) if axis > 1 else first(inputs), 1
    )


@operator("Transpose")
def _transpose(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    order = op.attributes.get("perm")
    return (
        calls.call(reversed_axes, first(inputs))
        if order is None
        else calls.call(torch.permute, first(inputs), tuple(order))
    )


def reversed_axes(value: Tensor) -> Tensor:
    """All axes in reverse."""
    return value.permute(*range(value.dim() - 1, -1, -1))


def _axes(op: Operator, inputs: list[Operand | None]) -> list[int] | None:
    said = op.attributes.get("axes")
    return list(said) if said is not None else known_ints(at(inputs, 1), "axes")


@operator("Squeeze")
def _squeeze(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    axes = _axes(op, inputs)
    return (
        calls.call(torch.squeeze, first(inputs))
        if axes is None
        else calls.call(torch.squeeze, first(inputs), tuple(axes))
    )


@operator("Unsqueeze")
def _unsqueeze(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    axes = _axes(op, inputs) or []
    if len(axes) > 1 and any(axis < 0 for axis in axes):
        raise Untranslated("several of its axes are counted from the end")
    value: Any = first(inputs).value
    for axis in sorted(axes):
        value = calls.call(torch.unsqueeze, value, axis)
    return value


@operator("Concat")
def _concat(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.cat, list(inputs), op.attributes.get("axis"))


@operator("Slice")
def _slice(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    said = op.attributes
    if said.get("starts") is not None:
        starts, ends, axes, steps = said.get("starts"), said.get("ends"), said.get("axes"), None
    else:
        starts, ends = ints(calls, at(inputs, 1)), ints(calls, at(inputs, 2))
        axes, steps = known_ints(at(inputs, 3), "axes"), known_ints(at(inputs, 4), "steps")
    if not isinstance(starts, list) or not isinstance(ends, list):
        if steps is not None and any(step < 0 for step in steps):
            raise Untranslated("its bounds are computed and it goes backwards")
        return calls.call(sliced, first(inputs), calls.call(bounds, starts, ends, axes, steps))
    axes = list(range(len(starts))) if axes is None else axes
    value: Any = first(inputs).value
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        value = _sliced(calls, value, start, end, axis, step)
    return value


def bounds(starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None) -> list[Any]:
    """(axis, slice) of each axis that is cut."""
    axes = list(range(len(starts))) if axes is None else axes
    return [
        (axis, slice(start, None if end >= END else end, step))
        for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True)
    ]


def sliced(value: Tensor, cuts: list[Any]) -> Tensor:
    """A tensor cut along some axes."""
    for axis, cut in cuts:
        value = value[(*(slice(None),) * (axis % value.dim()), cut)]
    return value


def _sliced(calls: Calls, value: Any, start: int, end: int, axis: int, step: int) -> Any:
    if step < 0:
        if start not in (-1,) and start < END:
            raise Untranslated("it goes backwards from somewhere inside")
        if step != -1 or end > -END:
            raise Untranslated("it goes backwards in steps, or stops inside")
        return calls.call(torch.flip, value, (axis,))
    cut = slice(start, None if end >= END else end, step if step != 1 else None)
    if axis < 0:
        return calls.call(sliced, value, [(axis, cut)])
    return calls.call(python.getitem, value, (*(slice(None),) * axis, cut))


@operator("Split")
def _split(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    axis, sizes = op.attributes.get("axis", 0), op.attributes.get("split") or known_ints(at(inputs, 1), "sizes")
    made = (
        calls.call(torch.chunk, first(inputs), op.outputs, axis)
        if sizes is None else calls.call(torch.split, first(inputs), list(sizes), axis)
    )  # fmt: skip
    return tuple(calls.call(python.getitem, made, n) for n in range(op.outputs))


@operator("Gather")
def _gather(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    x, index = inputs
    assert x is not None and index is not None
    axis = op.attributes.get("axis", 0)
    if index.known is not None and index.known.dim() == 0:
        return calls.call(torch.select, x, axis, int(index.known))
    if x.known is not None and x.known.is_floating_point() and x.known.dim() == 2 and axis == 0:
        return calls.call(F.embedding, index, x)
    if index.known is not None and index.known.dim() == 1 and not bool((index.known < 0).any()):
        return calls.call(torch.index_select, x, axis, index)
    return calls.call(gathered, x, index, axis)


def gathered(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """Entries of one axis by an index of any shape, negative ones from the end."""
    index = torch.where(index < 0, index + x.shape[axis], index).long()
    axis %= x.dim()
    taken = x.index_select(axis, index.reshape(-1))
    return taken.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


@operator("GatherElements")
def _gather_elements(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.gather, first(inputs), op.attributes.get("axis", 0), at(inputs, 1))


@operator("Expand")
def _expand(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(expanded, first(inputs), ints(calls, at(inputs, 1)))


def expanded(value: Tensor, shape: list[int]) -> Tensor:
    """A tensor repeated along axes of size 1, as two shapes are broadcast."""
    return value.expand(torch.broadcast_shapes(value.shape, shape))


@operator("Tile")
def _tile(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.tile, first(inputs), ints(calls, at(inputs, 1)))


@operator("ConstantOfShape")
def _filled(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    value = op.attributes.get("tensor")
    one = torch.zeros(1) if value is None else value
    return calls.call(torch.full, ints(calls, first(inputs)), one.item(), dtype=one.dtype)


@operator("Constant")
def _constant(_calls: Calls, op: Operator, _inputs: list[Operand | None]) -> Any:
    said = op.attributes
    if said.get("tensor") is not None:
        return said.get("tensor")
    for name in ("value_float", "value_int", "value_floats", "value_ints"):
        if said.get(name) is not None:
            kind = torch.float32 if "float" in name else torch.int64
            return torch.tensor(said.get(name), dtype=kind)
    raise Untranslated("it is no tensor of numbers")


@operator("Range")
def _range(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(numbered, *inputs)


def numbered(start: Tensor, limit: Tensor, step: Tensor) -> Tensor:
    """start, start + step, … below the limit."""
    return torch.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


@operator("Trilu")
def _trilu(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    k = known_ints(at(inputs, 1), "diagonal")
    function = torch.triu if op.attributes.get("upper", 1) else torch.tril
    return calls.call(function, first(inputs), 0 if k is None else k[0])


@operator("Pad")
def _pad(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    pads = op.attributes.get("pads") or known_ints(at(inputs, 1), "pads")
    if op.attributes.get("mode", "constant") != "constant" or pads is None or at(inputs, 3) is not None:
        raise Untranslated("it pads by reflection, or along some axes")
    half, value = len(pads) // 2, at(inputs, 2)
    pairs = [size for n in range(half - 1, -1, -1) for size in (pads[n], pads[half + n])]
    fill = op.attributes.get("value", 0.0) if value is None else value.number
    return calls.call(F.pad, first(inputs), pairs, value=fill)


@operator("OneHot")
def _one_hot(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    if op.attributes.get("axis", -1) != -1:
        raise Untranslated("its classes are not its last axis")
    index, depth, values = inputs
    return calls.call(one_hot, index, depth, values)


def one_hot(index: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    """values[1] at the index, values[0] elsewhere."""
    classes = torch.arange(int(depth))
    return torch.where(index[..., None] % int(depth) == classes, values[1], values[0])
