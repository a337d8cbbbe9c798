"""Functions that are a tanh though none is called: 2 σ(2x) − 1, (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), 1 − 2 / (e²ˣ + 1).

Of each value that is made of one other, entry by entry and with numbers alone, the function is kept. It is a tanh of
that value, moved or scaled before, where artanh of its results is a straight line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import storage_of

Function = Callable[[Tensor], Tensor]
ARITHMETIC = frozenset({Kind.SUM, Kind.PRODUCT, Kind.QUOTIENT})
CURVED = frozenset({"sigmoid", "tanh", "exp", "expm1", "reciprocal", "square", "expit"})
INSIDE = 0.999
"""|v| up to which artanh v is compared; beyond it a float64 has too few digits of 1 − v."""
FEWEST, STRAIGHT = 12, 1e-7
"""Points of the line, and how far from it they may be, relative to the longest."""


class Formulas:
    """The values of one iteration as functions of others."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Function, bool]] = {}
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
        return found[2] and op.traits.kind in ARITHMETIC and is_tanh(found[1])

    def has(self, op: Op) -> bool:
        """Whether the function that an operation's result is is known."""
        return len(op.outputs) == 1 and id(op.outputs[0]) in self._known

    def _composed(self, op: Op) -> tuple[object, Function, bool] | None:
        """(what it is a function of, the function, whether it is curved), of one value, entry by entry."""
        named = op.traits.name in CURVED or op.name.rstrip("_") in CURVED
        if not (named or op.traits.kind in ARITHMETIC) or op.kwargs or len(op.outputs) != 1 or not op.inputs:
            return None
        if any(one.shape != op.outputs[0].shape or not one.is_floating_point() for one in op.inputs):
            return None
        parts = [self._known.get(id(one), (id(one), _same, False)) for one in op.inputs]
        if len({part[0] for part in parts}) != 1:
            return None
        functions = {id(one): part[1] for one, part in zip(op.inputs, parts, strict=True)}

        def function(value: Tensor, args: Any = op.args, call: Any = op.function) -> Tensor:
            given = tree_map_only(Tensor, lambda one: functions[id(one)](value).clone(), args)
            made: Tensor = call(*given)
            return made

        source = object() if op.in_place and parts[0][0] == id(op.target) else parts[0][0]  # its old value is gone
        return source, function, named or any(part[2] for part in parts)


def _same(value: Tensor) -> Tensor:
    return value


@torch.no_grad()
def is_tanh(function: Function) -> bool:
    """Whether a function of single entries is tanh(k x + c), by its numbers."""
    half = torch.logspace(-3, 1.3, 200, dtype=torch.float64)
    x = torch.cat((-half.flip(0), half))
    try:
        v = function(x)
    except (RuntimeError, TypeError):
        return False
    if v.shape != x.shape or not bool((v.abs() <= 1).all()):
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
