"""What a graph of ONNX reads: names, types and sizes, an example, and the axes that exporters name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.programs.onnx.model import identifier
from inspector.engine.programs.signature import ANY, STEPS, Given, Size
from inspector.records.plain_text import shortened

TYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64,
}  # fmt: skip
LONGEST, LONGEST_SHAPE, MOST_TRIALS = 4096, 16, 12
"""Of the lengths that are tried where a free axis turns out not to be free."""
BATCH, TIME = ("batch", "n", "b", "bs", "samples"), ("seq", "time", "step", "len", "frame", "t")
"""Beginnings of names of axes."""


def inputs_of(model: Any, path: Path, steps: int = STEPS) -> tuple[list[str], list[Given]]:
    """(names in the graph, what they are). `steps`: of the example, where they are free. Raises InputError."""
    held = {one.name for one in model.graph.initializer}
    read = [one for one in model.graph.input if one.name not in held]
    tables, widths = tokens_in(model), _widths(model)
    time_first = {node.input[0] for node in model.graph.node if node.op_type in ("LSTM", "GRU", "RNN")}
    found = []
    for one in read:
        kind = one.type.tensor_type
        if not one.type.HasField("tensor_type") or kind.elem_type not in TYPES:
            raise InputError(
                f"{path.name} reads {shortened(one.name, 60)}, which is no tensor of numbers; it is not run."
            )
        if not kind.HasField("shape"):
            raise InputError(f"{path.name} does not say how many axes {shortened(one.name, 60)} has; it is not run.")
        words = [(axis.dim_value if axis.HasField("dim_value") else axis.dim_param) for axis in kind.shape.dim]
        sizes = [_size(word) for word in words]
        if len(sizes) == 3 and not sizes[2].fixed and one.name in widths:
            sizes[2] = Size(widths[one.name], widths[one.name])
        shape = _shape(words, sizes, steps, first=one.name in time_first)
        found.append(Given(
            identifier(one.name).replace(".", "_"), tuple(sizes), TYPES[kind.elem_type],
            _example(shape, TYPES[kind.elem_type], tables.get(one.name)),
        ))  # fmt: skip
    return [one.name for one in read], found


def _size(word: Any) -> Size:
    return Size(int(word), int(word)) if isinstance(word, int) and word > 0 else ANY


def _shape(words: Sequence[Any], sizes: Sequence[Size], steps: int, *, first: bool) -> list[int]:
    """Sizes of an example: one sequence of so many steps."""
    named = [_meaning(word) for word in words]
    if "time" not in named and len(sizes) in (2, 3):
        free = [n for n in (0, 1) if not sizes[n].fixed and named[n] != "batch"]
        step = (free[0] if first else free[-1]) if free else -1
        named = ["time" if n == step else one for n, one in enumerate(named)]
    return [one.low if one.fixed else steps if mean == "time" else 1 for one, mean in zip(sizes, named, strict=True)]


def _meaning(word: Any) -> str:
    text = str(word).lower() if isinstance(word, str) else ""
    if text.startswith(TIME[:-1]) or text == TIME[-1]:
        return "time"
    return "batch" if text in BATCH or text.startswith(BATCH[0]) or "batch" in text else ""


def _example(shape: Sequence[int], dtype: torch.dtype, tokens: int | None) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        return torch.randn(list(shape), generator=generator).to(dtype)
    if dtype == torch.bool:
        return torch.ones(list(shape), dtype=dtype)
    if tokens is None:  # lengths, or a flag
        return torch.full(list(shape), STEPS, dtype=dtype) if len(shape) < 2 else torch.ones(list(shape), dtype=dtype)
    return torch.randint(tokens, list(shape), generator=generator).to(dtype)


def tokens_in(model: Any) -> dict[str, int]:
    """How many ids the table has that an input is looked up in, casts and the like aside."""
    dims = {one.name: list(one.dims) for one in model.graph.initializer}
    same: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type in ("Cast", "Identity", "Transpose", "Squeeze", "Unsqueeze") and node.output:
            same[node.output[0]] = same.get(node.input[0], node.input[0])
    return {
        same.get(node.input[1], node.input[1]): dims[node.input[0]][0] for node in reversed(model.graph.node)
        if node.op_type == "Gather" and len(dims.get(node.input[0], ())) == 2
    }  # fmt: skip


def lengths_in(onnx: Any, model: Any) -> list[int]:
    """Whole numbers among the constants of a graph that may be a length, those that stand there most often first."""
    found: Counter[int] = Counter()
    held = [one for one in model.graph.initializer if one.data_type == onnx.TensorProto.INT64]
    held += [
        one.t
        for node in model.graph.node
        if node.op_type == "Constant"
        for one in node.attribute
        if one.name == "value"
    ]
    for one in held:
        if one.data_type == onnx.TensorProto.INT64 and sum(one.dims) < LONGEST_SHAPE:
            found.update(set(onnx.numpy_helper.to_array(one).reshape(-1).tolist()))
    return [n for n, _ in found.most_common() if 1 < n <= LONGEST][:MOST_TRIALS]


def _widths(model: Any) -> dict[str, int]:
    """The last axis of inputs that a recurrent node or a product with weights reads, where the graph leaves it open."""
    dims = {one.name: list(one.dims) for one in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        weight = dims.get(node.input[1], []) if len(node.input) > 1 else []
        if node.op_type in ("LSTM", "GRU", "RNN") and len(weight) == 3:
            found[node.input[0]] = weight[2]
        elif node.op_type == "MatMul" and len(weight) == 2:
            found[node.input[0]] = weight[0]
    return found
