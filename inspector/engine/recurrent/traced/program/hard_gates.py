"""Hard gates: values that a function with bounds, and a scale and a shift by numbers, leave between 0 and 1.

clamp(0.2 x + 0.5, 0, 1), relu6(x + 3) / 6, (hardtanh(x) + 1) / 2, (tanh(x) + 1) / 2. That they multiply something else
than a number makes them gates. Counter-example: a clamped value that is multiplied with an input, and not with a state,
is shown as a gate too, as a sigmoid there is.
"""

from __future__ import annotations

from torch import Tensor

from inspector.engine.recurrent.traced.program.near import Near
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind

MOST = 4
"""Scales and shifts that are followed."""
ROUNDING = 1e-6
"""How far from 0 and 1 the bounds may be: 6 × (1 / 6)."""


def hard_gate(near: Near, j: int) -> tuple[int, str] | None:
    """The operation whose result is a gate that operation j bounds, and the name of j's function; None: it bounds none.

    `near`: the operations that lead to the new state.
    """
    ops = near.ops
    bounds = _bounds(ops[j][1])
    if bounds is None or not ops[j][1].outputs:
        return None
    at = j
    for _ in range(MOST):
        if abs(bounds[0]) <= ROUNDING and abs(bounds[1] - 1) <= ROUNDING:
            return (at, ops[j][1].name.rstrip("_")) if multiplies(near, at) else None
        following = near.readers(ops[at][1].outputs[0], at)
        moved = _moved(ops[following[0]][1], bounds) if len(following) == 1 else None
        if moved is None:
            return None
        at, bounds = following[0], moved
    return None


def _bounds(op: Op) -> tuple[float, float] | None:
    """The least and the greatest value of a result; None where they are not numbers."""
    name = op.name.rstrip("_")
    if name in ("clamp", "clip"):
        return _numbers(_argument(op, 1, "min"), _argument(op, 2, "max"))
    if name == "hardtanh":
        return _numbers(_argument(op, 1, "min_val", -1.0), _argument(op, 2, "max_val", 1.0))
    return {"relu6": (0.0, 6.0), "tanh": (-1.0, 1.0)}.get(name)


def _argument(op: Op, place: int, name: str, default: object = None) -> object:
    return op.args[place] if len(op.args) > place else op.kwargs.get(name, default)


def _numbers(low: object, high: object) -> tuple[float, float] | None:
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return float(low), float(high)
    return None


def _moved(op: Op, bounds: tuple[float, float]) -> tuple[float, float] | None:
    """The bounds after a product or a sum with a number; None after anything else."""
    numbers = [one for one in op.args if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(op.args) != 2 or len(numbers) != 1 or op.kwargs:
        return None
    number, first = float(numbers[0]), isinstance(op.args[0], Tensor) != op.operator.reflected
    if op.traits.kind is Kind.PRODUCT:
        ends = [number * end for end in bounds]
    elif op.traits.kind is Kind.QUOTIENT and first and number:
        ends = [end / number for end in bounds]
    elif op.traits.name == "add":
        ends = [end + number for end in bounds]
    elif op.traits.name == "sub":
        ends = [end - number if first else number - end for end in bounds]
    else:
        return None
    return min(ends), max(ends)


def multiplies(near: Near, at: int) -> bool:
    """Whether the result is multiplied with another tensor, itself or in another shape."""
    gate = near.ops[at][1].outputs[0]
    for k in near.readers(gate, at):
        op = near.ops[k][1]
        if op.traits.kind in (Kind.PRODUCT, Kind.BLEND) and any(one is not gate for one in op.inputs):
            return True
        if op.traits.rearranges and op.outputs and multiplies(near, k):
            return True
    return False
