"""A graph of ONNX as a module of torch's: each node is translated, compared with onnxruntime, or left to it.

onnxruntime runs the graph once, on an example, and gives every value in it. Each node is translated and run alone on
onnxruntime's own values: one that gives other numbers is left to onnxruntime, so that a fault of a translation stays in
its node and is said. At the end the whole module is compared, on this example and on one of another length.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node

from inspector.engine.programs.agreement import difference
from inspector.engine.programs.graphs import Rewritten, roll
from inspector.engine.programs.onnx.cells import OnnxRecurrent
from inspector.engine.programs.onnx.ends import cut
from inspector.engine.programs.onnx.foreign import ForeignNode
from inspector.engine.programs.onnx.operands import Later, Now, Operand, Operator, Untranslated
from inspector.engine.programs.onnx.operators import elementwise, layers, quantised, scatters, shapes
from inspector.engine.programs.onnx.operators.table import TABLE
from inspector.engine.programs.onnx.protobuf import Attributes, attributes_of, tensor_of
from inspector.engine.programs.onnx.recurrent import module_of
from inspector.records.plain_text import shortened

RECURRENT = ("LSTM", "GRU", "RNN")
CONTROL = ("Loop", "Scan", "If", "SequenceMap")
FOLDED = 4096
"""Entries of a floating constant at most that is computed once: weights stay parameters."""
USED = (elementwise, layers, quantised, scatters, shapes)
"""Their translations enter the table when they are imported."""


@dataclass(slots=True)
class Assembly:
    """A graph while it is translated.

    Attributes:
        values: of every name, what makes it in the graph of torch.fx; known: those that are the same in every run.
        shown: every value that onnxruntime computed.
        made_of_weights: values that are the same in every run since only weights go into them, computed in each.
        found: what was rebuilt; foreign: (kind of a node, why it is left to onnxruntime).
    """

    onnx: Any
    onnxruntime: Any
    model: Any
    path: Any
    shown: dict[str, Tensor]
    root: nn.Module = field(default_factory=nn.Module)
    graph: Graph = field(default_factory=Graph)
    values: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Tensor] = field(default_factory=dict)
    found: Rewritten = field(default_factory=Rewritten)
    foreign: list[tuple[str, str]] = field(default_factory=list)
    attributes: dict[str, Node] = field(default_factory=dict)
    weights: set[str] = field(default_factory=set)
    made_of_weights: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[Any, str] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """Of the operator set of ONNX itself."""
        return next((int(one.version) for one in self.model.opset_import if one.domain in ("", "ai.onnx")), 1)


def assemble(work: Assembly, inputs: Sequence[str], outputs: Sequence[str]) -> GraphModule:
    """The module of a graph: its inputs in order → a tuple of its outputs."""
    for name in inputs:
        work.values[name] = work.graph.placeholder(identifier(name).replace(".", "_"))
    for tensor in work.model.graph.initializer:
        if tensor.name not in work.values:
            value = tensor_of(work.onnx, tensor, work.path)
            if value is not None:
                work.known[tensor.name] = work.shown[tensor.name] = value
                work.weights.add(tensor.name)
    for node in work.model.graph.node:
        _translate(work, node)
    work.graph.output(tuple(_operand(work, name).value for name in outputs))
    work.graph.owning_module = work.root  # type: ignore[assignment]  # where it looks modules up
    work.graph.eliminate_dead_code()
    module = GraphModule(work.root, work.graph)
    cut(module, [work.shown[name] for name in inputs])
    roll(module, "", work.found)
    return module


def identifier(name: str) -> str:
    """A name of ONNX as one of a module's attribute: parts between dots, each an identifier."""
    parts = ["".join(c if c.isalnum() and c.isascii() else "_" for c in part) for part in name.strip("/").split(".")]
    return ".".join(part if part and not part[0].isdigit() else f"_{part}" for part in parts)


def _operand(work: Assembly, name: str) -> Operand:
    """A value by its name; a known one becomes a parameter or constant of the module when it is first read."""
    known = work.known.get(name)
    if name not in work.values and known is not None:
        work.values[name] = _attribute(work, name, known)
    return Operand(work.values[name], known)


