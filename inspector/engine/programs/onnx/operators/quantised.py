"""Whole numbers with a scale as the numbers that they stand for."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from inspector.engine.programs.onnx.operands import Calls, Operand, Operator, Untranslated
from inspector.engine.programs.onnx.operators.table import at, first, operator


@operator("DequantizeLinear")
def _dequantize(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    if op.attributes.get("block_size", 0) or op.attributes.get("output_dtype", 0):
        raise Untranslated("its scales are of blocks, or its result is of a type that is asked for")
    return calls.call(dequantised, first(inputs), at(inputs, 1), at(inputs, 2), op.attributes.get("axis", 1))


def dequantised(value: Tensor, scale: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """(value − zero) · scale; both are numbers, or vectors along an axis."""
    shape = [1] * value.dim()
    if scale.dim() and scale.numel() > 1:
        shape[axis] = -1
    whole = value.int() if zero is None else value.int() - zero.int().reshape(shape)
    return whole.to(scale.dtype) * scale.reshape(shape)
