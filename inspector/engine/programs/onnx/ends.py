"""Where gradients end: what onnxruntime reads has none by any path, since a sum over the other paths would be wrong.

No gradient comes through a node that onnxruntime computes. What it reads may go on by other ways too (a skip
connection, a shared table): the gradient along these alone is no gradient of anything, and is cut, so that every
quantity finds none and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from inspector.engine.programs.agreement import tensors_of
from inspector.engine.programs.onnx.foreign import ForeignNode


class _Kinds(Interpreter):
    """Runs a graph and notes whose values have floating tensors in them."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.floating: set[Node] = set()

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        value = super().run_node(n)
        if any(one.is_floating_point() for one in tensors_of(value)):
            self.floating.add(n)
        return value


def without_gradient(value: Any) -> Any:
    """The same value, through which no gradient goes back."""
    return value.detach() if isinstance(value, Tensor) else value


def cut(module: GraphModule, inputs: Sequence[Tensor]) -> None:
    """Cut every way around a node of onnxruntime. `inputs`: an example, in the order of the graph's."""
    foreign = [node for node in module.graph.nodes if _is_foreign(module, node)]
    if not foreign:
        return
    kinds = _Kinds(module)
    with torch.no_grad():
        kinds.run(*inputs)
    before = _before([node for node in foreign if node in kinds.floating], kinds.floating)
    inside = before | set(foreign)
    for node in before:
        leaving = [user for user in node.users if user not in inside]
        if leaving:
            _detach(module, node, leaving)
    module.recompile()


def _is_foreign(module: GraphModule, node: Node) -> bool:
    return node.op == "call_module" and isinstance(module.get_submodule(str(node.target)), ForeignNode)


def _before(foreign: Sequence[Node], floating: set[Node]) -> set[Node]:
    """All that the nodes are made of, as far as numbers with gradients go."""
    found: set[Node] = set()
    ahead = list(foreign)
    while ahead:
        new = [one for one in ahead.pop().all_input_nodes if one in floating and one not in found]
        found.update(new)
        ahead += new
    return found


def _detach(module: GraphModule, node: Node, users: Sequence[Node]) -> None:
    order = {one: n for n, one in enumerate(module.graph.nodes)}
    with module.graph.inserting_before(min(users, key=order.__getitem__)):
        ended = module.graph.call_function(without_gradient, (node,))
    for user in users:
        user.replace_input_with(node, ended)
