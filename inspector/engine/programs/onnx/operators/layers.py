"""Operators that sum: products of matrices, reductions, norms, convolutions."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from inspector.engine.programs.onnx.operands import Calls, Operand, Operator, Untranslated, known_ints
from inspector.engine.programs.onnx.operators.table import at, first, operator

REDUCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "ReduceMean": torch.mean, "ReduceSum": torch.sum, "ReduceMax": torch.amax, "ReduceMin": torch.amin,
    "ReduceL2": torch.linalg.vector_norm, "ReduceLogSumExp": torch.logsumexp,
}  # fmt: skip


@operator("MatMul")
def _matmul(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.matmul, *inputs)


@operator("Gemm")
def _gemm(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    a, b, c = first(inputs), at(inputs, 1), at(inputs, 2)
    said = op.attributes
    alpha, beta = said.get("alpha", 1.0), said.get("beta", 1.0)
    if said.get("transB", 0) and not said.get("transA", 0) and alpha == beta == 1 and (
        c is None or (c.known is not None and c.known.dim() == 1)
    ):  # fmt: skip
        return calls.call(F.linear, a, b, c)
    left: Any = calls.call(torch.t, a) if said.get("transA", 0) else a
    right: Any = calls.call(torch.t, b) if said.get("transB", 0) else b
    product = calls.call(torch.matmul, left, right)
    product = product if alpha == 1 else calls.call(python.mul, product, alpha)
    if c is None:
        return product
    return calls.call(python.add, product, c if beta == 1 else calls.call(python.mul, c, beta))


@operator(*REDUCTIONS)
def _reduce(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    said = op.attributes.get("axes")
    axes = list(said) if said is not None else known_ints(at(inputs, 1), "axes")
    keep = bool(op.attributes.get("keepdims", 1))
    if not axes:
        if op.attributes.get("noop_with_empty_axes", 0):
            return first(inputs).value
        return calls.call(over_all_axes, first(inputs), op.kind, keep)
    return calls.call(REDUCTIONS[op.kind], first(inputs), dim=tuple(axes), keepdim=keep)


def over_all_axes(value: Tensor, kind: str, keep: bool) -> Tensor:
    """A reduction of every axis."""
    made: Tensor = REDUCTIONS[kind](value, dim=tuple(range(value.dim())), keepdim=keep)
    return made


@operator("Softmax", "LogSoftmax")
def _softmax(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    axis = op.attributes.get("axis", -1 if op.version >= 13 else 1)
    if op.version < 13 and axis != -1:
        return calls.call(over_the_rest, first(inputs), axis, log=op.kind == "LogSoftmax")
    return calls.call(torch.softmax if op.kind == "Softmax" else torch.log_softmax, first(inputs), axis)


def over_the_rest(value: Tensor, axis: int, *, log: bool) -> Tensor:
    """Softmax as it was before operator set 13: an axis and all behind it are one."""
    function = torch.log_softmax if log else torch.softmax
    if axis in (-1, value.dim() - 1):
        return function(value, -1)
    return function(value.flatten(axis), -1).reshape(value.shape)


@operator("CumSum")
def _cumsum(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    axis = known_ints(at(inputs, 1), "axis")
    if axis is None or op.attributes.get("exclusive", 0) or op.attributes.get("reverse", 0):
        raise Untranslated("it sums backwards, or without the entry itself")
    return calls.call(torch.cumsum, first(inputs), axis[0])


@operator("ArgMax", "ArgMin")
def _argmax(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    if op.attributes.get("select_last_index", 0):
        raise Untranslated("of equal entries it takes the last")
    function = torch.argmax if op.kind == "ArgMax" else torch.argmin
    return calls.call(function, first(inputs), op.attributes.get("axis", 0), bool(op.attributes.get("keepdims", 1)))


@operator("LayerNormalization")
def _layer_norm(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    weight = at(inputs, 1)
    if op.outputs > 1 or op.attributes.get("axis", -1) != -1 or weight is None or weight.known is None:
        raise Untranslated("its statistics are used, or it normalises several axes")
    return calls.call(
        F.layer_norm,
        first(inputs),
        tuple(weight.known.shape),
        weight,
        at(inputs, 2),
        op.attributes.get("epsilon", 1e-5),
    )


@operator("BatchNormalization")
def _batch_norm(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    if op.attributes.get("training_mode", 0) or op.outputs > 1:
        raise Untranslated("it is in training mode")
    x, weight, bias, mean, variance = inputs
    return calls.call(
        F.batch_norm, x, mean, variance, weight, bias, training=False, eps=op.attributes.get("epsilon", 1e-5)
    )


@operator("Conv")
def _conv(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    weight, said = at(inputs, 1), op.attributes
    if weight is None or weight.known is None or said.get("auto_pad", "NOTSET") != "NOTSET":
        raise Untranslated("its padding is computed")
    axes = weight.known.dim() - 2
    pads = list(said.get("pads") or [0] * (2 * axes))
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}.get(axes)
    if function is None:
        raise Untranslated("it has no axis, or more than three")
    value: Any = first(inputs)
    if pads[:axes] != pads[axes:]:
        value = calls.call(F.pad, value, [size for n in range(axes - 1, -1, -1) for size in (pads[n], pads[axes + n])])
        pads = [0] * (2 * axes)
    return calls.call(
        function, value, weight, at(inputs, 2), tuple(said.get("strides") or [1] * axes), tuple(pads[:axes]),
        tuple(said.get("dilations") or [1] * axes), said.get("group", 1),
    )  # fmt: skip


@operator("GlobalAveragePool")
def _global_mean(calls: Calls, _op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(mean_of_places, first(inputs))


def mean_of_places(value: Tensor) -> Tensor:
    """The mean over all axes behind the second."""
    return value.mean(dim=tuple(range(2, value.dim())), keepdim=True)


@operator("Einsum")
def _einsum(calls: Calls, op: Operator, inputs: list[Operand | None]) -> Any:
    return calls.call(torch.einsum, op.attributes.get("equation"), *inputs)
