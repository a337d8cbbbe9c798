"""Graphs of ONNX with one recurrent node, in every form that a node can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, WIDTH, HIDDEN = 12, 1, 3, 4
KINDS = {np.float32: onnx.TensorProto.FLOAT, np.float64: onnx.TensorProto.DOUBLE}


def graph(
    kind: str,
    *,
    direction: str = "forward",
    layout: int = 0,
    batch: int = BATCH,
    biases: bool = True,
    lengths: Any = None,
    states: bool = False,
    peepholes: bool = False,
    dtype: Any = np.float32,
    free: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """x → Y, Y_h (and Y_c) of one node with random weights."""
    rng = np.random.default_rng(3)
    sides, rows = (2 if direction == "bidirectional" else 1), GATES[kind] * HIDDEN
    held: dict[str, Any] = {
        "W": rng.normal(size=(sides, rows, WIDTH)) * 0.6, "R": rng.normal(size=(sides, rows, HIDDEN)) * 0.6,
    }  # fmt: skip
    names = ["x", "W", "R", "", "", "", "", ""]
    if biases:
        held["B"], names[3] = rng.normal(size=(sides, 2 * rows)) * 0.5, "B"
    if lengths is not None:
        held["lengths"], names[4] = np.array(lengths, np.int32), "lengths"
    if states:
        shape = (batch, sides, HIDDEN) if layout else (sides, batch, HIDDEN)
        held["h"], names[5] = rng.normal(size=shape), "h"
        if kind == "LSTM":
            held["c"], names[6] = rng.normal(size=shape), "c"
    if peepholes:
        held["P"], names[7] = rng.normal(size=(sides, 3 * HIDDEN)), "P"
    while names and not names[-1]:
        names.pop()
    outputs = ["Y", "Y_h", *(["Y_c"] if kind == "LSTM" else [])]
    said = {"direction": direction, "hidden_size": HIDDEN, **attributes, **({"layout": 1} if layout else {})}
    node = helper.make_node(kind, names, outputs, name=f"/rnn/{kind}", **said)
    steps: Any = "steps" if free else STEPS
    shape = [batch, steps, WIDTH] if layout else [steps, batch, WIDTH]
    tensors = [
        numpy_helper.from_array(np.asarray(value, value.dtype if value.dtype == np.int32 else dtype), name)
        for name, value in held.items()
    ]
    made = helper.make_graph(
        [node], "graph", [helper.make_tensor_value_info("x", KINDS[dtype], shape)],
        [helper.make_tensor_value_info(name, KINDS[dtype], None) for name in outputs], tensors,
    )  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def saved(model: onnx.ModelProto, path: Path) -> Path:
    """The file of a model."""
    path.write_bytes(model.SerializeToString())
    return path
