"""onnxruntime: what the graph computes, with every value in it by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.programs.onnx.protobuf import torch_of
from inspector.records.plain_text import shortened

QUIET = 4
"""Of its log only what ends the process is printed."""


def session_of(onnxruntime: Any, serialized: bytes, name: str) -> Any:
    """A session on the processor, with one thread, that changes no operation. Raises InputError."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = QUIET
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # noqa: BLE001 - the library's errors share no class
        raise InputError(f"onnxruntime cannot run {name}: {in_short(problem)}.") from None


def in_short(problem: Exception) -> str:
    """The library's message without its codes."""
    text = " ".join(str(problem).split()).rstrip(".")
    return shortened(text.rpartition("ErrorMessage:")[2].rpartition("] : ")[2], 200) or type(problem).__name__


def with_all_values(onnx: Any, model: Any) -> Any:
    """A copy of a model whose outputs are all values of its graph, which is how onnxruntime gives them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    known = {one.name for one in made.graph.output}
    for node in made.graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                made.graph.output.append(onnx.ValueInfoProto(name=name))
    return made


def values_of(session: Any, given: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Every output of a session by name, those that are tensors of numbers. Raises InputError where it fails."""
    names = [one.name for one in session.get_outputs()]
    found = run(session, given, name)
    values = {key: torch_of(one) for key, one in zip(names, found, strict=True) if isinstance(one, np.ndarray)}
    return {key: one for key, one in values.items() if one is not None}


def run(session: Any, given: Mapping[str, Tensor], name: str) -> Sequence[Any]:
    """What a session returns. Raises InputError where it fails."""
    try:
        found: Sequence[Any] = session.run(None, {key: one.detach().cpu().numpy() for key, one in given.items()})
    except Exception as problem:  # noqa: BLE001 - the library's errors share no class
        raise InputError(f"onnxruntime cannot run {name} on these inputs: {in_short(problem)}.") from None
    return found
