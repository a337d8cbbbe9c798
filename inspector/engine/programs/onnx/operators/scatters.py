"""Operators that write into a copy of a tensor, which is what exporters make of `y[:, t] = h`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from inspector.engine.programs.onnx.operands import Calls, Operand, Operator, Untranslated
from inspector.engine.programs.onnx.operators.table import first, operator
from inspector.records.plain_text import shortened


def _adds(op: Operator) -> bool:
    reduction = op.attributes.get("reduction", "none")
    if reduction not in ("none", "add"):
        raise Untranslated(f"it writes by {shortened(str(reduction), 20)}")
    return bool(reduction == "add")


@operator("ScatterND")
def _scatter_nd(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(written_at, first(inputs), *inputs[1:], add=_adds(op))


def written_at(value: Tensor, index: Tensor, new: Tensor, *, add: bool) -> Tensor:
    """`value` with `new` at the places whose first numbers are the last axis of `index`, negative ones from the end."""
    return value.index_put(tuple(index.long().unbind(-1)), new, accumulate=add)


@operator("ScatterElements", "Scatter")
def _scatter_elements(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(written_along, first(inputs), op.attributes.get("axis", 0), *inputs[1:], add=_adds(op))


def written_along(value: Tensor, axis: int, index: Tensor, new: Tensor, *, add: bool) -> Tensor:
    """`value` with each number of `new` at its index on one axis, negative ones from the end."""
    index = torch.where(index < 0, index + value.shape[axis], index).long()
    return value.scatter_add(axis, index, new) if add else value.scatter(axis, index, new)