def _attribute(work: Assembly, name: str, value: Tensor) -> Node:
    small = value.numel() <= FOLDED and name not in work.weights
    key = (value.dtype, tuple(value.shape), value.numpy().tobytes()) if small else name
    place = work.constants.get(key)
    if place is None:
        place = work.constants[key] = _put(work.root, identifier(name), value, name in work.weights)
    if place not in work.attributes:
        first = next((node for node in work.graph.nodes if node.op != "placeholder"), None)
        with work.graph.inserting_before(first):
            work.attributes[place] = work.graph.get_attr(place)
    return work.attributes[place]


def _put(root: nn.Module, place: str, value: Tensor, weight: bool) -> str:
    """Store a tensor in a tree of modules, weights as parameters; returns where."""
    owner = root
    *groups, own = place.split(".")
    for part in groups:
        inner = owner._modules.get(part)
        if inner is None and hasattr(owner, part):
            return _put(root, place.replace(".", "_"), value, weight)
        if inner is None:
            inner = owner._modules[part] = nn.Module()
        owner = inner
    while hasattr(owner, own):
        own += "_"
    if weight and value.is_floating_point() and value.dim():
        owner.register_parameter(own, nn.Parameter(value))
    else:
        owner.register_buffer(own, value)
    return ".".join((*groups, own))


def _translate(work: Assembly, node: Any) -> None:
    """One node: folded where all that it reads is known, a module, torch's functions, or onnxruntime."""
    attributes = attributes_of(work.onnx, node)
    said = {
        name: tensor_of(work.onnx, one, work.path) if hasattr(one, "data_type") else one
        for name, one in attributes.values.items()
    }
    if "value" in said and isinstance(said["value"], Tensor):
        said["tensor"] = said["value"]
    last = max((n for n, name in enumerate(node.output) if name), default=0)
    op = Operator(node.op_type, Attributes(said), work.version, last + 1)
    if node.op_type == "Identity" and node.input[0] in work.known:  # exporters name equal weights once
        work.known[node.output[0]] = work.known[node.input[0]]
        work.values[node.output[0]] = _operand(work, node.input[0]).value
        return
    try:
        if node.domain not in ("", "ai.onnx"):
            raise Untranslated(f"it is of {shortened(node.domain, 40)}, not of ONNX itself")
        if node.op_type in RECURRENT:
            _recurrent(work, node, op)
        elif node.op_type in TABLE:
            _by_torch(work, node, op)
        else:
            raise Untranslated("its steps stay inside it" if node.op_type in CONTROL else "it has no translation here")
    except Untranslated as reason:
        _foreign(work, node, str(reason))


def _now(work: Assembly, name: str) -> Operand | None:
    if not name:
        return None
    value = work.known.get(name, work.shown.get(name))
    if value is None:
        raise Untranslated("what it reads is no tensor of numbers")
    return Operand(value, work.known.get(name))


def _by_torch(work: Assembly, node: Any, op: Operator) -> None:
    inputs = [_now(work, name) for name in node.input]
    translate = TABLE[op.kind]
    try:
        with torch.no_grad():
            made = translate(Now(), op, inputs)
    except Untranslated:
        raise
    except Exception as fault:  # noqa: BLE001 - a form of the operator that is not meant
        raise Untranslated(f"this form of it has no translation here ({type(fault).__name__})") from None
    results = made if isinstance(made, tuple) else (made,)
    _require_same(work, node, results)
    names = list(node.output)
    if all(one is None or one.known is not None for one in inputs) and _may_be_folded(node, inputs, results):
        work.known.update({name: one for name, one in zip(names, results, strict=False) if name})
        if node.op_type == "DequantizeLinear":
            work.weights.update(names)
        return
    if all(name in work.known or name in work.made_of_weights for name in node.input if name):
        work.made_of_weights.update({name: one for name, one in zip(names, results, strict=False) if name})
    later = translate(Later(work.graph), op, [_operand(work, name) if name else None for name in node.input])
    for name, one in zip(names, later if isinstance(later, tuple) else (later,), strict=False):
        if name:
            work.values[name] = one


