"""What a tensor is the product of: the operands of multiplications and of einsums that sum over nothing.

b_t = Δ_t B_t x_t comes apart into Δ, B and x, so that the part that a step gets from its token is known from what
weighs it. Of a sum of logarithms the terms are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

import torch
from torch import Tensor

from inspector.engine.recurrent.traced.record.operation import Call, Op, given_to, name_of
from inspector.engine.scans.values import Flow, Value, by_broadcasting, rounding

PRODUCTS = frozenset({"mul", "__mul__", "__rmul__", "multiply", "mul_", "__imul__"})
MATRICES = frozenset({"matmul", "__matmul__", "bmm"})
SUMS = frozenset({"add", "__add__", "__radd__"})
PASSED = frozenset({"clone", "contiguous", "to", "float", "double", "type_as"})
VIEWS = frozenset({
    "unsqueeze", "__getitem__", "view", "reshape", "expand", "expand_as", "transpose", "permute", "movedim", "squeeze",
    "flatten", "unflatten", "mT", "select", "narrow",
})  # fmt: skip
"""Operations that only move entries: they do to each factor of a product what they do to the product."""
DEEPEST = 8
"""Products within products that are taken apart."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a product: numbers that are broadcast to its shape, and the tensor of the model that has them."""

    numbers: Tensor
    value: Value

    def extends(self, axis: int, shape: tuple[int, ...]) -> bool:
        """Whether it has more than one entry along an axis of the product."""
        size = self.numbers.shape
        return size[axis - len(shape)] > 1 if len(shape) - axis <= len(size) else False


def factors_of(flow: Flow, value: Value) -> list[Factor]:
    """The factors of a tensor; itself alone where it is no product."""
    shape = tuple(value.tensor.shape)
    found = [one for one in _taken_apart(flow, value, DEEPEST) if by_broadcasting(one.numbers.shape, shape)]
    product = torch.ones((), dtype=value.numbers().dtype)
    for one in found:
        product = product * one.numbers
    own = value.numbers()
    same = bool(found) and product.shape == own.shape and _close(product, own)
    return found if same else [Factor(own, value)]


def _close(one: Tensor, other: Tensor) -> bool:
    size = float(other.abs().amax())
    return float((one - other).abs().amax()) <= size * rounding(other.dtype)


def _taken_apart(flow: Flow, value: Value, deep: int) -> list[Factor]:
    number = flow.table.maker(id(value.tensor))
    own = [Factor(value.numbers(), value)]
    stacked = flow.stacked(value)
    if stacked is not None and deep and not value.exponent:
        return _of_iterations(flow, *stacked, deep) or own
    if number is None or not deep or number != value.made:
        return own
    call = flow.table.calls[number]
    name, inputs = name_of(call[0]), given_to(call)
    parts: list[Factor] = []
    if name in PASSED and len(inputs) == 1 and inputs[0].shape == value.tensor.shape:
        return _taken_apart(flow, Value(inputs[0], flow.value(inputs[0]).made, value.exponent), deep - 1)
    if (name in SUMS if value.exponent else name in PRODUCTS) and len(inputs) == 2:
        for one in inputs:
            given = flow.value(one)
            parts += _taken_apart(flow, Value(one, given.made, value.exponent), deep - 1)
        return parts
    if name in VIEWS and len(inputs) == 1 and not value.exponent:
        return _of_view(flow, flow.table.calls[number], inputs[0], deep) or own
    if name in MATRICES and not value.exponent and _is_outer(inputs):
        return [factor for one in inputs for factor in _taken_apart(flow, flow.value(one), deep - 1)]
    if name == "einsum" and not value.exponent:
        return _of_einsum(flow, flow.table.op(number), deep) or own
    return own


