"""Functions that are a tanh though none is called: 2 σ(2x) − 1, (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), 1 − 2 / (e²ˣ + 1).

Of each value that is made of one other, entry by entry and with numbers alone, it is known what it would be at some
points of that other: each operation is run once more on those, so that a long step costs as much as it is long. It is a
tanh of that value, moved or scaled before, where artanh of its results is a straight line.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import storage_of

ARITHMETIC = frozenset({Kind.SUM, Kind.PRODUCT, Kind.QUOTIENT})
CURVED = frozenset({"sigmoid", "tanh", "exp", "expm1", "reciprocal", "square", "expit"})
INSIDE = 0.999
"""|v| up to which artanh v is compared; beyond it a float64 has too few digits of 1 − v."""
FEWEST, STRAIGHT = 12, 1e-7
"""Points of the line, and how far from it they may be, relative to the longest."""


def points() -> Tensor:
    """(n,) float64 where functions are looked at: either sign, from far inside of what a tanh bends to far outside."""
    half = torch.logspace(-3, 1.3, 200, dtype=torch.float64)
    return torch.cat((-half.flip(0), half))


@dataclass(frozen=True, slots=True)
class Curve:
    """A value as a function of another: which one, what it is at the points, and whether anything was bent."""

    source: object
    values: Tensor
    curved: bool = False


class Formulas:
    """The values of one iteration as functions of others."""

    def __init__(self) -> None:
        self._points = points()
        self._known: dict[int, Curve] = {}
        self._in_memory: dict[int, set[int]] = {}

    def take(self, op: Op) -> bool:
        """Follow an operation; whether its result is a tanh of something by its numbers."""
        if op.in_place:
            for number in self._in_memory.pop(storage_of(op.target), set()) - {id(op.target)}:
                self._known.pop(number, None)
        found = self._composed(op)
        for out in (op.target,) if op.in_place else op.outputs:
            self._known.pop(id(out), None)
        if found is None:
            return False
        out = op.target if op.in_place else op.outputs[0]
        self._known[id(out)] = found
        self._in_memory.setdefault(storage_of(out), set()).add(id(out))
        return found.curved and op.traits.kind in ARITHMETIC and is_tanh(self._points, found.values)

    def has(self, op: Op) -> bool:
        """Whether the function that an operation's result is is known."""
        return len(op.outputs) == 1 and id(op.outputs[0]) in self._known

    def _composed(self, op: Op) -> Curve | None:
        """What an operation makes of one value, entry by entry."""
        named = op.traits.name in CURVED or op.name.rstrip("_") in CURVED
        if not (named or op.traits.kind in ARITHMETIC) or op.kwargs or len(op.outputs) != 1 or not op.inputs:
            return None
        if any(one.shape != op.outputs[0].shape or not one.is_floating_point() for one in op.inputs):
            return None
        parts = {id(one): self._known.get(id(one)) or Curve(id(one), self._points) for one in op.inputs}
        sources = {part.source for part in parts.values()}
        if len(sources) != 1:
            return None
        made = _again(op, {number: part.values for number, part in parts.items()})
        if made is None:
            return None
        (source,) = sources
        gone = op.in_place and source == id(op.target)  # its old value was written over
        return Curve(object() if gone else source, made, named or any(part.curved for part in parts.values()))


@torch.no_grad()
def _again(op: Op, values: dict[int, Tensor]) -> Tensor | None:
    """An operation on other numbers; None where it does not make as many of them."""
    given = tree_map_only(Tensor, lambda one: values[id(one)].clone(), op.args)
    try:
        made = op.function(*given)
    except (RuntimeError, TypeError):
        return None
    same = isinstance(made, Tensor) and made.shape == next(iter(values.values())).shape
    return made.double() if same else None


@torch.no_grad()
def is_tanh(x: Tensor, v: Tensor) -> bool:
    """Whether v is tanh(k x + c) at the points x, entry by entry."""
    if not bool((v.abs() <= 1).all()):
        return False
    inside = v.abs() < INSIDE
    if int(inside.sum()) < FEWEST:
        return False
    line, at = torch.atanh(v[inside]), x[inside]
    slope = (line[-1] - line[0]) / (at[-1] - at[0])
    straight = (line - (line[0] + slope * (at - at[0]))).abs().max() <= STRAIGHT * max(1.0, float(line.abs().max()))
    beyond = ~inside
    sides = torch.equal(torch.sign(v[beyond]), torch.sign(slope * (x[beyond] - at[0]) + line[0]))
    return bool(straight) and float(slope.abs()) > 0 and sides