def _may_be_folded(node: Any, inputs: Sequence[Operand | None], results: Sequence[Tensor]) -> bool:
    """Numbers are; what is made of weights is computed in every run, so that gradients reach these. What quantised
    weights stand for is computed once, since no gradient reaches whole numbers."""
    if node.op_type == "DequantizeLinear":
        return True
    large = any(one.known.is_floating_point() and one.known.dim() for one in inputs if one and one.known is not None)
    return (not large and all(one.numel() <= FOLDED for one in results)) or node.op_type == "Constant"


def _require_same(work: Assembly, node: Any, results: Sequence[Any]) -> None:
    for name, one in zip(node.output, results, strict=False):
        expected = work.shown.get(name)
        if not name or expected is None:
            continue
        if not isinstance(one, Tensor) or one.dtype != expected.dtype or difference(one, expected) > 1:
            raise Untranslated("torch computes other numbers than onnxruntime")


def _recurrent(work: Assembly, node: Any, op: Operator) -> None:
    if op.attributes.get("layout", 0):
        raise Untranslated("its batch comes first")
    inputs = [_now(work, name) for name in node.input]
    module = module_of(op, [_whole(work, *one) for one in zip(node.input, inputs, strict=True)])
    reads = [*(4, 5), *((6,) if op.kind == "LSTM" else ())]
    names = [node.input[0], *(node.input[n] if n < len(node.input) else "" for n in reads)]
    names += [""] * (4 - len(names))
    with torch.no_grad():
        made = module(*(None if not name else _value(_now(work, name)) for name in names))
    _require_same(work, node, made)
    place = _place(work, node, op.kind)
    called = work.graph.call_module(place, tuple(None if not name else _operand(work, name).value for name in names))
    _add(work.root, place, module)
    for n, name in enumerate(node.output):
        if name:
            work.values[name] = work.graph.call_function(operator.getitem, (called, n))
    _note(work, place, module)


def _whole(work: Assembly, name: str, operand: Operand | None) -> Operand | None:
    """An input of a recurrent node: the layer has weights that were cut and joined by the graph as they are then."""
    made = work.made_of_weights.get(name)
    return operand if made is None else Operand(made, made)


def _value(operand: Operand | None) -> Any:
    return None if operand is None else operand.value


def _note(work: Assembly, place: str, module: OnnxRecurrent) -> None:
    fused = getattr(module, module.name) if module.name else None
    if isinstance(fused, nn.RNNBase):
        work.found.layers.append((f"{place}.{module.name}", fused))
    else:
        work.found.loops += [(f"{place}.{direction}_steps", 0) for direction in module.directions]


def _place(work: Assembly, node: Any, word: str) -> str:
    """Where the module of a node lies: by the scope in its name, as exporters write it (/encoder/rnn/LSTM)."""
    scope = identifier(node.name.strip("/").rpartition("/")[0].replace("/", ".")) if "/" in node.name.strip("/") else ""
    base = scope or word.lower()
    place, n = base, 1
    while _taken(work.root, place):
        n += 1
        place = f"{base}_{n}"
    return place


def _taken(root: nn.Module, place: str) -> bool:
    found: Any = root
    for part in place.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def _add(root: nn.Module, place: str, module: nn.Module) -> None:
    owner = root
    *groups, own = place.split(".")
    for part in groups:
        if part not in owner._modules:
            owner._modules[part] = nn.Module()
        owner = owner._modules[part]  # type: ignore[assignment]
    owner.add_module(own, module)


def _foreign(work: Assembly, node: Any, why: str) -> None:
    """Leave a node to onnxruntime."""
    module = ForeignNode(work.onnx, work.onnxruntime, work.model, node, work.shown)
    work.foreign.append((node.op_type, why))
    place = _place(work, node, f"{node.op_type}_by_onnxruntime")
    if place == "" or "by_onnxruntime" not in place:
        place = f"{place}.{node.op_type.lower()}_by_onnxruntime"
        while _taken(work.root, place):
            place += "_"
    called = work.graph.call_module(place, tuple(_operand(work, name).value for name in module.reads))
    _add(work.root, place, module)
    for n, name in enumerate(name for name in node.output if name):
        work.values[name] = work.graph.call_function(operator.getitem, (called, n))
