"""A file of ONNX as it lies on the disk: parsed without running anything, its tensors checked by their headers."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.capture.regular import in_words, open_regular
from inspector.engine.errors import InputError
from inspector.engine.model.named_arrays import MOST_TENSORS
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

NEEDED = "{} is a graph of ONNX, which needs onnx and onnxruntime to be run: pip install 'sequence-inspector[onnx]'."
MOST_NODES, DEEPEST = 200_000, 64
LIMIT = 1 << 31
"""Bytes of a message of protobuf at most."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a node by name."""

    values: dict[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """One of them, text as str."""
        value = self.values.get(name, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def libraries(path: Path) -> tuple[Any, Any]:
    """(onnx, onnxruntime). Raises InputError without them."""
    try:
        return importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    except ImportError:
        raise InputError(NEEDED.format(path.name)) from None


def parse(onnx: Any, path: Path, content: bytes) -> Any:
    """The model in these bytes. Raises InputError for a damaged file, or one that is too large for a message."""
    if len(content) >= LIMIT:
        raise InputError(f"{path.name} has {len(content):,} bytes; a graph of ONNX has less than {LIMIT:,}.")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:  # noqa: BLE001 - protobuf's own error has no class that all releases share
        raise InputError(f"{path.name} is damaged or cut short: it is no message of ONNX.") from None
    count = 0
    for graph in graphs_of(model.graph):
        count += len(graph.node)
        if count > MOST_NODES:
            raise InputError(f"{path.name} has more than {MOST_NODES:,} operations; such a graph is not run.")
    if not len(model.graph.node) or not len(model.graph.output):
        raise InputError(f"{path.name} holds no graph of ONNX: it has no operations or no outputs.")
    return model


def graphs_of(graph: Any, depth: int = 0) -> Iterator[Any]:
    """A graph and all that lie in its nodes (the bodies of loops and conditions). Raises InputError where too deep."""
    if depth > DEEPEST:
        raise InputError(f"The graph has loops and conditions within each other, more than {DEEPEST} deep.")
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                yield from graphs_of(inner, depth + 1)


def tensors_in(model: Any) -> Iterator[Any]:
    """Every tensor of the file: initial values, and those in attributes of nodes."""
    for function in model.functions:
        for node in function.node:
            yield from (attribute.t for attribute in node.attribute if attribute.HasField("t"))
            if any(attribute.HasField("g") for attribute in node.attribute):
                raise InputError("The graph has functions with loops or conditions in them, which are not read.")
    for graph in graphs_of(model.graph):
        yield from graph.initializer
        if graph.sparse_initializer:
            raise InputError("The graph has sparse tensors, which are not read.")
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors


def check_and_gather(onnx: Any, model: Any, path: Path) -> None:
    """Check the sizes of all tensors, and put those that lie in files beside it into the message.

    Raises InputError for tensors that claim other numbers than they have, and for files outside the folder.
    """
    found = list(tensors_in(model))
    held: dict[Path, int] = {}
    if len(found) > MOST_TENSORS:
        raise InputError(f"{path.name} has {len(found):,} tensors; at most {MOST_TENSORS:,} are read.")
    for tensor in found:
        if tensor.data_type == onnx.TensorProto.STRING:
            continue
        needed = _bytes_of(onnx, tensor, path)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.raw_data = _external(tensor, path, needed, held)
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
        elif tensor.raw_data and len(tensor.raw_data) != needed:
            raise InputError(
                f"{path.name}: {_named(tensor)} has {len(tensor.raw_data)} bytes, where {needed} would fit."
            )
        elif not tensor.raw_data and needed > 16 * max(1, tensor.ByteSize()):
            raise InputError(f"{path.name}: {_named(tensor)} claims far more numbers than the file holds.")


def _named(tensor: Any) -> str:
    return f"tensor {shortened(' '.join(tensor.name.split()), 80) or 'without a name'}"


def _bytes_of(onnx: Any, tensor: Any, path: Path) -> int:
    try:
        kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{path.name}: {_named(tensor)} is of the type {tensor.data_type}, which is not read."
        ) from None
    count = 1
    for size in map(int, tensor.dims):
        if size < 0:
            raise InputError(f"{path.name}: {_named(tensor)} has an axis of {size} entries.")
        count *= size
    bits: int = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}.get(kind.name, 8 * kind.itemsize)
    return -(-count * bits // 8)


def _external(tensor: Any, path: Path, needed: int, held: dict[Path, int]) -> bytes:
    """The bytes of a tensor in a file beside the graph."""
    said = {one.key: one.value for one in tensor.external_data}
    location, folder = said.get("location", ""), Path(os.path.realpath(path.parent))
    real = Path(os.path.realpath(path.parent / location)) if location and "\0" not in location else None
    if real is None or not real.is_relative_to(folder):
        raise InputError(
            f"{path.name}: {_named(tensor)} lies outside the folder of the graph; such a file is not read."
        )
    try:
        offset, length = int(said.get("offset", 0)), int(said.get("length", needed))
    except ValueError:
        raise InputError(f"{path.name}: {_named(tensor)} does not say where in {real.name} it lies.") from None
    try:
        with open_regular(real) as opened:
            size = held.setdefault(real, os.fstat(opened.fileno()).st_size)
            if length != needed or not 0 <= offset <= size - length:
                raise InputError(f"{path.name}: {_named(tensor)} is not in {real.name}, which has {size:,} bytes.")
            opened.seek(offset)
            data: bytes = opened.read(length)
    except (OSError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        why = in_words(problem) if isinstance(problem, OSError) else why_unreadable(problem)
        raise InputError(
            f"{path.name} needs {shortened(real.name, 80)} beside it, which cannot be read: {why}."
        ) from None
    return data


def tensor_of(onnx: Any, tensor: Any, path: Path) -> Tensor | None:
    """A tensor of the file; None for text and types that torch does not have."""
    try:
        array = np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception as problem:  # noqa: BLE001 - it reads what the file says
        raise InputError(f"{path.name}: {_named(tensor)} cannot be read ({type(problem).__name__}).") from None
    return torch_of(array)


def torch_of(array: Any) -> Tensor | None:
    """An array as a tensor with a memory of its own; None for types that torch does not have."""
    found = np.asarray(array)
    if found.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(found.view(np.int16))).view(torch.bfloat16)
    if found.dtype.kind not in "biufc":
        return None
    try:
        return torch.from_numpy(np.array(found, order="C"))
    except TypeError:
        return None


def attributes_of(onnx: Any, node: Any) -> Attributes:
    """The attributes of a node."""
    return Attributes({one.name: onnx.helper.get_attribute_value(one) for one in node.attribute})