def _of_view(flow: Flow, call: Call, given: Tensor, deep: int) -> list[Factor]:
    """The factors of a product as parts or views of it; [] of what is no product."""
    parts = _taken_apart(flow, flow.value(given), deep - 1)
    if len(parts) < 2 or not call[1] or call[1][0] is not given:
        return []
    found = []
    for one in parts:
        seen = call[0](one.numbers.expand(given.shape), *call[1][1:], **(call[2] or {}))
        found.append(Factor(_without_repeats(seen), one.value))
    return found


def _is_outer(inputs: Sequence[Tensor]) -> bool:
    """A product of matrices that sums over nothing: of a column and a row."""
    if len(inputs) != 2 or inputs[0].dim() != inputs[1].dim() or inputs[0].dim() < 2:
        return False
    return inputs[0].shape[-1] == 1 == inputs[1].shape[-2]


def _of_iterations(flow: Flow, each: Sequence[Tensor], dim: int, deep: int) -> list[Factor]:
    """The factors of what the iterations of a loop made, side by side; [] where these differ in their form."""
    parts = [_taken_apart(flow, flow.value(one), deep - 1) for one in each]
    width = each[0].dim()
    if len({len(own) for own in parts}) != 1 or len(parts[0]) < 2:
        return []
    found = []
    for own in zip(*parts, strict=True):
        numbers = [one.numbers.reshape((1,) * (width - one.numbers.dim()) + one.numbers.shape) for one in own]
        if len({tuple(one.shape) for one in numbers}) != 1:
            return []
        same = all(one.value.tensor is own[0].value.tensor for one in own)
        value = flow.stack([numbers[0]] * len(numbers) if same else numbers, dim)
        found.append(Factor(value.numbers(), value))
    return found


def _of_einsum(flow: Flow, op: Op, deep: int) -> list[Factor]:
    """The factors of the operands in the axes of the result."""
    found: list[Factor] = []
    for order, at, tensor in _placed(op) or ():
        for one in _taken_apart(flow, flow.value(tensor), deep - 1):
            found.append(Factor(_without_repeats(one.numbers.expand(tensor.shape).permute(order)[at]), one.value))
    return found


def laid_operands(op: Op) -> list[Tensor]:
    """The operands of an einsum in the axes of its result, of size 1 where they lack one; [] where it sums."""
    return [tensor.detach().permute(order)[at] for order, at, tensor in _placed(op) or ()]


Placed = tuple[list[int], tuple[slice | None, ...], Tensor]


def _placed(op: Op) -> list[Placed] | None:
    """(order of its axes, index that adds those that it lacks, operand) of each operand of an einsum; None where that
    sums over a letter or has one twice in a term."""
    equation = op.args[0]
    if not isinstance(equation, str) or "->" not in equation:
        return None
    terms, _, out = equation.replace(" ", "").partition("->")
    letters = terms.split(",")
    if len(letters) != len(op.inputs):
        return None
    if "..." in equation:
        counts = [one.dim() - len(own.replace("...", "")) for own, one in zip(letters, op.inputs, strict=True)]
        if len({count for own, count in zip(letters, counts, strict=True) if "..." in own}) > 1:
            return None
        more = "".join(letter for letter in ascii_uppercase if letter not in equation)
        most = max((count for own, count in zip(letters, counts, strict=True) if "..." in own), default=0)
        letters, out = [own.replace("...", more[:most]) for own in letters], out.replace("...", more[:most])
    if any(set(own) - set(out) or len(set(own)) < len(own) for own in letters):
        return None
    found: list[Placed] = []
    for own, tensor in zip(letters, op.inputs, strict=True):
        order = [own.index(letter) for letter in out if letter in own]
        found.append((order, tuple(slice(None) if letter in own else None for letter in out), tensor))
    return found


def _without_repeats(numbers: Tensor) -> Tensor:
    """One entry along axes along which all entries are the same place of memory."""
    for axis, step in enumerate(numbers.stride()):
        numbers = numbers.narrow(axis, 0, 1) if not step and numbers.shape[axis] > 1 else numbers
    return numbers
