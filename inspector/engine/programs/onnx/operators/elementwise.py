"""Operators that take every entry by itself."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from inspector.engine.programs.onnx.operands import Calls, Operand, Operator, Untranslated
from inspector.engine.programs.onnx.operators.table import TABLE, at, first, operator

ONE: dict[str, Callable[..., Any]] = {
    "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Relu": torch.relu, "Exp": torch.exp, "Log": torch.log,
    "Sqrt": torch.sqrt, "Neg": torch.neg, "Abs": torch.abs, "Erf": torch.erf, "Floor": torch.floor,
    "Ceil": torch.ceil, "Round": torch.round, "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan,
    "Sinh": torch.sinh, "Cosh": torch.cosh, "Reciprocal": torch.reciprocal, "Not": torch.logical_not,
    "Sign": torch.sign, "Softplus": F.softplus, "Softsign": F.softsign, "Mish": F.mish, "IsNaN": torch.isnan,
    "HardSwish": F.hardswish, "Atan": torch.atan,
}  # fmt: skip
TWO: dict[str, Callable[..., Any]] = {
    "Add": python.add, "Sub": python.sub, "Mul": python.mul, "Equal": python.eq,
    "Greater": python.gt, "Less": python.lt,
    "GreaterOrEqual": python.ge, "LessOrEqual": python.le, "And": torch.logical_and, "Or": torch.logical_or,
    "Xor": torch.logical_xor,
}  # fmt: skip
NUMBERED = frozenset({"Add", "Sub", "Mul"})
"""Operators in which a single constant is written as a number."""


def _one(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(ONE[op.kind], first(inputs))


def _two(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    a, b = inputs
    assert a is not None and b is not None
    if op.kind in NUMBERED and a.known is None:
        return calls.call(TWO[op.kind], a, b.number)
    if op.kind in NUMBERED and b.known is None:
        return calls.call(TWO[op.kind], a.number, b)
    return calls.call(TWO[op.kind], a, b)


TABLE.update(dict.fromkeys(ONE, _one))
TABLE.update(dict.fromkeys(TWO, _two))


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """a / b; of whole numbers without the fraction."""
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


@operator("Div")
def _div(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    a, b = inputs
    assert a is not None and b is not None
    for one in (a, b):
        if one.known is not None and not one.known.is_floating_point():
            return calls.call(quotient, a, b)
    return calls.call(python.truediv, a, b.number) if a.known is None else calls.call(python.truediv, a, b)


@operator("Pow")
def _pow(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    a, b = inputs
    assert a is not None and b is not None
    return calls.call(torch.pow, a, b.number)


@operator("Identity", "Dropout")
def _same(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    """Dropout of a graph that is not trained."""
    training = at(inputs, 2)
    if training is not None and (training.known is None or bool(training.known.item())):
        raise Untranslated("it drops numbers at random")
    if op.outputs > 1:
        raise Untranslated("its mask is used")
    return first(inputs).value


@operator("Cast")
def _cast(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    kinds = {
        1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
        10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
    }  # fmt: skip
    to = kinds.get(op.attributes.get("to"))
    if to is None:
        raise Untranslated("torch does not have the type that it casts to")
    return calls.call(Tensor.to, first(inputs), to)


@operator("CastLike")
def _cast_like(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(Tensor.type_as, *inputs)


@operator("Clip")
def _clip(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    low = _bound(op, "min", at(inputs, 1))
    high = _bound(op, "max", at(inputs, 2))
    return calls.call(torch.clamp, first(inputs), low, high)


def _bound(op: Operator, name: str, given: Operand | None) -> Any:
    return op.attributes.get(name) if given is None else given.number


@operator("LeakyRelu")
def _leaky(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(F.leaky_relu, first(inputs), op.attributes.get("alpha", 0.01))


@operator("Elu")
def _elu(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(F.elu, first(inputs), op.attributes.get("alpha", 1.0))


@operator("HardSigmoid")
def _hard_sigmoid(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    alpha, beta = op.attributes.get("alpha", 0.2), op.attributes.get("beta", 0.5)
    scaled = calls.call(python.add, calls.call(python.mul, first(inputs), alpha), beta)
    return calls.call(torch.clamp, scaled, 0.0, 1.0)


@operator("Gelu")
def _gelu(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(F.gelu, first(inputs), approximate=op.attributes.get("approximate", "none"))


@operator("PRelu")
def _prelu(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    x, slope = inputs
    assert x is not None and slope is not None
    return calls.call(torch.where, calls.call(python.ge, x, 0), x, calls.call(python.mul, x, slope))


@operator("Where")
def _where(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.where, *inputs)


@operator("Min", "Max", "Sum", "Mean")
def _several(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    functions = {"Min": torch.minimum, "Max": torch.maximum, "Sum": python.add, "Mean": python.add}
    total: Any = first(inputs)
    for one in inputs[1:]:
        total = calls.call(functions[op.kind], total, one)
    total = total.value if isinstance(total, Operand) else total
    return calls.call(python.truediv, total, len(inputs)) if op.kind == "Mean" else total


@operator("Mod")
def _mod(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.fmod if op.attributes.get("fmod", 0) else torch.remainder, *inputs)
