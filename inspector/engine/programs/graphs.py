"""Graphs of torch.fx, rewritten in place: operators as torch's public functions, fused layers as modules.

The graph of each module is run once on an example, node by node. Where a function of torch's gives the very same
numbers as an operator, it takes the operator's place; a fused recurrent operator whose weights are parameters of the
module becomes a module beside them. What has neither stays the operator that it was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Interpreter, Node

from inspector.engine.programs.fused_layers import KINDS, Options, layer_of
from inspector.engine.programs.public_functions import public_calls, same
from inspector.engine.programs.source import rolled

FUSED = {f"aten::{name}": name for name in KINDS}


@dataclass(slots=True)
class Rewritten:
    """What was found in a tree of graphs.

    Attributes:
        layers: (place, module) of recurrent layers that were rebuilt. left: sentences on those that were not.
        loops: (place, steps) of loops that were written out, and are loops again.
        kept: names of operators that stayed.
    """

    layers: list[tuple[str, nn.RNNBase]] = field(default_factory=list)
    loops: list[tuple[str, int]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)


class Choosing(Interpreter):
    """Runs a graph on an example and notes for each operator the function that does the same."""

    def __init__(self, module: Any, graph: Graph) -> None:
        super().__init__(module, graph=graph)
        self.chosen: dict[Node, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {}
        self.kept: set[str] = set()
        self._node: Node | None = None

    def run_node(self, n: Node) -> Any:
        """One node of the graph."""
        self._node = n
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operator, and the functions that may stand for it."""
        node = self._node
        if node is None or not isinstance(target, torch._ops.OpOverload) or target._schema.name in FUSED:
            return super().call_function(target, args, kwargs)
        mutable = target._schema.is_mutable
        before = _copied((args, kwargs)) if mutable else (args, kwargs)
        out = super().call_function(target, args, kwargs)
        first = args[0] if args and isinstance(args[0], Tensor) else None
        for (function, own, named), (_, real, called) in zip(
            public_calls(target, node.args, node.kwargs, first),
            public_calls(target, before[0], before[1], first), strict=True,
        ):  # fmt: skip
            if _gives(function, _copied(real) if mutable else real, called, out):
                self.chosen[node] = function, own, named
                return out
        self.kept.add(str(target))
        return out


def _copied(value: Any) -> Any:
    return torch.fx.node.map_aggregate(value, lambda one: one.clone() if isinstance(one, Tensor) else one)


def _gives(function: Callable[..., Any], args: Any, kwargs: Any, expected: Any) -> bool:
    try:
        return same(function(*args, **kwargs), expected)
    except Exception:  # noqa: BLE001 - a function of that name that takes other arguments is not the one
        return False


def run_choosing(module: Any, graph: Graph, args: tuple[Any, ...], found: Rewritten) -> Any:
    """Run a graph and write its operators anew; returns what it computed."""
    chooser = Choosing(module, graph)
    out = chooser.run(*args, enable_io_processing=False)
    for node, (function, own, named) in chooser.chosen.items():
        node.target, node.args, node.kwargs = function, own, named
    found.kept |= chooser.kept
    return out


def roll(module: GraphModule, place: str, found: Rewritten) -> None:
    """Have the class of a graph's module run its written-out loops as loops."""
    made = rolled(module.graph)
    if made is not None:
        type(module).forward = made[0]  # each graph's module has a class of its own
        found.loops += [(place, count) for count in made[1]]


def put_layers(module: nn.Module, graph: Graph, place: str, found: Rewritten) -> None:
    """Put modules in the place of the fused operators of one graph."""
    graph.owning_module = module  # type: ignore[assignment]  # where it looks the new modules up
    for node in list(graph.nodes):
        name = FUSED.get(node.target._schema.name) if isinstance(node.target, torch._ops.OpOverload) else None
        if name is None:
            continue
        why = _put_layer(module, graph, node, name, place, found)
        if why:
            found.left.append(f"{place or 'the program'}: {name} is run as one operation ({why}), without gates.")


def _put_layer(module: nn.Module, graph: Graph, node: Node, name: str, place: str, found: Rewritten) -> str:
    """Replace one operator; returns why not, or ""."""
    if getattr(node.target, "_overloadname", "") != "input" or node.kwargs or len(node.args) != 9:
        return "it reads packed sequences"
    x, state, weights, *rest = node.args
    values = [_parameter(module, one) for one in weights]  # type: ignore[union-attr]
    if any(one is None for one in values):
        return "its weights are computed"
    users = list(node.users)
    if any(one.target is not operator.getitem or not isinstance(one.args[1], int) for one in users):
        return "its results are used in one piece"
    layer = layer_of(name, [one for one in values if one is not None], Options(*rest))  # type: ignore[arg-type]
    if layer is None:
        return "it drops numbers, or its weights are those of no layer of torch's"
    own = _free_name(module, name)
    module.add_module(own, layer)
    _call_layer(graph, node, own, x, state, users)
    found.layers.append((f"{place}.{own}".lstrip("."), layer))
    return ""


def _call_layer(graph: Graph, node: Node, own: str, x: Any, state: Any, users: list[Node]) -> None:
    """Call the module, and take the output and the parts of the state from what it returns."""
    pair = isinstance(state, (list, tuple))
    with graph.inserting_before(node):
        called = graph.call_module(own, (x, tuple(state) if pair else state))
        output = graph.call_function(operator.getitem, (called, 0))
        last = graph.call_function(operator.getitem, (called, 1))
        parts = [graph.call_function(operator.getitem, (last, n)) for n in (0, 1)] if pair else [last]
    for user in users:
        user.replace_all_uses_with([output, *parts][user.args[1]])  # type: ignore[index]
        graph.erase_node(user)
    graph.erase_node(node)
    for one in (*parts, last, output):
        if not one.users and one in graph.nodes:
            graph.erase_node(one)


def _parameter(module: nn.Module, node: Any) -> nn.Parameter | None:
    """The parameter that a node reads from the module; None for anything else."""
    if not isinstance(node, Node) or node.op != "get_attr":
        return None
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part, None)
    if isinstance(value, nn.Parameter):
        return value
    return nn.Parameter(value, requires_grad=False) if isinstance(value, Tensor) else None


def _free_name(module: nn.Module, name: str) -> str:
    return next(one for one in _numbered(name) if not hasattr(module, one))


def _numbered(name: str) -> Iterator[str]:
    yield name
    n = 2
    while True:
        yield f"{name}_{n}"
        n += 1
