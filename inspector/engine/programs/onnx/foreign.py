"""A node that has no translation here: onnxruntime computes it, and no gradient comes through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.programs.onnx.protobuf import graphs_of, torch_of
from inspector.engine.programs.onnx.session import run, session_of


class ForeignNode(nn.Module):
    """One node as a graph of its own."""

    def __init__(self, onnx: Any, onnxruntime: Any, model: Any, node: Any, shown: dict[str, Tensor]) -> None:
        super().__init__()
        self.kind = str(node.op_type)
        self.ends_gradients = f"onnxruntime computes the operation {self.kind}, and no gradient comes through it"
        self.reads = names_read(node)
        self.session = session_of(
            onnxruntime, _alone(onnx, model, node, self.reads, shown), f"the operation {self.kind}"
        )

    def forward(self, *values: Tensor) -> tuple[Tensor | None, ...]:
        """Its inputs, also those that its body reads from outside → its results."""
        found = run(self.session, dict(zip(self.reads, values, strict=True)), f"the operation {self.kind}")
        device = next((one.device for one in values), torch.device("cpu"))
        made = [torch_of(one) for one in found]
        return tuple(None if one is None else one.to(device) for one in made)


def names_read(node: Any) -> list[str]:
    """Values that a node reads, also those that the bodies of loops and conditions in it read from outside."""
    found = dict.fromkeys(name for name in node.input if name)
    for attribute in node.attribute:
        for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            own = {one.name for graph in graphs_of(inner) for one in (*graph.input, *graph.initializer)}
            own |= {name for graph in graphs_of(inner) for each in graph.node for name in each.output}
            read = [name for graph in graphs_of(inner) for each in graph.node for name in each.input]
            read += [one.name for graph in graphs_of(inner) for one in graph.output]
            found.update(dict.fromkeys(name for name in read if name and name not in own))
    return list(found)


def _alone(onnx: Any, model: Any, node: Any, reads: Sequence[str], shown: dict[str, Tensor]) -> bytes:
    """A model of this node alone; axes of its inputs are left open."""
    given = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(shown[name].numpy().dtype), [None] * shown[name].dim()
        )
        for name in reads
    ]
    made = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "node", given, made)
    alone = onnx.helper.make_model(graph, opset_imports=list(model.opset_import), functions=list(model.functions))
    alone.ir_version = model.ir_version
    content: bytes = alone.SerializeToString()
    return content
