"""Which slices of a recurrent layer's weights are which gate, by names and shapes, in the orders of three libraries.

torch (torch.nn.LSTM, torch.nn.GRU): blocks of rows, input, forget, cell, output; reset, update, new.
Keras (keras.layers.LSTM, GRU): `kernel` (i, G·u), `recurrent_kernel` (u, G·u), `bias` (G·u) or (2, G·u), blocks of the
last axis: input, forget, cell, output; update, reset, new.
ONNX (operators LSTM, GRU): W (directions, G·h, i), R (directions, G·h, h), B (directions, 2·G·h), blocks of the second
axis: input, output, forget, cell; update, reset, new; B has those of W and then those of R.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from inspector.engine.opening.weights_alone.stacks import find_stacks

TORCH = {"LSTM": ("input", "forget", "cell", "output"), "GRU": ("reset", "update", "new")}
KERAS = {4: ("input", "forget", "cell", "output"), 3: ("update", "reset", "new")}
ONNX = {4: ("input", "output", "forget", "cell"), 3: ("update", "reset", "new")}
OF_KERAS = re.compile(r"(?:(?P<place>.*)[./])?(?P<part>recurrent_kernel|kernel|bias)(?::0)?")
OF_ONNX = re.compile(r"(?:(?P<place>.*)[._/])?(?P<part>[WRB])")


@dataclass(frozen=True, slots=True)
class Block:
    """One gate of a tensor: elements `start` to `stop` of `axis`; `order`: whose that is, "torch", "Keras", "ONNX"."""

    gate: str
    axis: int
    start: int
    stop: int
    order: str


def gate_blocks(tensors: Mapping[str, Tensor]) -> dict[str, tuple[Block, ...]]:
    """The gates of every tensor that is known to have some, in the order in which they lie in it."""
    found = {
        name: _blocks(TORCH[stack.kind], 0, len(tensors[name]), "torch")
        for stack in find_stacks(tensors)[0] if stack.kind in TORCH
        for name in stack.names if "weight_hr" not in name.rpartition(".")[2]
    }  # fmt: skip
    for expression, of in ((OF_KERAS, _of_keras), (OF_ONNX, _of_onnx)):
        for parts in _groups(tensors, expression):
            found |= {name: blocks for name, blocks in of(parts, tensors).items() if name not in found}
    return found


def _blocks(gates: tuple[str, ...], axis: int, length: int, order: str) -> tuple[Block, ...]:
    size = length // len(gates)
    return tuple(Block(gate, axis, n * size, (n + 1) * size, order) for n, gate in enumerate(gates))


def _groups(tensors: Mapping[str, Tensor], expression: re.Pattern[str]) -> list[dict[str, str]]:
    """Names by part, of tensors that are named alike but for that."""
    groups: dict[str, dict[str, str]] = {}
    for name in tensors:
        match = expression.fullmatch(name)
        if match is not None:
            groups.setdefault(match["place"] or "", {})[match["part"]] = name
    return list(groups.values())


def _of_keras(parts: Mapping[str, str], tensors: Mapping[str, Tensor]) -> dict[str, tuple[Block, ...]]:
    """A recurrent kernel says how many gates there are; all three share their last axis."""
    recurrent = tensors[parts["recurrent_kernel"]] if "recurrent_kernel" in parts else None
    if recurrent is None or recurrent.dim() != 2 or not recurrent.shape[0]:
        return {}
    units, width = recurrent.shape
    gates = KERAS.get(width // units if width % units == 0 else 0)
    if gates is None:
        return {}
    fit = {part: name for part, name in parts.items() if tensors[name].dim() and tensors[name].shape[-1] == width}
    return {name: _blocks(gates, tensors[name].dim() - 1, width, "Keras") for name in fit.values()}


def _of_onnx(parts: Mapping[str, str], tensors: Mapping[str, Tensor]) -> dict[str, tuple[Block, ...]]:
    """R says how many gates there are; W and B have to fit it."""
    recurrent = tensors[parts["R"]] if "R" in parts and "W" in parts else None
    if recurrent is None or recurrent.dim() != 3 or recurrent.shape[0] not in (1, 2) or not recurrent.shape[2]:
        return {}
    directions, rows, hidden = recurrent.shape
    gates = ONNX.get(rows // hidden if rows % hidden == 0 else 0)
    inputs = tensors[parts["W"]]
    if gates is None or inputs.dim() != 3 or tuple(inputs.shape[:2]) != (directions, rows):
        return {}
    found = {parts[part]: _blocks(gates, 1, rows, "ONNX") for part in ("W", "R")}
    if "B" in parts and tuple(tensors[parts["B"]].shape) == (directions, 2 * rows):
        both = tuple(f"{gate}, {of}" for of in ("of W", "of R") for gate in gates)
        found[parts["B"]] = _blocks(both, 1, 2 * rows, "ONNX")
    return found
